/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.h - does the Pirate hold its set? Told from how long single loads take, without counters: pure.
 *
 * A load that the last-level cache serves and one that memory serves differ by a factor of three or so. The
 * Pirate times one load in a few hundred, always of a line that it has left alone longest, and counts the
 * slow ones: their share is its fetch ratio (Eklov's thesis, III.3.1), in samples.
 */
#ifndef CACHEGRAM_MACHINE_HOLD_H
#define CACHEGRAM_MACHINE_HOLD_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* What separates hits of the last level from memory on this machine. Times in ticks of the time stamp
 * counter. */
struct hold_scale {
    double threshold; /* slower than this: from memory */
    double hit_median, hit_p95, miss_p5, miss_median;
    double slow_hits;   /* share of known hits above the threshold: taken for misses */
    double fast_misses; /* share of known misses below it: taken for hits */
    double longest;     /* slower than this was interrupted, and tells nothing */
};

/*
 * Finds the threshold from loads known to hit and loads known to miss; sorts both arrays. -ENOTSUP where the
 * two overlap too much for a proof, with a sentence that says so; -EINVAL for fewer than HOLD_CALIBRATION of
 * either.
 */
#define HOLD_CALIBRATION 1000u
int hold_calibrate(uint32_t *hit_ticks, size_t hits, uint32_t *miss_ticks, size_t misses,
                   struct hold_scale *scale, struct error *err);

/* What one Pirate thread, or all together, saw in a stretch of time. Differences of two readings are one,
 * too. */
struct hold_count {
    uint64_t probes, slow; /* timed loads that count, and those above the threshold */
    uint64_t interrupted;  /* timed loads that were cut into, and do not */
    uint64_t ticks,
        lost_ticks; /* time, and how much of it the Pirate did not run (another program, the host) */
    uint64_t lines; /* swept */
};

struct hold_verdict {
    double fetch_ratio;       /* of the Pirate; NaN: no probes */
    double fetch_ratio_upper; /* upper end of its 95% interval (Wilson), where probes are independent */
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
