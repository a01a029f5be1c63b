/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.c - the threshold between cache and memory, and the verdict.
 *
 * Calibration gives two distributions of times. Each has a long tail to the right (memory refresh,
 * interrupts) and none to the left. So the threshold is the geometric mean of a high quantile of the hits and
 * a low quantile of the misses, and the shares on the wrong side are stored. Misses that look like hits make
 * the fetch ratio too small, so it is divided by the share that is detected; hits that look like misses only
 * make it too large, which is safe.
 *
 * Example: hits at 100 ticks (p95 150), misses at 440 (p5 380): threshold sqrt(150 * 380) = 239. 3 slow of
 * 1000 probes: fetch ratio 0.3%, interval up to 0.88%: proven at the limit of 1%. 3 of 500: 0.6%, up to
 * 1.75%: not proven.
 */
#include "pirate/hold.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Least factor between the two; a smaller one is not safe against changing load. */
#define LEAST_FACTOR 1.25
/* Largest share of each that may be on the wrong side. */
#define CONFUSED 0.05
/* A load that takes longer than so many typical loads from memory was interrupted. */
#define INTERRUPTED 10.0
#define NORMAL_95 1.96

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double quantile(const uint32_t *sorted, size_t n, double q)
{
    return sorted[(size_t)(q * (double)(n - 1))];
}

/* Share of values above the limit. */
static double above(const uint32_t *sorted, size_t n, double limit)
{
    size_t k = n;
    while (k > 0 && sorted[k - 1] > limit)
        k--;
    return (double)(n - k) / (double)n;
}

int hold_calibrate(uint32_t *hit_ticks, size_t hits, uint32_t *miss_ticks, size_t misses,
                   struct hold_scale *scale, struct error *err)
{
    if (hits < HOLD_CALIBRATION || misses < HOLD_CALIBRATION)
        return error_set(err, -EINVAL, "too few timed loads to distinguish cache from memory");
    qsort(hit_ticks, hits, sizeof *hit_ticks, compare);
    qsort(miss_ticks, misses, sizeof *miss_ticks, compare);
    struct hold_scale s = {.hit_median = quantile(hit_ticks, hits, 0.5),
                           .hit_p95 = quantile(hit_ticks, hits, 0.95),
                           .miss_p5 = quantile(miss_ticks, misses, 0.05),
                           .miss_median = quantile(miss_ticks, misses, 0.5)};
    s.threshold = sqrt(s.hit_p95 * s.miss_p5);
    s.slow_hits = above(hit_ticks, hits, s.threshold);
    s.fast_misses = 1 - above(miss_ticks, misses, s.threshold);
    s.longest = INTERRUPTED * s.miss_median;
    if (!(s.miss_p5 > LEAST_FACTOR * s.hit_p95) || s.slow_hits > CONFUSED || s.fast_misses > CONFUSED)
        return error_set(err, -ENOTSUP,
                         "loads from the last-level cache (up to %.0f ticks) and from memory (from %.0f) "
                         "cannot be distinguished by time here, so it cannot be verified that the Pirate "
                         "holds its cache: try on a quieter machine",
                         s.hit_p95, s.miss_p5);
    *scale = s;
    return 0;
}

/* Upper end of Wilson's 95% interval for k of n (Wilson 1927). */
static double wilson_upper(double k, double n)
{
    const double z2 = NORMAL_95 * NORMAL_95;
    double p = k / n;
    return (p + z2 / (2 * n) + NORMAL_95 * sqrt(p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n);
}

struct hold_verdict hold_judge(const struct hold_count *count, const struct hold_scale *scale, double limit)
{
    struct hold_verdict v = {.fetch_ratio = NAN, .fetch_ratio_upper = NAN, .lost_share = NAN};
    if (count->ticks > 0)
        v.lost_share = (double)count->lost_ticks / (double)count->ticks;
    if (count->probes > 0) {
        double n = (double)count->probes, k = (double)count->slow, seen = 1 - scale->fast_misses;
        v.fetch_ratio = fmin(k / n / seen, 1);
        v.fetch_ratio_upper = fmin(wilson_upper(k, n) / seen, 1);
    }
    v.proven = v.fetch_ratio_upper < limit && v.lost_share < limit; /* false where one is NaN */
    return v;
}

struct hold_count hold_since(const struct hold_count *earlier, const struct hold_count *later)
{
    return (struct hold_count){.probes = later->probes - earlier->probes,
                               .slow = later->slow - earlier->slow,
                               .interrupted = later->interrupted - earlier->interrupted,
                               .ticks = later->ticks - earlier->ticks,
                               .lost_ticks = later->lost_ticks - earlier->lost_ticks,
                               .lines = later->lines - earlier->lines};
}

void hold_add(struct hold_count *into, const struct hold_count *count)
{
    into->probes += count->probes;
    into->slow += count->slow;
    into->interrupted += count->interrupted;
    into->ticks += count->ticks;
    into->lost_ticks += count->lost_ticks;
    into->lines += count->lines;
}
