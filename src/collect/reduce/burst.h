/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst.h - from one burst's line touches to what the profile stores: histograms, survivors. Shared by bursts
 * of a running program (reduce.h) and of a trace (replay.h).
 *
 *     burst_begin --> burst_touch, burst_touch, ... --> burst_end: a summary --> burst_store
 */
#ifndef CACHEGRAM_BURST_H
#define CACHEGRAM_BURST_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "profile/profile.h"
#include "sim/setdist.h"
#include "sim/stackdist.h"

struct burst; /* analyses one burst at a time; reused for the next */

/* Result of a burst. Its pointers are valid until the next burst begins. */
struct burst_summary {
    uint64_t touches;
    const struct hist *hist;    /* by enum profile_hist; EXPECTED is empty. NULL: only counted */
    const struct setdist *sets; /* distances within cache sets; NULL: not analysed */
    struct hist *scratch;       /* for burst_store */
    const struct stackdist_survivor *survivors; /* its lines, once each, at their last touch */
    size_t lines;
    const uint32_t *touched; /* of each touch, its site and part (decoder_touches); NULL: not known */
};

/* NULL when memory is short (err says so). */
struct burst *burst_new(struct error *err);
void burst_free(struct burst *b); /* NULL is allowed */
/* Begins a new burst. sets: distances within cache sets too (sim/setdist.h), at some cost. */
int burst_begin(struct burst *b, int sets, struct error *err);
/* Touches in program order. 0 or -ENOMEM. */
int burst_touch(struct burst *b, const uint64_t *lines, size_t n);
/* The same; far (stackdist.h) receives the touches at large distances. NULL is allowed. */
int burst_touch_far(struct burst *b, const uint64_t *lines, size_t n, struct stackdist_far *far);
size_t burst_memory_bytes(const struct burst *b);
/* Ends the burst. 0, or -ENOMEM. */
int burst_end(struct burst *b, struct burst_summary *summary);
/*
 * Stores it as `row` (whose id and lines are set here) with its histograms. 0, or negative with err filled.
 */
int burst_store(const struct burst_summary *summary, struct profile *p, struct profile_burst *row,
                struct error *err);

#endif
