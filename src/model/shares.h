/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.h - shares of the misses that parts of a program (functions, lines, objects) have, from bursts, with
 * confidence intervals (docs/methods.md, section 12).
 *
 *     shares_new --> for each burst: shares_add, shares_add, ..., shares_burst --> shares_set_far,
 *     shares_set_spread --> shares_result
 */
#ifndef CACHEGRAM_SHARES_H
#define CACHEGRAM_SHARES_H

#include <stddef.h>
#include <stdint.h>

#include "model/far-shares.h"

struct shares;

/* n: groups. far: probability that a first touch of a line in its burst misses where the burst does not
 * decide it, with its interval. NULL when memory is short. */
struct shares *shares_new(size_t n, double far, double far_low, double far_high);
void shares_free(struct shares *s); /* NULL is allowed */
/* Adds, for the current burst, a part of the group's references: their number, those that certainly miss, and
 * those that may miss (first touches). */
void shares_add(struct shares *s, size_t group, double references, double misses, double undecided);
/* Ends the burst; weight: of one of its references. */
void shares_burst(struct shares *s, double weight);
/* Instead: what was added is not a sample, but a part of the run that was recorded completely. Returns its
 * references. */
double shares_exact(struct shares *s);
/* Which groups make the misses among the undecided first touches of all bursts, and the effective number of
 * samples. far[n] is the caller's, until the last result. NULL: those of the groups that made the first
 * touches. */
void shares_set_far(struct shares *s, const struct far_share *far, double samples);
/* The same bursts with the same references, but as misses those that bursts decide and what their touches
 * contribute to the others (far_shares_value), and none undecided: how results vary with the bursts is seen
 * in these, for groups whose far_share.by_model is set. The caller's, until the last result. */
void shares_set_spread(struct shares *s, const struct shares *spread);
/* Relative standard error of the rate of references by which a group's bursts are weighted; 0 unless set. */
void shares_set_rate_error(struct shares *s, double error);

struct shares_result {
    double references, misses;             /* weighted sums over the bursts */
    double references_share, misses_share; /* of the sums of all groups */
    double miss_ratio;                     /* NaN: no references in bursts, but misses of watched lines */
    double share_low, share_high;          /* 95% interval of misses_share; [0, 1] without bursts */
    double ratio_low, ratio_high;          /* of miss_ratio */
    uint64_t recorded;                     /* references that were recorded */
    int enough; /* the intervals can be trusted: see SHARES_MIN_BURSTS and the others */
};
/* Fewest bursts (effective number), in all and with misses of a group, and fewest misses, for intervals: with
 * less, the variance that the bursts show is itself too uncertain. Of a group most of whose misses bursts do
 * not decide: fewest samples of such misses, of any group. */
#define SHARES_MIN_BURSTS 4.
#define SHARES_MIN_MISSES 20.
#define SHARES_MIN_SAMPLES 8.
void shares_result(const struct shares *s, size_t group, struct shares_result *result);
/* Of all groups together. */
void shares_total(const struct shares *s, struct shares_result *result);

#endif
