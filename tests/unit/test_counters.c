/* SPDX-License-Identifier: Apache-2.0 */
/* Counters that do not count references are found out. Those that do are not on every machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "machine/counters.h"

/* As in a virtual machine whose counters stay at 0: no page fault is in the check. */
static void counts_nothing(void **state)
{
    (void)state;
    const struct counters c = {.n = 1,
                               .event = {{.name = "page-faults",
                                          .type = PERF_TYPE_SOFTWARE,
                                          .config = PERF_COUNT_SW_PAGE_FAULTS,
                                          .weight = 1}}};
    struct error err = {""};
    assert_int_equal(counters_check(&c, &err), -ENODEV);
    assert_non_null(strstr(err.text, "page-faults cannot be used: the kernel does not permit it") != NULL
                        ? err.text
                        : strstr(err.text, " of 2000000 references"));
}

/* The second event of a group does not exist: what was opened before is closed, and it is named. */
static void no_such_event(void **state)
{
    (void)state;
    const struct counters c = {.n = 2,
                               .event = {{.name = "task-clock",
                                          .type = PERF_TYPE_SOFTWARE,
                                          .config = PERF_COUNT_SW_TASK_CLOCK,
                                          .weight = 1},
                                         {.name = "none", .type = PERF_TYPE_SOFTWARE, .config = 12345}}};
    struct error err = {""};
    for (int i = 0; i < 2000; i++)
        assert_int_equal(counters_check(&c, &err), -ENODEV);
    assert_non_null(strstr(err.text, " cannot be used: "));
    assert_null(strstr(err.text, "Too many open files"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_nothing),
        cmocka_unit_test(no_such_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
