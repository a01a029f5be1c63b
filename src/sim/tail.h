/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tail.h - numbers given out in rising order, taken back in any order, and how many are still out
 * above one of them: the part of stackdist's list of lines after its front (stackdist.c).
 *
 * A bit is set for each number in use. Bits are counted by popcount within a word; over the words
 * stands a tree with 16 children a node, each child with the count of set bits in its siblings below
 * it. So a look-up adds one number a level, and taking back is 16 subtractions without a branch a level
 * (a Fenwick tree has less to do but loops of unpredictable length, which cost more). Giving out a number
 * changes no count: no number follows it yet. A node's count is written when the first number below it
 * is given out ("opened"); until then its value is undefined.
 */
#ifndef CACHEGRAM_SIM_TAIL_H
#define CACHEGRAM_SIM_TAIL_H

#include <assert.h>
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
    uint32_t next;               /* numbers given so far */
    uint32_t limit;              /* numbers that there is room for */
    uint32_t in_use;
};

/* A clear tail with room for at least so many numbers (at most TAIL_MAX_NUMBERS). 0 or -ENOMEM. */
int tail_init(struct tail *tail, uint64_t numbers);
void tail_free(struct tail *tail);
/* Takes all numbers back. */
void tail_clear(struct tail *tail);
/* Gives out the numbers below `count`, all in use. The tail must be clear. */
void tail_fill(struct tail *tail, uint32_t count);
size_t tail_bytes(const struct tail *tail);

/* Numbers in use that are smaller than this one. */
static inline uint32_t tail_below(const struct tail *tail, uint32_t number)
{
    uint32_t node = number / 64;
    uint64_t below = (UINT64_C(1) << (number % 64)) - 1;
    uint32_t count = (uint32_t)__builtin_popcountll(tail->bits[node] & below);

    for (uint32_t level = 0; level < tail->levels; level++, node /= TAIL_FANOUT)
        count += tail->below[level][node];
    return count;
}

/* Opens a word, and the nodes over it that it is the first word of. */
static inline void tail_open_(struct tail *tail, uint32_t word)
{
    uint32_t node = word;
    uint32_t before = node > 0 ? (uint32_t)__builtin_popcountll(tail->bits[node - 1]) : 0;

    tail->bits[word] = 0;
    for (uint32_t level = 0; level < tail->levels; level++, node /= TAIL_FANOUT) {
        uint32_t *below = &tail->below[level][node];
        /* Numbers in use of the node before; if that ends a family, of the whole family. */
        if (node > 0)
            before += below[-1];
        *below = node % TAIL_FANOUT ? before : 0;
        if (node % TAIL_FANOUT)
            break;
    }
}

/* Gives out the next number; there must be one below the limit. */
static inline uint32_t tail_give(struct tail *tail)
{
    uint32_t number = tail->next++;

    assert(number < tail->limit);
    if (number % 64 == 0)
        tail_open_(tail, number / 64);
    tail->bits[number / 64] |= UINT64_C(1) << (number % 64);
    tail->in_use++;
    return number;
}

/* Takes a number back. The numbers in use that are larger. */
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
        for (int32_t i = 0; i < (int32_t)TAIL_FANOUT; i++)
            family[i] -= self < i;
    }
    return --tail->in_use - count;
}

/* Prefetches what tail_take of the number will need first; higher levels are small. */
static inline void tail_look_ahead(const struct tail *tail, uint32_t number)
{
    __builtin_prefetch(&tail->bits[number / 64], 1);
    __builtin_prefetch(&tail->below[0][number / 64], 1);
}

#endif
