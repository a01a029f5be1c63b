/* SPDX-License-Identifier: Apache-2.0 */
/* What `diff` says of functions after the curves (report/difference-functions.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/curve.h"
#include "report/difference-internal.h"

static const struct analysis_change none = {.before = 10, .after = 10},
                                    some = {.before = 10,
                                            .after = 4,
                                            .delta = -6,
                                            .low = -7,
                                            .high = -5,
                                            .significant = 1},
                                    noisy = {.before = 10, .after = 4, .delta = -6, .low = -9, .high = 2};

static const char *words(struct analysis_change total, struct analysis_change of_function)
{
    static char text[1000];
    static const struct analysis_curve curve;
    const struct report_curves curves = {.before = &curve, .after = &curve};
    const struct report_difference d = {.curves = &curves, .size_bytes = 1 << 20};
    struct analysis_function_change row = {.function = "walk", .module = "/bin/walks", .misses = of_function};
    const struct analysis_function_changes changes = {.total = total, .rows = &row, .n = 1};
    FILE *out = fmemopen(text, sizeof text, "w");

    assert_non_null(out);
    assert_int_equal(report_changed_functions(out, &d, &changes, 0, ""), of_function.significant);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void test_functions(void **state)
{
    (void)state;
    assert_non_null(strstr(words(some, some), "-6.000  fewer misses  walk  (walks)\n"));
    assert_string_equal(
        words(none, none),
        "By function, no significant change of misses in a cache of 1M (--by function --size 1M: all).\n");
    assert_string_equal(words(none, noisy), words(none, none));
    /* The program misses less, and no function has enough samples to say where. */
    assert_string_equal(
        words(some, noisy),
        "Misses in a cache of 1M changed, but there are too few samples to say by which function "
        "(--by function --size 1M: all).\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_functions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
