/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watched.h - miss-ratio curves from bursts with watched lines (docs/methods.md, section 6). curve_bursts of
 * curve.h can only bound the part of the curve beyond a burst's reach; watched lines estimate it.
 */
#ifndef CACHEGRAM_WATCHED_H
#define CACHEGRAM_WATCHED_H

#include <stddef.h>
#include <stdint.h>

#include "model/curve.h"

/* 0, or -EINVAL with what is not possible in these bursts or their watched lines. All models below check it.
 */
int curve_check_watched(const struct curve_burst *bursts, size_t nbursts, struct error *err);

/*
 * Fully associative LRU. low..high is a 95% confidence interval. It covers sampling noise (bootstrap over
 * bursts, seeded; and the uncertainty of a small number of watched lines) and the model's own error as
 * measured (docs/accuracy.md). It does not cover parts of the run in which no burst fell. miss_ratio is NaN,
 * and low..high are the bounds of curve_bursts, where fewer than WATCHED_MIN lines were observed, or where
 * (nearly) all were censored before this size and more than a percentage point depends on that.
 */
int curve_watched(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes, uint64_t seed,
                  struct curve_point *points, size_t n, struct error *err);

/*
 * Of the survivors whose depth at their burst's end was below the size, the share that misses (LRU): the part
 * of the curve that bursts do not decide. low..high is a 95% interval. Too few watched lines: NaN, 0..1.
 */
struct curve_far {
    double share, low, high;
};
/*
 * First the stack distances of all watched lines, which do not depend on the size: *distances is malloc'ed;
 * NULL with code 0: there are no watched lines to be followed. Then the share at a size. missed: NULL, or for
 * each watched line, in the order of bursts and their watches, the part of that share that it represents: 0
 * unless it was reused at the size's number of lines or more, or never. 0, or negative with err.
 */
int curve_watched_find_distances(const struct curve_burst *bursts, size_t nbursts, double **distances,
                                 struct error *err);
int curve_watched_far(const struct curve_burst *bursts, size_t nbursts, const double *distances,
                      unsigned line_bytes, double size_bytes, struct curve_far *far, double *missed,
                      struct error *err);
/* Likewise without watched lines, as curve_bursts has it; NaN: that has none. */
int curve_unwatched_far(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                        double size_bytes, struct curve_far *far, struct error *err);

/*
 * Miss ratio of each burst's references by itself (LRU): miss_ratio[burst * n + point]; NaN for a burst
 * without references or weight. What becomes of its survivors comes from the watched lines of all bursts of
 * its group, or of all bursts if those are too few. NaN also where curve_watched of these has none: too much
 * depends on outcomes that were not observed.
 */
int curve_watched_each(const struct curve_burst *bursts, const uint32_t *group, size_t nbursts,
                       unsigned line_bytes, uint64_t seed, const struct curve_point *points, size_t n,
                       double *miss_ratio, struct error *err);

/* Random replacement (docs/methods.md, section 2) from the same bursts; intervals and NaN likewise. */
int curve_watched_statcache(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                            uint64_t seed, struct curve_point *points, size_t n, struct error *err);

/*
 * Set-associative LRU with `ways` ways (1 .. CURVE_SETS_WAYS), from the bursts that have set distances.
 * Every size must have a power of two of sets, else -EINVAL. Above 2^CURVE_SETS_LEVELS sets, conflicts inside
 * bursts are assumed to be none. All NaN if no burst has set distances.
 */
int curve_ways(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes, unsigned ways,
               uint64_t seed, struct curve_point *points, size_t n, struct error *err);

/*
 * For the weight of a burst that was placed by time:
 *   cpu_ns           its start on the thread's CPU clock
 *   refs_per_ns      rate of references in native execution at the burst; NaN: not known
 *   planned_ns       CPU time that it represents, in any unit; all 0: the same for all
 *   references_each  references for each step that the rate counts (docs/methods.md, section 7); 0: one
 *   counted          nonzero: the burst was placed by references in a part of the run in which all were
 *                    counted, and has its weight and start_refs
 */
struct curve_time {
    double cpu_ns, refs_per_ns, planned_ns, references_each;
    int counted;
};
/*
 * Sets weight and start_refs of bursts that were placed by CPU time: those not counted, if none of them has a
 * start_refs and at least half of them have a rate. all_ns: CPU time that they represent together; 0: not
 * known, each thread's is estimated from its bursts. Returns 1 if it did, 0 if nothing was changed, or
 * -ENOMEM.
 */
int curve_weight_by_time(struct curve_burst *bursts, const struct curve_time *times, size_t n, double all_ns);

/*
 * Parts of the run shorter than this share of it may have been missed by all n bursts: 3 / n, since
 * (1 - 3/n)^n is 5% (the "rule of three").
 */
double curve_unseen_share(size_t nbursts);

#endif
