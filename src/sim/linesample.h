/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linesample.h - stack distances of a random sample of lines. Source: SHARDS (docs/methods.md, section 5).
 *
 * A line is in the sample if a hash of it is below the rate times the hash's range. Other bits of the hash
 * divide the sample into LINESAMPLE_GROUPS equal parts, whose differences give the error (curve_sampled).
 */
#ifndef CACHEGRAM_SIM_LINESAMPLE_H
#define CACHEGRAM_SIM_LINESAMPLE_H

#include <stddef.h>
#include <stdint.h>
#include "base/hist.h"
#include "sim/stackdist.h"

#define LINESAMPLE_GROUPS 8u

/* The part of the sample's distances that belongs to the lines of a group. */
struct linesample_group {
    struct hist stack; /* distances of 1 and more */
    uint64_t cold;
};

struct linesample {
    uint64_t sampled, cold; /* touches of lines in the sample; first ones among them */
    struct hist stack;      /* distances in the sample: divide them by the rate */
    struct linesample_group groups[LINESAMPLE_GROUPS];
};

/* All hashes are below it: the lines that are touched are the sample already. */
#define LINESAMPLE_ALL UINT64_MAX
/* Upper bound of the hashes in a sample of that rate, 0 < rate < 1. */
uint64_t linesample_threshold(double rate);
/*
 * Touches lines[0 .. n) in program order: those in the sample, in `stack`, which is the sample's. Adds to
 * *sample. mark: distinguishes equal line ids, for example of several processes. 0, or -ENOMEM.
 */
int linesample_touch(struct linesample *sample, struct stackdist *stack, uint64_t threshold, uint64_t mark,
                     const uint64_t *lines, size_t n);

#endif
