/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement.c - weights of bursts that were placed by time.
 *
 * Problem. Bursts at random times of a thread's CPU time are more frequent, per reference, where the thread
 * is slow: a mean over them leans to the parts that miss.
 *
 * Method. Each of a thread's n bursts stands for the n-th part of its CPU time; at the rate of references
 * found around the burst that is rate * time / n references. (The references between neighbouring bursts
 * would do too, but that a gap happens to be long says nothing of the burst beside it: it only adds noise.)
 * Summing the rates up, linear between bursts, gives the bursts' places in references, for the paths of
 * watched lines.
 *
 * Where the time between bursts was changed on the way, to keep a budget, a burst stands for a part as long
 * as was planned for it. A burst without a rate takes what its neighbours in time have, linear between them;
 * a thread without any, the mean of all.
 *
 * Example: bursts at 1 s and 3 s, with 1 and 3 references a ns: 4 s of CPU time, so they stand for 2e9 and
 * 6e9 references; they begin at 1e9 and 1e9 + 2 s * 2/ns = 5e9.
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

/* The rate of burst i: its own, or that of the thread's neighbours; NaN: none of them has one. */
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

/* One thread's bursts, in order of time; `usual`: the rate if none of them has one. */
static void place_thread(const struct placed *placed, size_t n, double usual, struct curve_burst *bursts,
                         const struct curve_time *times)
{
    double first = placed[0].cpu_ns, last = placed[n - 1].cpu_ns, start = 0, before_ns = 0, before_rate = 0;
    /* Gaps are as long before the first and after the last as between, all in all. */
    double total = last > first ? (last - first) * (double)n / (double)(n - 1) : 2 * first, planned = 0;

    for (size_t i = 0; i < n; i++)
        planned += times[placed[i].burst].planned_ns;
    for (size_t i = 0; i < n; i++) {
        const struct curve_time *time = &times[placed[i].burst];
        double rate = rate_at(placed, n, i, times);
        double share = planned > 0 ? time->planned_ns / planned : 1 / (double)n;
        struct curve_burst *burst = &bursts[placed[i].burst];
        if (isnan(rate))
            rate = usual;
        start += (placed[i].cpu_ns - before_ns) * (i == 0 ? rate : (rate + before_rate) / 2);
        burst->start_refs = start;
        /* Not less than itself: of a thread that was met but once, right at its start, little more is known.
         */
        double each = time->references_each > 0 ? time->references_each : 1;
        burst->weight = fmax((double)burst->references, rate * total * share * each);
        burst->log_rate = rate > 0 && usual > 0 ? log(rate / usual) : 0;
        before_ns = placed[i].cpu_ns;
        before_rate = rate;
    }
}

int curve_place_by_time(struct curve_burst *bursts, const struct curve_time *times, size_t n)
{
    struct placed *placed = malloc((n + 1) * sizeof *placed);
    double sum = 0;
    size_t known = 0;

    if (!placed)
        return -ENOMEM;
    for (size_t b = 0; b < n; b++) {
        if (!isnan(bursts[b].start_refs)) {
            free(placed);
            return 0;
        }
        if (times[b].refs_per_ns > 0) {
            sum += times[b].refs_per_ns;
            known++;
        }
        placed[b] = (struct placed){times[b].cpu_ns, bursts[b].thread, b};
    }
    if (known == 0 || 2 * known < n) {
        free(placed);
        return 0;
    }
    qsort(placed, n, sizeof *placed, compare);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && placed[to].thread == placed[from].thread; to++)
            ;
        place_thread(placed + from, to - from, sum / (double)known, bursts, times);
    }
    free(placed);
    return 1;
}
