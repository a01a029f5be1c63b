/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose.h - draws the survivors of a burst that are watched.
 *
 * Watching a line costs a fault whenever any line of its page is touched after a pause. A page that was
 * touched often in the burst will be touched often afterwards. So lines of such pages are drawn more
 * rarely, and with a larger weight, the inverse of the probability of being drawn (Horvitz and Thompson).
 * The sample stays unbiased at a lower cost.
 */
#ifndef CACHEGRAM_CHOOSE_H
#define CACHEGRAM_CHOOSE_H

#include <stddef.h>
#include <stdint.h>
#include "base/random.h"
#include "sim/stackdist.h"

struct chooser; /* scratch memory */

struct choice {
    size_t survivor; /* its index */
    double weight;   /* weight: number of survivors that it represents */
};

/* NULL when memory is short. */
struct chooser *chooser_new(unsigned line_bytes);
void chooser_free(struct chooser *c); /* NULL is allowed */
/*
 * Draws min(k, n) of n survivors of a burst of so many touches, in random order, into out[]. Lines of pages
 * of equal heat have equal chances. Their number, or -ENOMEM.
 */
long chooser_draw(struct chooser *c, const struct stackdist_survivor *survivors, size_t n, uint64_t touches,
                  size_t k, struct random_state *random, struct choice *out);

#endif
