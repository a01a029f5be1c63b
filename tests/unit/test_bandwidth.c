/* SPDX-License-Identifier: Apache-2.0 */
/* Which cores and how much memory bandwidths are measured with: on four CPUs that the test makes up. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/read-text.h"
#include "machine/bandwidth.h"

#define CPUS 4

/* CPUs 0 and 1, and 2 and 3, are of one core each; or all are cores. */
static int pairs;
/* Threads that can still be started. */
static int threads;

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void)pid;
    CPU_ZERO_S(size, set);
    for (size_t cpu = 0; cpu < CPUS; cpu++)
        CPU_SET_S(cpu, size, set);
    return 0;
}

ssize_t read_text(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int cpu = va_arg(args, int);
    va_end(args);
    assert_non_null(strstr(format, "thread_siblings_list"));
    return pairs ? snprintf(text, size, "%d-%d\n", cpu / 2 * 2, cpu / 2 * 2 + 1) : -ENOENT;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *context)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return threads-- > 0 ? real(thread, attributes, work, context) : EAGAIN;
}

/* A cache of 64 KB for every two cores. */
static size_t measure(struct machine *m, uint32_t level, uint64_t largest)
{
    const struct machine_probe probe = {.seconds_a_point = 1e-5, .largest_bytes = largest};
    struct error err;
    *m = (struct machine){
        .cores = CPUS, .levels = 1, .level = {{.size_bytes = 1 << 16, .shared_by = CPUS / 2}}};
    assert_int_equal(bandwidth_measure(m, level, &probe, NULL, &err), 0);
    return level == m->levels ? m->memory.nbandwidth : m->level[level].nbandwidth;
}

static void test_cores(void **state)
{
    (void)state;
    static struct machine m;
    threads = 1000;
    pairs = 0;
    assert_int_equal(measure(&m, 0, 0), CPUS);
    pairs = 1; /* two threads on one core would share its private caches */
    assert_int_equal(measure(&m, 0, 0), CPUS / 2);
    pairs = 0;
}

/* Buffers for memory must exceed the caches of all cores that use them, or they show the caches. */
static void test_memory(void **state)
{
    (void)state;
    static struct machine m;
    threads = 1000;
    assert_int_equal(measure(&m, 1, 0), CPUS);
    assert_true(m.memory.bandwidth[CPUS - 1].read_gbps > 0);
    assert_int_equal(measure(&m, 1, 128 << 10), 0); /* twice the first core's cache */
    assert_int_equal(measure(&m, 1, 200 << 10), 1);
    assert_int_equal(measure(&m, 1, 300 << 10), CPUS); /* both caches, from two cores on */
}

/* The threads that were started do not wait for the others for ever. */
static void test_too_few_threads(void **state)
{
    (void)state;
    static struct machine m;
    threads = 3 + 3 * 2 + 1;
    assert_int_equal(measure(&m, 0, 0), CPUS);
    assert_true(m.level[0].bandwidth[1].copy_gbps > 0);
    assert_true(isnan(m.level[0].bandwidth[2].read_gbps));
    assert_true(isnan(m.level[0].bandwidth[CPUS - 1].copy_gbps));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cores), cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_too_few_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
