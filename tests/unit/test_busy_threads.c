/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads worked at the same time, from profiles with known windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/busy-threads.h"
#include "profile/windows.h"

static struct profile *p;

static int begin(void **state)
{
    struct error err;
    char name[] = "/tmp/test_busy_threads-XXXXXX";
    (void)state;
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    unlink(name);
    assert_int_equal(profile_create(name, &p, &err), 0);
    unlink(name);
    return 0;
}

static int end(void **state)
{
    (void)state;
    profile_close(p, 0, NULL);
    return 0;
}

/* One window of a thread; exact: with so many references. */
static void add_window(uint64_t process, uint32_t tid, int exact, uint64_t start, uint64_t end_ns,
                       uint64_t references, uint64_t cpu_ns)
{
    static struct hist none;
    static uint64_t id;
    struct error err;
    const struct profile_time_window w = {.id = ++id,
                                          .process = process,
                                          .tid = tid,
                                          .exact = exact,
                                          .start_ns = start,
                                          .end_ns = end_ns,
                                          .cpu_ns = cpu_ns,
                                          .references = references};
    assert_int_equal(profile_add_time_window(p, &w, exact ? &none : NULL, NULL, &err), 0);
}

/* Likewise; exact: `work` references, otherwise so many ns of CPU time. */
static void add(uint64_t process, uint32_t tid, int exact, uint64_t start, uint64_t end_ns, uint64_t work)
{
    add_window(process, tid, exact, start, end_ns, exact ? work : 0, exact ? 0 : work);
}

static void expect(size_t threads, size_t processes, double parallel)
{
    struct analysis_busy busy = analysis_busy_threads(p);
    assert_int_equal(busy.processes, processes);
    assert_int_equal(busy.threads, threads);
    assert_true(busy.parallel > parallel - 1e-9 && busy.parallel < parallel + 1e-9);
}

/* A shell that waits for its only child: all of it was recorded, in one window, and the child sampled later.
 */
static void waiting_shell(void **state)
{
    (void)state;
    add_window(1, 1, 1, 0, 10000, 15, 60);
    add_window(2, 2, 1, 100, 300, 1000, 150);
    add(2, 2, 0, 300, 10000, 9000);
    expect(1, 1, 1);
}

/* Of two processes that work all the time one is recorded longer than the other. */
static void recorded_longer(void **state)
{
    (void)state;
    add_window(1, 1, 1, 0, 5000, 200, 4500);
    add_window(2, 2, 1, 0, 100, 1000, 90);
    add(1, 1, 0, 5000, 10000, 4500);
    add(2, 2, 0, 100, 10000, 9000);
    expect(1, 2, 1);
}

static void nothing(void **state)
{
    (void)state;
    expect(0, 0, 1);
}

/* However many there are: each of 64 has less than 2% of the work. */
static void many_equal(void **state)
{
    (void)state;
    for (uint32_t tid = 1; tid <= 64; tid++)
        for (int exact = 0; exact < 2; exact++)
            add(1, tid, exact, exact ? 0 : 100, exact ? 100 : 1000, 500);
    expect(64, 1, 64);
}

/* A thread that only waits for the others, and one that does little. */
static void main_and_helper(void **state)
{
    (void)state;
    add(1, 1, 0, 0, 1000, 10);
    add(1, 2, 0, 0, 1000, 940);
    add(1, 3, 0, 0, 1000, 50);
    expect(1, 1, 1.0);
}

/* A thread that works a little, starts three others and waits for them; and a process that waits for all. */
static void those_that_wait(void **state)
{
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        uint64_t start = exact ? 0 : 20000;
        add(1, 1, exact, start, start + 1000, 1000);
        add(1, 1, exact, start + 1000, start + 12000, 1000);
        for (uint32_t tid = 2; tid <= 4; tid++)
            for (uint64_t i = 0; i < 10; i++)
                add(1, tid, exact, start + 1100 + 1000 * i, start + 2100 + 1000 * i, 1000);
        add(2, 5, exact, start, start + 500, 2000);
        add(2, 5, exact, start + 500, start + 12000, 200);
    }
    expect(3, 1, 3);
}

static void unequal(void **state)
{
    (void)state;
    add(1, 1, 0, 0, 1000, 600);
    add(1, 2, 0, 0, 1000, 300);
    expect(2, 1, 1.5);
}

/* A thousand threads, of which three work at a time, and a process of little work with two. */
static void one_after_the_other(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 1000; i++)
        add(1, i + 10, 1, 100 * (i / 3), 100 * (i / 3) + 100, 1000);
    add(2, 5000, 1, 0, 1000, 10000);
    add(2, 5001, 1, 0, 1000, 10000);
    expect(3, 1, 3);
}

static void processes(void **state)
{
    (void)state;
    for (uint64_t process = 1; process <= 8; process++)
        add(process, 1, 0, 0, 1000, 1000);
    add(9, 1, 0, 1000, 2000, 1000); /* after the others */
    expect(1, 8, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {TEST(nothing),         TEST(many_equal),    TEST(main_and_helper),
                                       TEST(those_that_wait), TEST(unequal),       TEST(one_after_the_other),
                                       TEST(processes),       TEST(waiting_shell), TEST(recorded_longer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
