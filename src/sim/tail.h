/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tail.h - a growing row of bits, of which the older part has counts: how many bits are set before one of
 * them. The part of stackdist's list of lines that was not touched lately (stackdist.c).
 *
 * Bits are counted by popcount within a word; over the words stands a tree with 16 children a node, each
 * child with the count of set bits in its siblings before it. So a look-up adds one number a level, and
 * clearing a bit is 16 subtractions without a branch a level (a Fenwick tree has less to do but loops of
 * unpredictable length, which cost more). Words enter the tree in order, by tail_open; until then their owner
 * sets and clears bits as it likes.
 */
#ifndef CACHEGRAM_SIM_TAIL_H
#define CACHEGRAM_SIM_TAIL_H

#include <stddef.h>
#include <stdint.h>

#define TAIL_MAX_NUMBERS (UINT32_C(1) << 31)
#define TAIL_FANOUT 16u
#define TAIL_MAX_LEVELS 7u /* 64 * 16^7 >= TAIL_MAX_NUMBERS */

struct tail {
    uint64_t *bits; /* one for each number */
    uint32_t
        *below[TAIL_MAX_LEVELS]; /* [level][i]: set bits in the earlier siblings of node i; level 0: words */
    uint32_t levels;             /* in use; the top one is a single family */
    uint32_t limit;              /* numbers that there is room for: a multiple of 64 */
};

/* Room for at least so many numbers (at most TAIL_MAX_NUMBERS). 0 or -ENOMEM. */
int tail_init(struct tail *tail, uint64_t numbers);
void tail_free(struct tail *tail);
/* Sets the bits of all numbers below `count` and clears the rest of the last word; all these are open. */
void tail_fill(struct tail *tail, uint32_t count);
size_t tail_bytes(const struct tail *tail);

/* Set bits of smaller numbers. The number's word must be open. */
static inline uint32_t tail_below(const struct tail *tail, uint32_t number)
{
    uint32_t node = number / 64;
    uint64_t below = (UINT64_C(1) << (number % 64)) - 1;
    uint32_t count = (uint32_t)__builtin_popcountll(tail->bits[node] & below);

    for (uint32_t level = 0; level < tail->levels; level++, node /= TAIL_FANOUT)
        count += tail->below[level][node];
    return count;
}

/* The word enters the tree; the one before it is the last that did. Opens the nodes that it is the first of.
 */
static inline void tail_open(struct tail *tail, uint32_t word)
{
    uint32_t node = word;
    uint32_t before = node > 0 ? (uint32_t)__builtin_popcountll(tail->bits[node - 1]) : 0;

    for (uint32_t level = 0; level < tail->levels; level++, node /= TAIL_FANOUT) {
        uint32_t *below = &tail->below[level][node];
        /* Set bits of the node before; if that ends a family, of the whole family. */
        if (node > 0)
            before += below[-1];
        *below = node % TAIL_FANOUT ? before : 0;
        if (node % TAIL_FANOUT)
            break;
    }
}

/* Clears the number's bit; its word must be open. The set bits of smaller numbers. */
static inline uint32_t tail_take(struct tail *tail, uint32_t number)
{
    uint32_t node = number / 64;
    uint64_t bit = UINT64_C(1) << (number % 64);
    uint32_t count = (uint32_t)__builtin_popcountll(tail->bits[node] & (bit - 1));

    tail->bits[node] ^= bit;
    for (uint32_t level = 0; level < tail->levels; level++, node /= TAIL_FANOUT) {
        uint32_t *family = &tail->below[level][node - node % TAIL_FANOUT];
        int32_t self = (int32_t)(node % TAIL_FANOUT);
        count += family[self];
        /* Of siblings that are not open yet the counts are written when they are. */
        for (int32_t i = 0; i < (int32_t)TAIL_FANOUT; i++)
            family[i] -= self < i;
    }
    return count;
}

/* Prefetches what tail_take of the number will need first; higher levels are small. */
static inline void tail_look_ahead(const struct tail *tail, uint32_t number)
{
    __builtin_prefetch(&tail->bits[number / 64], 1);
    __builtin_prefetch(&tail->below[0][number / 64], 1);
}

#endif
