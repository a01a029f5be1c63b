/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tree pseudo-LRU. The ways are the leaves of a binary tree; each inner node has a bit that says in which
 * half (0 left, 1 right) the next victim is. A use turns all bits on the way to its leaf away from it.
 *
 * Nodes are numbered as in a heap: the root 1, the children of n 2n and 2n + 1, way w is node ways + w.
 * Example, 4 ways, all bits 0, uses of 0, 2, 1: after 0 the root says right, node 2 says right (1); after
 * 2 the root says left, node 3 right (3); after 1 the root says right, node 2 left (0): the victim is 3.
 */
#include "sim/cache-internal.h"

#define POLICY_REPEATS_COST 0
#include "sim/narrow.h"

INLINE void policy_hit(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    (void)c, (void)slots;
    uint32_t bits = set->bits;
    for (uint32_t node = n + way; node > 1; node /= 2) {
        uint32_t bit = UINT32_C(1) << node / 2;
        bits = node % 2 ? bits & ~bit : bits | bit;
    }
    set->bits = bits;
}

INLINE void policy_fill(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    policy_hit(c, set, slots, way, n);
}

INLINE uint32_t policy_victim(struct cache *c, struct narrow_set *set, const struct slot *slots, uint32_t n)
{
    (void)c, (void)slots;
    uint32_t node = 1;
    while (node < n)
        node = 2 * node + (set->bits >> node & 1);
    return node - n;
}

INLINE void policy_drop(struct narrow_set *set, uint32_t way)
{
    (void)set, (void)way;
}

static uint64_t *tree_of(struct cache *c, uint64_t set)
{
    return c->wide.tree + set * (c->ways / 64 + 1);
}

static void plru_hit(struct cache *c, uint64_t set, uint32_t way)
{
    uint64_t *tree = tree_of(c, set);
    for (uint32_t node = c->ways + way; node > 1; node /= 2) {
        uint64_t bit = UINT64_C(1) << node / 2 % 64;
        if (node % 2)
            tree[node / 2 / 64] &= ~bit;
        else
            tree[node / 2 / 64] |= bit;
    }
}

static uint32_t plru_victim(struct cache *c, uint64_t set)
{
    const uint64_t *tree = tree_of(c, set);
    uint32_t node = 1;
    while (node < c->ways)
        node = 2 * node + (uint32_t)(tree[node / 64] >> node % 64 & 1);
    return node - c->ways;
}

static void plru_drop(struct cache *c, uint64_t set, uint32_t way)
{
    (void)c, (void)set, (void)way;
}

static const struct wide_policy plru_wide = {
    .tree = 1, .hit = plru_hit, .fill = plru_hit, .victim = plru_victim, .drop = plru_drop};
const struct policy policy_plru = {"plru", narrow_ops, &plru_wide};
