/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variation.h - how the windows of one phase differ from each other (Sembrant et al. 2012, 4.3;
 * docs/methods.md, section 13). Differences count if they are larger than nearly all that appear when the
 * same values are shuffled, so that noise of the estimates does not count. Pure: arrays in, numbers
 * out.
 */
#ifndef CACHEGRAM_VARIATION_H
#define CACHEGRAM_VARIATION_H

#include <stddef.h>
#include <stdint.h>

struct variation {
    /* The mean of the first windows of its instances, and of all others; equal: no significant difference. */
    double first, others;
    size_t period;   /* windows after which values repeat themselves; 0: none */
    double instance; /* standard deviation of the instances' means, as a part of the phase's; 0: not
                        significant */
};

/* values[n]: of a phase's windows in order of time; instance[n]: numbers of the uninterrupted stays in the
 * phase that they belong to, ascending. 0, or -ENOMEM. */
int variation_find(const double *values, const uint32_t *instance, size_t n, struct variation *v);

#endif
