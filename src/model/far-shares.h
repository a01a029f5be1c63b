/* SPDX-License-Identifier: Apache-2.0 */
/*
 * far-shares.h - which parts of a program (functions, lines) make the misses that bursts do not decide
 * (docs/methods.md, section 12).
 *
 *     far_shares_new --> far_shares_add, far_shares_hit, ... --> far_shares_find --> far_shares_value
 */
#ifndef CACHEGRAM_FAR_SHARES_H
#define CACHEGRAM_FAR_SHARES_H

#include <stddef.h>
#include <stdint.h>

struct far_shares;

/* n: groups. lines: size of the cache. touch: mean weight of a touch. NULL when memory is short. */
struct far_shares *far_shares_new(size_t n, double lines, double touch);
void far_shares_free(struct far_shares *f); /* NULL is allowed */
/* Touches in bursts, and in their tails: reuses at a stack distance, first touches of a line after so many
 * other lines of the burst (and its tail). A tail's touch is also an entry, after so many other lines of the
 * tail. */
enum far_touch { FAR_REUSE, FAR_FIRST, FAR_TAIL_ENTRY, FAR_TAIL_REUSE, FAR_TAIL_FIRST };
/* Adds a group's touches, weighted; bin: of base/octaves.h. */
void far_shares_add(struct far_shares *f, size_t group, enum far_touch what, uint32_t bin, double weight);
/* Adds a watched line that missed when it was touched again. group: that of the instruction that touched it;
 * FAR_SHARES_UNKNOWN: unknown, or the line was never touched again. sample: number of its burst. 0 or
 * -ENOMEM. */
#define FAR_SHARES_UNKNOWN SIZE_MAX
int far_shares_hit(struct far_shares *f, size_t group, size_t sample, double weight);

struct far_share {
    double share; /* of the misses that bursts do not decide; the sum over all groups is 1 */
    double error; /* its standard error, besides that of the bursts' counts if by_model */
    int by_model;
};
/* far: probability that a first touch misses which bursts do not decide; NaN: not known. Sets shares[n];
 * *hits: effective number of bursts with such lines. 0 or -ENOMEM. */
int far_shares_find(struct far_shares *f, double far, struct far_share *shares, double *hits);
/* After that: what one touch contributes to the group's misses that bursts do not decide. The sum over all
 * touches, weighted as they were added, is that number of misses; it varies with the bursts as the estimate
 * does (linearised: most contributions of reuses are negative). */
double far_shares_value(const struct far_shares *f, size_t group, enum far_touch what, uint32_t bin);

/* The part of a bin's distances that is at `lines` or more; distances are assumed to be distributed evenly
 * over the logarithm. */
double far_shares_part_above(uint32_t bin, double lines);

#endif
