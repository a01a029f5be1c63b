/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that block SIGTRAP: their CPU time between two looks. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock-ns.h"
#include "collect/drain/refusals.h"

#define MS UINT64_C(1000000)

/* Uses more CPU time than a process may without being looked at. */
static void work(void)
{
    uint64_t until = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + 30 * MS;
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
        ;
}

static void test_time_between_looks(void **state)
{
    static struct wire_proc proc;
    struct blocked b = {0};
    sigset_t trap;
    (void)state;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    sigprocmask(SIG_BLOCK, &trap, NULL);
    work();
    blocked_look(&b, &proc, getpid());
    assert_int_equal(b.n, 1);
    assert_int_equal(b.ns, 0);
    work();
    blocked_look(&b, &proc, getpid());
    assert_true(b.ns >= 20 * MS);
    /* A thread that has ended has the CPU time 0, and its number may be that of a new one by now. */
    b.ns = 0;
    b.thread[0].cpu_ns = UINT64_C(3600000) * MS;
    work();
    blocked_look(&b, &proc, getpid());
    assert_int_equal(b.n, 1);
    assert_int_equal(b.ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_time_between_looks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
