/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time-weights.c - weights of bursts that were placed by CPU time (docs/methods.md, section 7).
 *
 * Problem. Bursts at random moments of a thread's CPU time fall more often, for each reference, where the
 * thread is slow. An unweighted mean over bursts is biased towards the code that misses.
 *
 * Method. Each of a thread's n bursts represents 1/n of its CPU time. At the rate of references measured at
 * the burst that is rate * time / n references. (Weighting by the references between neighbouring bursts is
 * unbiased too, but the random length of a gap says nothing about the burst: it only adds variance.)
 * Integrating the rates, linear between bursts, gives each burst's position in references.
 *
 * If the budget changed the time between bursts during the run, a burst represents the time that was planned
 * for it. A burst without a rate takes the rate interpolated between its neighbours in time; a thread without
 * any rate takes the mean over all threads.
 *
 * Example: bursts at 1 s and 3 s, with 1 and 3 references per ns. The CPU time is 4 s, so they represent 2e9
 * and 6e9 references; they begin at reference 1e9 and 1e9 + 2 s * 2/ns = 5e9.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/watched.h"

struct placed {
    double cpu_ns;
    uint32_t thread;
    size_t burst;
};

static int compare(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->cpu_ns > y->cpu_ns) - (x->cpu_ns < y->cpu_ns);
}

/* The rate of burst i: its own, or interpolated between the thread's other bursts; NaN if none has one. */
static double rate_at(const struct placed *placed, size_t n, size_t i, const struct curve_time *times)
{
    size_t before = i, after = i;

    while (before > 0 && isnan(times[placed[before].burst].refs_per_ns))
        before--;
    while (after < n - 1 && isnan(times[placed[after].burst].refs_per_ns))
        after++;
    double low = times[placed[before].burst].refs_per_ns, high = times[placed[after].burst].refs_per_ns;
    if (isnan(low) || before == after)
        return high;
    if (isnan(high) || !(placed[after].cpu_ns > placed[before].cpu_ns))
        return low;
    double share =
        (placed[i].cpu_ns - placed[before].cpu_ns) / (placed[after].cpu_ns - placed[before].cpu_ns);
    return low + (high - low) * share;
}

/* The thread's position in references, and its CPU time, at the start of the last of its bursts that were
 * placed by references; 0 if it has none. */
static void find_counted(const struct curve_burst *bursts, const struct curve_time *times, size_t n,
                         uint32_t thread, double *refs, double *cpu_ns)
{
    *refs = *cpu_ns = 0;
    for (size_t b = 0; b < n; b++)
        if (times[b].counted && bursts[b].thread == thread && times[b].cpu_ns > *cpu_ns) {
            *refs = bursts[b].start_refs;
            *cpu_ns = times[b].cpu_ns;
        }
}

/* Weights one thread's bursts, given in order of time; it was at `start` references at before_ns.
 * default_rate is the rate to use if none of them has one; each_ns: the time that a unit of planned_ns
 * represents, 0: not known. */
static void weight_thread(const struct placed *placed, size_t n, double start, double before_ns,
                          double default_rate, double each_ns, struct curve_burst *bursts,
                          const struct curve_time *times)
{
    double first = placed[0].cpu_ns, last = placed[n - 1].cpu_ns, before_rate = 0;
    /* The gap before the first burst and the one after the last are together as long as a mean gap. */
    double total = last > first ? (last - first) * (double)n / (double)(n - 1) : 2 * (first - before_ns),
           planned = 0;

    for (size_t i = 0; i < n; i++)
        planned += times[placed[i].burst].planned_ns;
    if (each_ns > 0)
        total = each_ns * planned;
    for (size_t i = 0; i < n; i++) {
        const struct curve_time *time = &times[placed[i].burst];
        double rate = rate_at(placed, n, i, times);
        double share = planned > 0 ? time->planned_ns / planned : 1 / (double)n;
        struct curve_burst *burst = &bursts[placed[i].burst];
        if (isnan(rate))
            rate = default_rate;
        start += (placed[i].cpu_ns - before_ns) * (i == 0 ? rate : (rate + before_rate) / 2);
        burst->start_refs = start;
        /* At least the burst's own references: a thread may have had a single burst, right at its start. */
        double each = time->references_each > 0 ? time->references_each : 1;
        burst->weight = fmax((double)burst->references, rate * total * share * each);
        burst->log_rate = rate > 0 && default_rate > 0 ? log(rate / default_rate) : 0;
        before_ns = placed[i].cpu_ns;
        before_rate = rate;
    }
}

int curve_weight_by_time(struct curve_burst *bursts, const struct curve_time *times, size_t n, double all_ns)
{
    struct placed *placed = malloc((n + 1) * sizeof *placed);
    double sum = 0, planned = 0, start, before_ns;
    size_t known = 0, used = 0;

    if (!placed)
        return -ENOMEM;
    for (size_t b = 0; b < n; b++) {
        if (times[b].counted)
            continue;
        if (!isnan(bursts[b].start_refs)) {
            free(placed);
            return 0;
        }
        if (times[b].refs_per_ns > 0) {
            sum += times[b].refs_per_ns;
            known++;
        }
        planned += times[b].planned_ns;
        placed[used++] = (struct placed){times[b].cpu_ns, bursts[b].thread, b};
    }
    if (known == 0 || 2 * known < used) {
        free(placed);
        return 0;
    }
    qsort(placed, used, sizeof *placed, compare);
    for (size_t from = 0, to; from < used; from = to) {
        for (to = from + 1; to < used && placed[to].thread == placed[from].thread; to++)
            ;
        find_counted(bursts, times, n, placed[from].thread, &start, &before_ns);
        weight_thread(placed + from, to - from, start, before_ns, sum / (double)known,
                      planned > 0 ? all_ns / planned : 0, bursts, times);
    }
    free(placed);
    return 1;
}
