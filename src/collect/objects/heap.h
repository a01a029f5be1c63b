/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h - blocks that a process has allocated, and what it has mapped, by the place of the allocation: what
 * the agent reports of them (struct wire_heap).
 */
#ifndef CACHEGRAM_HEAP_H
#define CACHEGRAM_HEAP_H

#include <stdint.h>
#include "base/error.h"
#include "collect/objects/blocks.h"
#include "collect/objects/table.h"
#include "wire/wire.h"

struct heap;

/* The slot is not owned. NULL when memory is short (err says so). */
struct heap *heap_new(struct object_table *table, struct wire_proc *proc, struct error *err);
void heap_free(struct heap *h); /* NULL is allowed */
/* What the process of `of` has reported so far holds for this one, a copy that fork has made of it, too: to
 * be called before the first report is taken. 0 or -ENOMEM. */
int heap_inherit(struct heap *h, struct heap *of, uint64_t now_ns);
/* Takes reports out of the ring, up to a position. now_ns: CLOCK_MONOTONIC. */
void heap_take(struct heap *h, uint64_t until, uint64_t now_ns);
/* If it is half full, the oldest. The others are kept for buffers of records that are still to come. */
void heap_make_room(struct heap *h, uint64_t now_ns);

/* What is known of an address. */
struct heap_place {
    uint64_t low, high; /* the block or mapping, or what lies between those that are known */
    uint64_t begin;     /* with an object: of its block or mapping, which low may cut off */
    uint32_t object;    /* 0: none is known there */
    double weight;      /* of a block, blocks that it represents */
    int near_blocks;    /* none is known there, but small ones nearby: it is probably one of those */
    int no_block;       /* none is known there, nor for so far around that none was allocated there */
};
/* What was there at the position `since` of the ring or later. */
void heap_find(struct heap *h, uint64_t address, uint64_t since, struct heap_place *place);

#endif
