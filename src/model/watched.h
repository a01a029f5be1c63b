/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watched.h - curves from bursts whose survivors were watched. What curve.h's curve_bursts can only bound,
 * the part of the curve beyond a burst's reach, comes from what became of the lines that bursts left behind.
 */
#ifndef CACHEGRAM_WATCHED_H
#define CACHEGRAM_WATCHED_H

#include <stddef.h>
#include <stdint.h>

#include "model/curve.h"

/*
 * Fully associative LRU. low..high: 95% band, of sampling noise (bootstrap over bursts, seeded; at least
 * what so few watches leave open) and of the model's own error as measured (docs/accuracy.md). Parts of the
 * run that no burst met are not in it. Where watches are too few, or all were given up too soon and more than
 * .1 points hang on that, miss_ratio is NaN, and low..high are bounds as those of curve_bursts.
 */
int curve_watched(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes, uint64_t seed,
                  struct curve_point *points, size_t n, struct error *err);

/* Random replacement (StatCache, METHODS.md 2) from the same reuse distances; bands and NaN likewise. */
int curve_watched_statcache(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                            uint64_t seed, struct curve_point *points, size_t n, struct error *err);

/*
 * LRU within the sets of a cache of `ways` ways (1 .. CURVE_SETS_WAYS), from the bursts that looked at sets.
 * Every size must have a power of two of sets, else -EINVAL. From more than 2^CURVE_SETS_LEVELS sets on there
 * are no conflicts inside bursts. All NaN where no burst looked.
 */
int curve_ways(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes, unsigned ways,
               uint64_t seed, struct curve_point *points, size_t n, struct error *err);

/*
 * When a burst was, on its thread's CPU clock; how fast the thread ran natively around it (NaN: not known);
 * how much CPU time the burst was planned to stand for, in any unit (all 0: each as much as the others); and
 * how many references it has for each of those that the rate counts, if these are not all (0: they are).
 */
struct curve_time {
    double cpu_ns, refs_per_ns, planned_ns, references_each;
};
/*
 * Bursts placed by CPU time: sets weight and start_refs of all by the local rates, if no burst has a
 * start_refs and at least half of them have a rate; else nothing is changed. 1 if it was done, 0 if not,
 * -ENOMEM.
 */
int curve_place_by_time(struct curve_burst *bursts, const struct curve_time *times, size_t n);

/*
 * Parts of the run shorter than this share of it may have been missed by all of n bursts: 3 / n, as
 * (1 - 3/n)^n is 5% (the "rule of three").
 */
double curve_unseen_share(size_t nbursts);

#endif
