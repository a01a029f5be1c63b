/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tail.h - numbers given out in rising order, taken back in any order, and how many are still out
 * above one of them: the part of stackdist's list of lines behind its front (stackdist.c).
 *
 * A bit is set for each number in use. Bits are counted by popcount within a word; over the words
 * stands a tree with 16 children a node, each child with the count of set bits in its siblings above
 * it. So a look-up adds one number a level, and an update is 16 additions without a branch a level; a
 * Fenwick tree has less to do but loops of unpredictable length, which cost more.
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
        *above[TAIL_MAX_LEVELS]; /* [level][i]: set bits in the later siblings of node i; level 0: words */
    uint32_t levels;             /* in use; the top one is a single family */
    uint32_t next;               /* numbers given so far */
    uint32_t limit;              /* numbers that there is room for */
};

/* A clear tail with room for at least so many numbers (at most TAIL_MAX_NUMBERS). 0 or -ENOMEM. */
int tail_init(struct tail *tail, uint64_t numbers);
void tail_free(struct tail *tail);
/* Takes all numbers back; costs in proportion to those given. */
void tail_clear(struct tail *tail);
/* Gives out the numbers below `count`, all in use. The tail must be clear. */
void tail_fill(struct tail *tail, uint32_t count);
size_t tail_bytes(const struct tail *tail);

/* Numbers in use that are larger than this one. */
static inline uint64_t tail_above(const struct tail *tail, uint32_t number)
{
    uint32_t node = number / 64;
    /* Two shifts, since number % 64 may be 63. */
    uint64_t count = (uint64_t)__builtin_popcountll(tail->bits[node] >> (number % 64) >> 1);

    for (uint32_t level = 0; level < tail->levels; level++, node /= TAIL_FANOUT)
        count += tail->above[level][node];
    return count;
}

/* Takes a number into use (delta 1) or out of it (delta UINT32_MAX, which is minus one). */
static inline void tail_change(struct tail *tail, uint32_t number, uint32_t delta)
{
    uint32_t node = number / 64;

    tail->bits[node] ^= UINT64_C(1) << (number % 64);
    for (uint32_t level = 0; level < tail->levels; level++, node /= TAIL_FANOUT) {
        uint32_t *family = &tail->above[level][node - node % TAIL_FANOUT];
        int32_t self = (int32_t)(node % TAIL_FANOUT);
        for (int32_t i = 0; i < (int32_t)TAIL_FANOUT; i++)
            family[i] += delta & (0 - (uint32_t)(i < self));
    }
}

#endif
