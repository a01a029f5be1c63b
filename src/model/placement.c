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

/* One thread's bursts, in order of time. */
static void place_thread(const struct placed *placed, size_t n, struct curve_burst *bursts,
                         const struct curve_time *times)
{
    double first = placed[0].cpu_ns, last = placed[n - 1].cpu_ns, start = 0, before_ns = 0, before_rate = 0;
    /* Gaps are as long before the first and after the last as between, all in all. */
    double total = last > first ? (last - first) * (double)n / (double)(n - 1) : 2 * first;

    for (size_t i = 0; i < n; i++) {
        double rate = times[placed[i].burst].refs_per_ns;
        struct curve_burst *burst = &bursts[placed[i].burst];
        start += (placed[i].cpu_ns - before_ns) * (i == 0 ? rate : (rate + before_rate) / 2);
        burst->start_refs = start;
        /* Not less than itself: of a thread that was met but once, right at its start, little more is known.
         */
        burst->weight = fmax((double)burst->references, rate * total / (double)n);
        before_ns = placed[i].cpu_ns;
        before_rate = rate;
    }
}

int curve_place_by_time(struct curve_burst *bursts, const struct curve_time *times, size_t n)
{
    struct placed *placed = malloc((n + 1) * sizeof *placed);

    if (!placed)
        return -ENOMEM;
    for (size_t b = 0; b < n; b++) {
        if (!isnan(bursts[b].start_refs) || !(times[b].refs_per_ns > 0)) {
            free(placed);
            return 0;
        }
        placed[b] = (struct placed){times[b].cpu_ns, bursts[b].thread, b};
    }
    qsort(placed, n, sizeof *placed, compare);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && placed[to].thread == placed[from].thread; to++)
            ;
        place_thread(placed + from, to - from, bursts, times);
    }
    free(placed);
    return n > 0;
}
