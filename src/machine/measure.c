/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.c - clocks, latencies and bandwidths of this machine.
 *
 * Latency: a chain of loads in which each loaded word is the address of the next one, in one random cycle
 * through all lines of a buffer; so nothing can be prefetched or overlapped. The time per load as a function
 * of the buffer's size is a staircase with a step at the end of each cache level. Huge pages are requested;
 * without them, steps of the TLB appear too.
 *
 * Other programs and the hypervisor can only slow a measurement down: the fastest of many short runs counts.
 * Each is measured in the thread's CPU time, which excludes other threads on the core.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/array.h"
#include "base/cycles.h"
#include "base/random.h"
#include "machine/bandwidth.h"
#include "machine/machine.h"

#define SMALLEST_BYTES 4096u
#define RUNS 16
/* Largest ratio of latencies of neighbouring sizes on the same step: from one half octave to the next, noise
 * and the TLB raise the latency by less, caches by more. */
#define PLATEAU_RISES 1.25
/* A level whose latency is not lower than that of the next one by this factor cannot be resolved. */
#define STEP_SMALLEST 1.3

static double now_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_s(void)
{
    return now_s(CLOCK_THREAD_CPUTIME_ID);
}

/* --- clocks --- */

/* The core clock is between so many times the TSC's, from the lowest to the highest frequency; otherwise the
 * measurement went wrong. */
#define CLOCK_LEAST 0.3
#define CLOCK_MOST 3.

static double measure_clock(double seconds)
{
    const uint64_t n = 1 << 20;
    double best = INFINITY, end = cpu_s() + seconds;
    do {
        double start = cpu_s();
        cycles_wait(n);
        best = fmin(best, cpu_s() - start);
    } while (cpu_s() < end);
    return (double)n / best;
}

/* Reads both clocks at one moment: of several tries, the one with the shortest time between two readings. */
static void both_clocks(uint64_t *tsc, double *time)
{
    double least = INFINITY;
    for (int i = 0; i < 32; i++) {
        double before = now_s(CLOCK_MONOTONIC);
        uint64_t counter = __builtin_ia32_rdtsc();
        double after = now_s(CLOCK_MONOTONIC);
        if (after - before < least) {
            least = after - before;
            *tsc = counter;
            *time = (before + after) / 2;
        }
    }
}

static double measure_tsc(double seconds)
{
    uint64_t from = 0, to = 0;
    double start = 0, end = 0;
    both_clocks(&from, &start);
    do
        both_clocks(&to, &end);
    while (end - start < seconds);
    return (double)(to - from) / (end - start);
}

/* --- latency --- */

/* One random cycle through all lines: Sattolo's shuffle. Each line's first word is the next line's address.
 */
static void make_chain(char *buffer, size_t lines, size_t line_bytes, uint32_t *order,
                       struct random_state *random)
{
    for (size_t i = 0; i < lines; i++)
        order[i] = (uint32_t)i;
    for (size_t i = lines - 1; i > 0; i--) {
        size_t k = random_below(random, i);
        uint32_t swapped = order[i];
        order[i] = order[k];
        order[k] = swapped;
    }
    for (size_t i = 0; i < lines; i++)
        *(void **)(buffer + order[i] * line_bytes) = buffer + order[(i + 1) % lines] * line_bytes;
}

static void **chase(void **p, uint64_t n)
{
    for (uint64_t i = 0; i < n; i += 8) {
        p = *p, p = *p, p = *p, p = *p;
        p = *p, p = *p, p = *p, p = *p;
    }
    __asm__ volatile("" : : "r"(p)); /* prevents removal of the loop */
    return p;
}

/* Loads that do not depend on each other: several times as fast as a chain. */
static void sweep(const char *buffer, size_t lines, size_t line_bytes)
{
    for (size_t i = 0; i < lines; i++)
        (void)*(const volatile char *)(buffer + i * line_bytes);
}

/*
 * A chain that returns to a line after milliseconds may find it evicted by other programs, for example on the
 * host of a virtual machine; then it takes still longer, and never holds as much of the cache as it could. So
 * a sweep fetches all lines before each run.
 */
static double measure_chain(char *buffer, size_t lines, size_t line_bytes, double seconds)
{
    uint64_t n = 1024;
    double best = INFINITY;
    void **p = chase((void **)buffer, lines + 8); /* also maps the pages */
    for (;;) { /* long enough for the clock: a run is a RUNS-th of the time */
        sweep(buffer, lines, line_bytes);
        double start = cpu_s();
        p = chase(p, n);
        double took = cpu_s() - start;
        if (took >= seconds / RUNS / 2)
            break;
        n *= 2;
    }
    for (int run = 0; run < RUNS; run++) {
        sweep(buffer, lines, line_bytes);
        double start = cpu_s();
        p = chase(p, n);
        best = fmin(best, (cpu_s() - start) / (double)n);
    }
    return best * 1e9;
}

static int measure_latency(struct machine *m, const struct machine_probe *probe, uint64_t largest,
                           const volatile int *interrupted, struct error *err)
{
    struct random_state random;
    char *buffer = mmap(NULL, largest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t *order = malloc(largest / m->line_bytes * sizeof *order);
    int code = 0;
    if (buffer == MAP_FAILED || !order) {
        code =
            error_set(err, -ENOMEM, "out of memory for a buffer of %llu bytes", (unsigned long long)largest);
    } else {
        madvise(buffer, largest, MADV_HUGEPAGE); /* if refused, the curve includes the TLB */
        random_seed(&random, 1);
        m->ncurve = 0;
        for (int half = 0; m->ncurve < MACHINE_CURVE && code == 0; half++) {
            uint64_t size = (uint64_t)(SMALLEST_BYTES * pow(2, half / 2.0)) / m->line_bytes * m->line_bytes;
            if (size > largest)
                break;
            size_t lines = size / m->line_bytes;
            make_chain(buffer, lines, m->line_bytes, order, &random);
            m->curve[m->ncurve].size_bytes = size;
            m->curve[m->ncurve++].ns = measure_chain(buffer, lines, m->line_bytes, probe->seconds_a_point);
            if (interrupted && *interrupted)
                code = error_set(err, -EINTR, "interrupted");
        }
    }
    if (buffer != MAP_FAILED)
        munmap(buffer, largest);
    free(order);
    return code;
}

/* Median of the curve between two sizes; if there is no point, the next larger one. */
static double plateau(const struct machine *m, double from, double to)
{
    double ns[MACHINE_CURVE];
    size_t n = 0;
    for (size_t i = 0; i < m->ncurve; i++)
        if ((double)m->curve[i].size_bytes >= from && (double)m->curve[i].size_bytes <= to)
            ns[n++] = m->curve[i].ns;
    for (size_t i = 0; n == 0 && i < m->ncurve; i++)
        if ((double)m->curve[i].size_bytes >= from)
            ns[n++] = m->curve[i].ns;
    if (n == 0)
        return NAN;
    qsort(ns, n, sizeof *ns, array_compare_doubles);
    return ns[n / 2];
}

/*
 * Returns the latency at the first three neighbouring sizes between `from` and `to` that have about the same
 * latency; NaN if there are none. The first: of a level that others use too, for example on the host of a
 * virtual machine, only a part may be left to us, and larger sizes have the latency of memory.
 */
static double first_plateau(const struct machine *m, double from, double to)
{
    for (size_t i = 0; i + 2 < m->ncurve; i++) {
        const struct machine_curve_point *c = &m->curve[i];
        if ((double)c[0].size_bytes < from || (double)c[2].size_bytes > to)
            continue;
        double least = fmin(c[0].ns, fmin(c[1].ns, c[2].ns)), most = fmax(c[0].ns, fmax(c[1].ns, c[2].ns));
        if (most <= PLATEAU_RISES * least)
            return c[0].ns + c[1].ns + c[2].ns - least - most;
    }
    return NAN;
}

void machine_find_levels(struct machine *m)
{
    double inner = 0;
    for (uint32_t l = 0; l < m->levels; l++) {
        double size = (double)m->level[l].size_bytes;
        /* Well inside: beyond the step of the inner level, and before its own. */
        m->level[l].latency_ns = first_plateau(m, 1.4 * inner, 0.75 * size);
        if (isnan(m->level[l].latency_ns))
            m->level[l].latency_ns = plateau(m, fmin(2 * inner, size / 2), 0.75 * size);
        m->level[l].latency_cycles = m->level[l].latency_ns * m->clock_hz * 1e-9;
        inner = size;
    }
    if (m->ncurve > 0 && (double)m->curve[m->ncurve - 1].size_bytes > 2 * inner) {
        m->memory.latency_ns = m->curve[m->ncurve - 1].ns;
        m->memory.latency_cycles = m->memory.latency_ns * m->clock_hz * 1e-9;
    }
    for (uint32_t l = 0; l < m->levels; l++) {
        double outer = l + 1 < m->levels ? m->level[l + 1].latency_ns : m->memory.latency_ns;
        double step = sqrt(m->level[l].latency_ns * outer);
        m->level[l].measured_bytes = 0;
        if (!(outer > STEP_SMALLEST * m->level[l].latency_ns))
            continue;
        /* The last point below: disturbances make points slower, never faster. */
        for (size_t i = 0; i < m->ncurve; i++)
            if (m->curve[i].ns < step)
                m->level[l].measured_bytes = m->curve[i].size_bytes;
    }
}

int machine_measure(struct machine *machine, const struct machine_probe *probe,
                    const volatile int *interrupted, struct error *err)
{
    uint64_t outer = machine->level[machine->levels - 1].size_bytes;
    uint64_t largest = probe->largest_bytes ? probe->largest_bytes : 4 * outer;
    if (!probe->largest_bytes && largest > MACHINE_LARGEST_BYTES)
        largest = MACHINE_LARGEST_BYTES;
    if (largest < SMALLEST_BYTES)
        return error_set(err, -EINVAL, "the largest buffer must have %u bytes or more", SMALLEST_BYTES);
    machine->clock_hz = measure_clock(probe->seconds_a_point);
    machine->tsc_hz = measure_tsc(probe->seconds_a_point);
    if (!(machine->clock_hz >= CLOCK_LEAST * machine->tsc_hz &&
          machine->clock_hz <= CLOCK_MOST * machine->tsc_hz))
        machine->clock_hz = NAN;
    int code = measure_latency(machine, probe, largest, interrupted, err);
    if (code != 0)
        return code;
    machine_find_levels(machine);
    for (uint32_t l = 0; l <= machine->levels && code == 0; l++)
        code = bandwidth_measure(machine, l, probe, interrupted, err);
    size_t length = strlen(machine->source);
    snprintf(machine->source + length, sizeof machine->source - length,
             "; latencies, bandwidths and clocks: measured by cachegram");
    return code;
}
