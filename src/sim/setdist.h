/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setdist.h - stack distances within cache sets, for several numbers of sets in one pass.
 *
 * A set-associative LRU cache of S sets and A ways holds a line if and only if fewer than A other lines of
 * its set were touched since. The low bits of a line select its set, as in real caches.
 */
#ifndef CACHEGRAM_SETDIST_H
#define CACHEGRAM_SETDIST_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* Numbers of sets: 2^1 .. 2^SETDIST_LEVELS. 8192 sets of 8 ways are 4 MB; larger caches have few conflicts.
 */
#define SETDIST_LEVELS 13u
/* Smaller distances are distinguished: for caches of up to so many ways. */
#define SETDIST_WAYS 32u

struct setdist; /* opaque */

/* NULL when memory is short (err says so). */
struct setdist *setdist_new(struct error *err);
void setdist_free(struct setdist *s); /* NULL is allowed */
/* Forgets everything. */
void setdist_reset(struct setdist *s);
/* Touches in program order. 0, or -ENOMEM: then counts are incomplete until the next reset. */
int setdist_touch_many(struct setdist *s, const uint64_t *lines, size_t n);
/*
 * Touches since the reset at set distance `distance` (0 .. SETDIST_WAYS - 1), with 2^level sets (level 1 ..
 * SETDIST_LEVELS). All others are first touches, or have larger distances.
 */
uint64_t setdist_count(const struct setdist *s, unsigned level, unsigned distance);

#endif
