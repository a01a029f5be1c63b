/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epochs.h - who touched the distinct lines between two touches of a line (the reuse's epoch): draws one of
 * them at random, from a sample of lines that is kept in the order of their last touches.
 */
#ifndef CACHEGRAM_SIM_EPOCHS_H
#define CACHEGRAM_SIM_EPOCHS_H

#include <stdint.h>
#include "base/error.h"
#include "base/random.h"

struct epochs;

/* What is known of a touch; the caller's numbers. */
struct epochs_touch {
    uint32_t site, object;
};

/* NULL when memory is short (err says so). */
struct epochs *epochs_new(struct error *err);
void epochs_free(struct epochs *e); /* NULL is allowed */
/* Forgets everything. */
void epochs_reset(struct epochs *e);
/*
 * A touch of `line`. Touches at small stack distances may be left out: then a line counts as touched when it
 * was last fetched into the smallest cache of interest.
 */
void epochs_add(struct epochs *e, uint64_t line, struct epochs_touch touch);
/*
 * The last touch of a random one of the `distance` lines that were touched last, `line` excluded. 0, or
 * -ENOENT: none of them is in the sample. The probability of each line is the same, but for the sampling of
 * lines: one in 8 at distances up to 16384, one in 32 up to 65536, and so on.
 */
int epochs_draw(const struct epochs *e, uint64_t line, uint64_t distance, struct random_state *random,
                struct epochs_touch *touch);

#endif
