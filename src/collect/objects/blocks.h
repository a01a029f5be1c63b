/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.h - pieces of a process' memory that do not overlap, by address. */
#ifndef CACHEGRAM_BLOCKS_H
#define CACHEGRAM_BLOCKS_H

#include <stdint.h>

struct block_span {
    uint64_t low, high;
    uint32_t object; /* its number in the table */
    float weight;    /* blocks that it represents */
    uint64_t ended;  /* position of the report that it was freed; 0: not reported */
};

struct blocks;

struct blocks *blocks_new(void);    /* NULL when memory is short */
void blocks_free(struct blocks *b); /* NULL is allowed */
/* low < high; it must not overlap another one. 0, or -ENOMEM, or -ENOSPC: there are too many. */
int blocks_put(struct blocks *b, const struct block_span *span);
/* Adds nothing but those of another process of which this one, still empty, is a copy. 0 or -ENOMEM. */
int blocks_copy(struct blocks *b, const struct blocks *from);
/* The last one that begins at the address or below, and (*above, may be NULL) the first one that begins
 * above. NULL: none. Valid until the next change; all but low may be changed. */
struct block_span *blocks_at(struct blocks *b, uint64_t address, const struct block_span **above);
/* Removes the one that begins there, if there is one. */
void blocks_remove(struct blocks *b, uint64_t low);

#endif
