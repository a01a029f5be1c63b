/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shrink.h - estimates for the members of groups from a few noisy values (docs/methods.md, section 13): the
 * miss ratios of windows, which are members of phases, from bursts. Pure: arrays in, numbers out.
 */
#ifndef CACHEGRAM_SHRINK_H
#define CACHEGRAM_SHRINK_H

#include <stddef.h>
#include <stdint.h>

struct shrink_value {
    size_t member;   /* or the number of members: it counts for its group, but belongs to none of them */
    uint32_t group;  /* of it */
    double weight;   /* above 0; others are ignored, as are values that are not a number */
    const double *y; /* `sizes` numbers */
};

/*
 * values[n]: in any order. group_of[members]: each member's group, below `groups`. Sets, for all sizes:
 * of_group[group * sizes + size], the weighted mean of its values; of_member[member * sizes + size], the best
 * estimate from its own values and those of its group. Both are NaN if the group has no value.
 * 0, or -ENOMEM.
 */
int shrink_values(const struct shrink_value *values, size_t n, size_t sizes, const uint32_t *group_of,
                  size_t members, size_t groups, double *of_member, double *of_group);

#endif
