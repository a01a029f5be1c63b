/* SPDX-License-Identifier: Apache-2.0 */
/*
 * far-shares.h - which parts of a program (functions, lines) make the misses that bursts do not decide
 * (docs/methods.md, section 12).
 *
 *     far_shares_new --> far_shares_reuses, far_shares_firsts, far_shares_hit, ... --> far_shares_find
 */
#ifndef CACHEGRAM_FAR_SHARES_H
#define CACHEGRAM_FAR_SHARES_H

#include <stddef.h>
#include <stdint.h>

struct far_shares;

/* Of n groups, for a cache of so many lines. touch: mean weight of a touch. parents: NULL, or of each group
 * the larger one that it is part of, numbers below nparents (then shares are found among the parents first,
 * and inside each of them after that). The array is copied. NULL when memory is short. */
struct far_shares *far_shares_new(size_t n, double lines, double touch, const uint32_t *parents,
                                  size_t nparents);
void far_shares_free(struct far_shares *f); /* NULL is allowed */
/* A group's touches in bursts, weighted: reuses at a stack distance in that bin (base/octaves.h), and first
 * touches of a line when so many lines had been touched before. */
void far_shares_reuses(struct far_shares *f, size_t group, uint32_t bin, double weight);
void far_shares_firsts(struct far_shares *f, size_t group, uint32_t bin, double weight);
/* A watched line that missed when it was touched again. group: whose instruction touched it;
 * FAR_SHARES_NOBODY: not known, or the line was never touched again. parent: likewise, if the group is not
 * known but there are parents. sample: number of its burst. 0 or -ENOMEM. */
#define FAR_SHARES_NOBODY SIZE_MAX
int far_shares_hit(struct far_shares *f, size_t group, size_t parent, size_t sample, double weight);

struct far_share {
    double share; /* of the misses that bursts do not decide; all groups together make 1 */
    double error; /* its standard error */
};
/* shares[n]; *hits: effective number of bursts from whose lines they are. 0 or -ENOMEM. */
int far_shares_find(struct far_shares *f, struct far_share *shares, double *hits);

/* The part of a bin's distances that is at `lines` or more: distances are taken to be spread evenly over the
 * logarithm. */
double far_shares_part_above(uint32_t bin, double lines);

#endif
