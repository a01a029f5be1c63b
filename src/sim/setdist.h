/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setdist.h - stack distances within cache sets, for several numbers of sets in one pass.
 *
 * A set-associative LRU cache of S sets and A ways keeps a line if and only if fewer than A other lines of
 * its own set were touched since. Lines are dealt to sets by their low bits, as caches do.
 */
#ifndef CACHEGRAM_SETDIST_H
#define CACHEGRAM_SETDIST_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Numbers of sets: 2^1 .. 2^SETDIST_LEVELS. 8192 sets of 8 ways are 4 MB; larger caches have few conflicts.
 */
#define SETDIST_LEVELS 13u
/* Distances below it are distinguished: caches of up to so many ways. */
#define SETDIST_WAYS 32u

struct setdist; /* opaque */

/* NULL when memory is short (err says so). */
struct setdist *setdist_new(struct error *err);
void setdist_free(struct setdist *s); /* NULL is allowed */
/* Forget everything. */
void setdist_reset(struct setdist *s);
/* Touches in program order. 0, or -ENOMEM: then counts are incomplete until the next reset. */
int setdist_touch_many(struct setdist *s, const uint64_t *lines, size_t n);
/*
 * Touches since the reset that were `distance` (0 .. SETDIST_WAYS - 1) lines of its set after the last one
 * to their line, with 2^level sets (1 .. SETDIST_LEVELS). All others are first touches or further away.
 */
uint64_t setdist_count(const struct setdist *s, unsigned level, unsigned distance);

#endif
