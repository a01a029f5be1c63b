/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst.h - one burst's line touches to what the profile keeps of them: histograms, survivors. What bursts of
 * a running program (reduce.h) and of a trace (replay.h) have in common.
 */
#ifndef CACHEGRAM_BURST_H
#define CACHEGRAM_BURST_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "collect/watch/watch.h"
#include "profile/profile.h"
#include "sim/stackdist.h"

struct burst; /* one at a time, used again for the next */

/* NULL when memory is short (err says so). */
struct burst *burst_new(struct error *err);
void burst_free(struct burst *b); /* NULL is allowed */
/* A new burst begins. sets: distances within cache sets too (sim/setdist.h), at some cost. */
int burst_begin(struct burst *b, int sets, struct error *err);
/* Touches in program order. 0 or -ENOMEM. */
int burst_touch(struct burst *b, const uint64_t *lines, size_t n);
uint64_t burst_lines(const struct burst *b); /* distinct ones so far */
size_t burst_memory_bytes(const struct burst *b);
/*
 * The burst is over: its lines, once each, as they are left behind; *n of them. The burst's own until the
 * next one begins. NULL when memory is short.
 */
const struct stackdist_survivor *burst_end(struct burst *b, size_t *n);
/*
 * The burst is over: stores it as `row` (whose id and lines are set here), its histograms, and the survivors
 * that watches (NULL: none) chooses. 0, or negative with err filled.
 */
int burst_store(struct burst *b, struct profile *p, struct profile_burst *row, struct watches *watches,
                struct error *err);

#endif
