/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tail.h - a growing array of bits with counts: how many bits are set before one of them. Used for the lines
 * of stackdist that were not touched recently (stackdist.c).
 *
 * Bits are counted by popcount within a word. Over the words there is a tree with 16 children per node; each
 * child has the number of set bits in its earlier siblings. So a look-up adds one number per level, and
 * clearing a bit takes 16 subtractions without a branch per level (a Fenwick tree has less work, but loops of
 * unpredictable length, which are slower). Words enter the tree in order, by tail_open; until then their
 * owner sets and clears bits directly.
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
    uint32_t levels;             /* in use; the top one has one node with its children */
    uint32_t limit;              /* available numbers: a multiple of 64 */
};

/* Provides at least so many numbers (at most TAIL_MAX_NUMBERS). 0 or -ENOMEM. */
int tail_init(struct tail *tail, uint64_t numbers);
void tail_free(struct tail *tail);
/* Sets the bits of all numbers below `count` and clears the rest of the last word; all these become open. */
void tail_fill(struct tail *tail, uint32_t count);
size_t tail_bytes(const struct tail *tail);

/* Number of set bits of smaller numbers. The number's word must be open. */
static inline uint32_t tail_below(const struct tail *tail, uint32_t number)
{
    uint32_t node = number / 64;
    uint64_t below = (UINT64_C(1) << (number % 64)) - 1;
    uint32_t count = (uint32_t)__builtin_popcountll(tail->bits[node] & below);

    for (uint32_t level = 0; level < tail->levels; level++, node /= TAIL_FANOUT)
        count += tail->below[level][node];
    return count;
}

/* Enters the word into the tree; the previous one must be the last that was entered. Also opens the nodes of
 * which it is the first word. */
static inline void tail_open(struct tail *tail, uint32_t word)
{
    uint32_t node = word;
    uint32_t before = node > 0 ? (uint32_t)__builtin_popcountll(tail->bits[node - 1]) : 0;

    for (uint32_t level = 0; level < tail->levels; level++, node /= TAIL_FANOUT) {
        uint32_t *below = &tail->below[level][node];
        /* set bits of the previous node; if it is the last sibling, of all siblings */
        if (node > 0)
            before += below[-1];
        *below = node % TAIL_FANOUT ? before : 0;
        if (node % TAIL_FANOUT)
            break;
    }
}

/* Clears the number's bit, whose word must be open. Returns the number of set bits of smaller numbers. */
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
        /* Counts of siblings that are not open yet are set when they are opened. */
        for (int32_t i = 0; i < (int32_t)TAIL_FANOUT; i++)
            family[i] -= self < i;
    }
    return count;
}

/* Prefetches what tail_take of the number needs first; higher levels are small. */
static inline void tail_look_ahead(const struct tail *tail, uint32_t number)
{
    __builtin_prefetch(&tail->bits[number / 64], 1);
    __builtin_prefetch(&tail->below[0][number / 64], 1);
}

#endif
