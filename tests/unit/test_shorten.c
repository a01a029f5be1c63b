/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "report/shorten.h"

static void check(const char *name, size_t most, const char *expected)
{
    char text[256];
    snprintf(text, sizeof text, "%s", name);
    report_shorten(text, most);
    assert_string_equal(text, expected);
}

static void the_deepest_go_first(void **state)
{
    const char *name = "std::map<std::basic_string<char, std::allocator<char> >, int>::find";
    (void)state;
    check(name, 100, name);
    check(name, strlen(name) - 1, "std::map<std::basic_string<char, std::allocator<...> >, int>::find");
    check(name, strlen(name) - 2, "std::map<std::basic_string<...>, int>::find");
    check(name, 10, "std::map<...>::find");
    check("a_name_without_brackets", 5, "a_name_without_brackets");
    check("", 0, "");
}

static void parameters(void **state)
{
    (void)state;
    check("walk(std::vector<int> const&, long)", 10, "walk(...)");
    check("walk(int)", 3, "walk(int)"); /* would not be shorter */
    check("(anonymous namespace)::f<long double>", 10, "(anonymous namespace)::f<...>");
}

static void brackets_that_are_none(void **state)
{
    (void)state;
    check("ns::operator<< <std::string>", 10, "ns::operator<< <...>");
    check("V::operator< <long int>", 10, "V::operator< <...>");
    check("V::operator=<long int>", 10, "V::operator=<...>");
    check("V::operator()<long int>", 10, "V::operator()<...>");
    check("V<long int>::operator->", 10, "V<...>::operator->");
    check("V::operator-> const", 10, "V::operator-> const");
}

static void rust(void **state)
{
    (void)state;
    check("<Map<Iter<Item>> as Iterator>::next", 10, "<Map<...> as Iterator>::next");
    check("core::ptr::drop<fn(&str) -> String>", 10, "core::ptr::drop<...>");
}

/* A name that was cut, and one that is none. */
static void unbalanced(void **state)
{
    (void)state;
    check("std::map<std::basic_string<char, std", 10, "std::map<...");
    check("a>>>)b(((", 3, "a>>>)b(((");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_deepest_go_first),
        cmocka_unit_test(parameters),
        cmocka_unit_test(brackets_that_are_none),
        cmocka_unit_test(rust),
        cmocka_unit_test(unbalanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
