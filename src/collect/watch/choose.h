/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose.h - draws the survivors of a burst that are watched.
 *
 * To watch a line costs a fault whenever any line of its page is touched after a pause. A page that was
 * touched again and again in the burst will be so afterwards; so lines of such pages are drawn more rarely,
 * and each stands for more: its weight is the inverse of its chance to be drawn (Horvitz and Thompson). What
 * is drawn remains representative, at a lower price.
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
    double weight;   /* survivors that it stands for */
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
