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

/* n: groups. lines: size of the cache. touch: mean weight of a touch. parents: NULL, or for each group the
 * number of the larger one that contains it (then shares are determined for the parents first, then inside
 * each of them); the array is copied. NULL when memory is short. */
struct far_shares *far_shares_new(size_t n, double lines, double touch, const uint32_t *parents,
                                  size_t nparents);
void far_shares_free(struct far_shares *f); /* NULL is allowed */
/* Adds a group's touches in bursts, weighted: reuses at a stack distance in that bin (base/octaves.h), and
 * first touches of a line after so many other lines. */
void far_shares_reuses(struct far_shares *f, size_t group, uint32_t bin, double weight);
void far_shares_firsts(struct far_shares *f, size_t group, uint32_t bin, double weight);
/* Adds a watched line that missed when it was touched again. group: that of the instruction that touched it;
 * FAR_SHARES_UNKNOWN: unknown, or the line was never touched again. parent: likewise, if only the parent is
 * known. sample: number of its burst. 0 or -ENOMEM. */
#define FAR_SHARES_UNKNOWN SIZE_MAX
int far_shares_hit(struct far_shares *f, size_t group, size_t parent, size_t sample, double weight);

struct far_share {
    double share; /* of the misses that bursts do not decide; the sum over all groups is 1 */
    double error; /* its standard error */
};
/* Sets shares[n]; *hits: effective number of bursts with such lines. 0 or -ENOMEM. */
int far_shares_find(struct far_shares *f, struct far_share *shares, double *hits);

/* The part of a bin's distances that is at `lines` or more; distances are assumed to be distributed evenly
 * over the logarithm. */
double far_shares_part_above(uint32_t bin, double lines);

#endif
