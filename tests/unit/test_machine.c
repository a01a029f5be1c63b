/* SPDX-License-Identifier: Apache-2.0 */
/* Levels from latency curves: staircases as machines show them. Debug registers that work, or do not. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/breakpoints.h"
#include "machine/machine.h"

#define K 1024.0

/* 48 KB, 1 MB and 32 MB are reported; latencies by half octaves from 4 KB to 128 MB, with steps at these. */
static void make(struct machine *m, const double ends[3], const double ns[4])
{
    static const uint64_t reported[3] = {48 << 10, 1 << 20, 32 << 20};
    memset(m, 0, sizeof *m);
    m->clock_hz = 4e9;
    m->levels = 3;
    for (int l = 0; l < 3; l++)
        m->level[l].size_bytes = reported[l];
    for (double size = 4 * K; size <= 128 * K * K; size *= sqrt(2)) {
        int step = 0;
        while (step < 3 && size > ends[step])
            step++;
        m->curve[m->ncurve].size_bytes = (uint64_t)size;
        /* Some percent of rise within a level. */
        m->curve[m->ncurve].ns = ns[step] * (1 + 0.004 * (double)m->ncurve);
        m->ncurve++;
    }
    machine_find_levels(m);
}

static void check(const struct machine *m, const double ends[3], const double ns[4])
{
    for (int l = 0; l < 3; l++) {
        double latency = m->level[l].latency_ns, measured = (double)m->level[l].measured_bytes;
        assert_true(latency >= ns[l] && latency < 1.25 * ns[l]);
        assert_true(fabs(m->level[l].latency_cycles - 4 * latency) < 1e-9);
        assert_true(measured <= ends[l] && measured * 1.5 > ends[l]);
    }
    assert_true(m->memory.latency_ns >= ns[3] && m->memory.latency_ns < 1.25 * ns[3]);
}

static void test_as_reported(void **state)
{
    (void)state;
    static struct machine m;
    const double ends[3] = {48 * K, K * K, 32 * K * K}, ns[4] = {1, 3.7, 14.5, 140};
    make(&m, ends, ns);
    check(&m, ends, ns);
}

/* Of the 32 MB that are reported most is others': the level is what begins beyond the inner one. */
static void test_less_than_reported(void **state)
{
    (void)state;
    static struct machine m;
    const double ends[3] = {48 * K, K * K, 3 * K * K}, ns[4] = {1, 3.7, 14.5, 140};
    make(&m, ends, ns);
    check(&m, ends, ns);
}

/* Nothing of it is ours: it is as slow as memory, and no size is reported. */
static void test_level_that_does_not_show(void **state)
{
    (void)state;
    static struct machine m;
    const double ends[3] = {48 * K, K * K, K * K}, ns[4] = {1, 3.7, 14.5, 140};
    make(&m, ends, ns);
    assert_true(m.level[2].latency_ns >= 140);
    assert_int_equal(m.level[2].measured_bytes, 0);
    assert_true(m.level[1].latency_ns < 4.3);
}

/* What perf events count comes from this file instead; NULL: there are none. */
static const char *counts;

long syscall(long number, ...)
{
    if (number != SYS_perf_event_open || !counts) {
        errno = ENOSYS;
        return -1;
    }
    return open(counts, O_RDONLY | O_CLOEXEC);
}

static void test_breakpoints(void **state)
{
    (void)state;
    counts = "/proc/self/exe";
    assert_int_equal(breakpoints_fire(), 1);
    counts = "/dev/zero";
    assert_int_equal(breakpoints_fire(), 0);
    counts = NULL;
    assert_int_equal(breakpoints_fire(), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_reported),
        cmocka_unit_test(test_less_than_reported),
        cmocka_unit_test(test_level_that_does_not_show),
        cmocka_unit_test(test_breakpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
