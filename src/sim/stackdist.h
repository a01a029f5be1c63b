/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stackdist.h - exact LRU stack distances and reuse distances of a stream of line ids, one pass.
 * Source: Bennett & Kruskal 1975 (tree over last accesses); terms in docs/methods.md, sections 1 and 5.
 */
#ifndef CACHEGRAM_STACKDIST_H
#define CACHEGRAM_STACKDIST_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct stackdist; /* opaque */

#define STACKDIST_COLD UINT64_MAX /* stack distance of the first touch of a line */

/* NULL when memory is short (err says so). */
struct stackdist *stackdist_new(struct error *err);
void stackdist_free(struct stackdist *sd);
/* Forgets everything; keeps the memory. Time in proportion to the lines seen since the last reset. */
void stackdist_reset(struct stackdist *sd);
/*
 * References whose stack distance is large: of each, its index in lines[] and the distance, in order. First
 * touches are included, as STACKDIST_COLD.
 */
struct stackdist_far {
    uint64_t least;  /* smallest distance that is listed, at least 1 */
    uint32_t *at;    /* the caller's: n + STACKDIST_FAR_EXTRA elements */
    uint64_t *stack; /* likewise */
    size_t n;        /* listed by the last call */
};
#define STACKDIST_FAR_EXTRA 16u
/*
 * n references to lines[]. Since the previous touch of its line, a reference has a stack distance, the number
 * of distinct lines touched in between, and a reuse distance, the number of references. stack_hist and
 * reuse_hist get these, *cold the number of first touches; first_hist gets, for each first touch, the number
 * of distinct lines seen before it; far lists large distances (n < 2^32 then). Any of these may be NULL. 0,
 * or -ENOMEM: the last references are missing.
 */
struct hist;
int stackdist_touch_many(struct stackdist *sd, const uint64_t *lines, size_t n, struct hist *stack_hist,
                         struct hist *reuse_hist, struct hist *first_hist, uint64_t *cold,
                         struct stackdist_far *far);
/* Likewise for lines[from .. to), whose far ones follow those that far lists already; by their index in
 * lines. */
int stackdist_touch_part(struct stackdist *sd, const uint64_t *lines, size_t from, size_t to,
                         struct hist *stack_hist, struct hist *reuse_hist, struct hist *first_hist,
                         uint64_t *cold, struct stackdist_far *far);
/*
 * As stackdist_touch_many with a stack_hist only. Lines that are touched for the first time are stored in
 * cold_lines[*ncold ..], in order, and *ncold is increased by their number. The array is the caller's, with
 * space for n more.
 */
int stackdist_touch_cold(struct stackdist *sd, const uint64_t *lines, size_t n, struct hist *stack_hist,
                         uint64_t *cold_lines, size_t *ncold);
uint64_t stackdist_lines(const struct stackdist *sd);      /* distinct lines so far */
uint64_t stackdist_references(const struct stackdist *sd); /* touches so far */
/*
 * The last `lines` lines, all different, were touched again in turn, all together so many times: after the
 * first `at` touches that the list belongs to.
 */
struct stackdist_repeat {
    uint32_t at, lines;
    uint64_t times;
};
/* Touches again lines[0 .. r->lines), which were the last ones touched, in this order; r->at is not used.
 * Adds their distances to the histograms, which may be NULL. */
void stackdist_repeat(struct stackdist *sd, const uint64_t *lines, const struct stackdist_repeat *r,
                      struct hist *stack_hist, struct hist *reuse_hist);
size_t stackdist_memory_bytes(const struct stackdist *sd);
struct stackdist_survivor {
    uint64_t line;
    uint64_t age; /* touches since its last one; different for all lines */
};
/*
 * Lists every line seen, in no particular order: out[0 .. stackdist_lines(sd)), the caller's. The distinct
 * lines touched after a line's last touch are those of smaller age.
 */
void stackdist_survivors(const struct stackdist *sd, struct stackdist_survivor *out);
/* Lists every line seen, in the order of their last touches: out[0 .. stackdist_lines(sd)), the caller's. */
void stackdist_oldest_first(const struct stackdist *sd, uint64_t *out);
/*
 * Adds, for every line seen, the number of references since its last touch (0: it was the last one) to the
 * histogram. These are the survivors' ages: lower bounds of their forward reuse distances.
 */
void stackdist_ages(const struct stackdist *sd, struct hist *age_hist);

#endif
