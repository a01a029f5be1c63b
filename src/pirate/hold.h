/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.h - whether the Pirate holds its set, from the duration of single loads, without counters: pure.
 *
 * Loads from the last-level cache and from memory differ by a factor of about three. The Pirate times one
 * load in a few hundred, always of the line that it has not touched for longest, and counts the slow ones.
 * Their share is its fetch ratio (Eklov's thesis, III.3.1), sampled.
 */
#ifndef CACHEGRAM_MACHINE_HOLD_H
#define CACHEGRAM_MACHINE_HOLD_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Separates hits in the last level from memory accesses on this machine. Times in ticks of the time stamp
 * counter. */
struct hold_scale {
    double threshold; /* slower than this: from memory */
    double hit_median, hit_p95, miss_p5, miss_median;
    double slow_hits;   /* share of known hits above the threshold */
    double fast_misses; /* share of known misses below the threshold */
    double longest;     /* slower loads were interrupted, and are not counted */
};

/*
 * Determines the threshold from loads known to hit and loads known to miss; sorts both arrays. -ENOTSUP with
 * err filled if the two overlap too much for a proof; -EINVAL for fewer than HOLD_CALIBRATION of either.
 */
#define HOLD_CALIBRATION 1000u
int hold_calibrate(uint32_t *hit_ticks, size_t hits, uint32_t *miss_ticks, size_t misses,
                   struct hold_scale *scale, struct error *err);

/*
 * Observations of one Pirate thread, or of all, in an interval. The difference of two readings is one, too.
 */
struct hold_count {
    uint64_t probes, slow;      /* timed loads that count, and those of them above the threshold */
    uint64_t interrupted;       /* timed loads that were interrupted, and do not count */
    uint64_t ticks, lost_ticks; /* duration, and the part of it in which the Pirate did not run (another
                                   program, the host) */
    uint64_t lines;             /* swept */
};

struct hold_verdict {
    double fetch_ratio;       /* of the Pirate; NaN: no probes */
    double fetch_ratio_upper; /* upper end of its 95% interval (Wilson), assuming independent probes */
    double lost_share;        /* of the time */
    int proven;               /* fetch_ratio_upper and lost_share are both below the limit */
};

/* Eklov's limit for a valid measurement: below it the Pirate has 99% of its set or more (III.4.3). */
#define HOLD_LIMIT 0.01
struct hold_verdict hold_judge(const struct hold_count *count, const struct hold_scale *scale, double limit);

/* later - earlier, and into += count. */
struct hold_count hold_since(const struct hold_count *earlier, const struct hold_count *later);
void hold_add(struct hold_count *into, const struct hold_count *count);

#endif
