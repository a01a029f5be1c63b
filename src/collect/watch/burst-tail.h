/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst-tail.h - follows survivors of a burst through the references that were recorded after it.
 *
 * A recorded burst goes on for some times its own length. Of this tail nothing is analysed but when it
 * touches lines for the first time: survivors of the burst, drawn at random, and lines of earlier bursts that
 * are being watched; how many lines it touches until then; and which code touches a sample of its lines first
 * (distinct.h). That costs a fraction of what stack distances cost, and needs no page protection.
 */
#ifndef CACHEGRAM_BURST_TAIL_H
#define CACHEGRAM_BURST_TAIL_H

#include <stdint.h>
#include "collect/records/decode.h"
#include "collect/watch/distinct.h"
#include "sim/stackdist.h"
#include "wire/wire.h"

#define TAIL_MOST_LINES 256u

struct burst_tail; /* reused for each burst */

struct tail_touch {
    uint64_t before; /* touches of the tail before that one */
    uint64_t pc;     /* of the instruction that made it; 0: not known */
};

struct burst_tail *burst_tail_new(void);    /* NULL when memory is short */
void burst_tail_free(struct burst_tail *t); /* NULL is allowed */
/* Forgets all lines and touches. survivors: the lines of the burst before the tail, n of them. */
void burst_tail_begin(struct burst_tail *t, const struct stackdist_survivor *survivors, size_t n);
/* A line (address >> log2(line size)) to be followed. At most TAIL_MOST_LINES different ones; others are
 * ignored. */
void burst_tail_follow(struct burst_tail *t, uint64_t line);
/*
 * Words of the records that follow the burst, of the process whose decoder that is. most: touches after which
 * the tail ends. 0, or -ENOMEM.
 */
int burst_tail_decode(struct burst_tail *t, struct decoder *d, const struct wire_desc *desc,
                      const uint64_t *words, uint64_t n, uint64_t most);
uint64_t burst_tail_touches(const struct burst_tail *t);
uint64_t burst_tail_references(const struct burst_tail *t); /* touches, less those of second lines */
uint64_t burst_tail_steps(const struct burst_tail *t);      /* see decode_counts.steps */
/* The first touch of a followed line; NULL: there was none. */
const struct tail_touch *burst_tail_find(const struct burst_tail *t, uint64_t line);
/* By how much the depth of a survivor of that age grew in the tail's first `touches` touches. */
double burst_tail_growth(const struct burst_tail *t, uint64_t age, uint64_t touches);
/* The tail's first touches of lines, a sample if they are many: see distinct_touched. */
const struct distinct_touched *burst_tail_touched(struct burst_tail *t, unsigned *n, uint64_t *represented);

#endif
