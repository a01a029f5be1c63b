/* SPDX-License-Identifier: Apache-2.0 */
/* jit-split.h - what jit-times.c, jit-blocks.c and jit-rows.c share: blocks at places whose names change. */
#ifndef CACHEGRAM_SYMBOLS_JIT_SPLIT_H
#define CACHEGRAM_SYMBOLS_JIT_SPLIT_H

#include "symbols/jit-map.h"
#include "symbols/naming.h"

#define NONE UINT32_MAX

/* A block at a place where names change. */
struct old_block {
    uint64_t process;
    uint32_t number, image;
    const uint32_t *sites; /* of the map */
    uint32_t nsites, nhistory;
    uint32_t *history; /* entries, as jit_entries_at has them */
    uint32_t *numbers; /* the block's in the time of each entry; 0: none yet */
};

struct new_block {
    uint64_t process;
    uint32_t number, nsites;
    uint32_t *sites;
};

/* What is written in the place of a row of counts. */
struct row {
    uint64_t burst, process;
    uint8_t *bytes;
    size_t size;
};

struct next_number {
    uint64_t process, number;
};

struct split {
    const struct symbols_code *old;
    struct symbols_code code;
    struct symbols_site *sites;
    size_t nsites, sites_capacity;
    struct jit_entries **jit; /* by image; NULL: other code */
    char *changes;            /* of each old site: the names at its place change */
    uint32_t *same;           /* of each old site: the one that has its row; NONE: itself */
    uint32_t *slots;          /* number of a new site, + 1; 0: empty */
    size_t nslots;
    struct site_map *map;
    struct old_block *blocks;
    size_t nblocks, blocks_capacity, nhistory;
    uint32_t *block_slots; /* number in blocks[], + 1; 0: empty */
    size_t nblock_slots;
    struct new_block *added;
    size_t nadded, added_capacity;
    struct next_number *next;
    size_t nnext, next_capacity;
    struct profile_burst *bursts;
    size_t nbursts;
    struct row *rows;
    size_t nrows, rows_capacity;
};

/* Slot of the new site that is like that one, in s->slots. */
uint32_t *jit_split_slot(const struct split *s, struct symbols_site site);
/* *found NULL: its names do not change. 0 or -ENOMEM. */
int jit_split_block(struct split *s, uint64_t process, uint32_t number, struct old_block **found);
/* The number of a block in the time of an entry of its history; the old one if there are too many. Negative
 * when memory is short. */
int64_t jit_split_number(struct split *s, struct old_block *b, size_t at);

/* A profile_each_site_counts callback, ctx: a struct naming. Rows are replaced when all have been read, by
 * jit_split_store. All return 0, or negative with an error. */
int jit_split_row(void *ctx, uint64_t burst, uint64_t process, const uint8_t *bytes, size_t size,
                  struct error *err);
int jit_split_store(struct naming *n);
/* Slices, which nobody needs any more: has each block of a process once in its counts. */
int jit_split_merge(struct naming *n);

#endif
