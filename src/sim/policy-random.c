/* SPDX-License-Identifier: Apache-2.0 */
/* Random replacement: once all ways hold lines, each of them with the same probability. */
#include "sim/cache-internal.h"

#define POLICY_REPEATS_COST 0
#include "sim/narrow.h"

INLINE void policy_hit(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    (void)c, (void)set, (void)slots, (void)way, (void)n;
}

INLINE void policy_fill(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    (void)c, (void)set, (void)slots, (void)way, (void)n;
}

INLINE uint32_t policy_victim(struct cache *c, struct narrow_set *set, const struct slot *slots, uint32_t n)
{
    (void)set, (void)slots;
    return (uint32_t)random_below(&c->random, n);
}

INLINE void policy_drop(struct narrow_set *set, uint32_t way)
{
    (void)set, (void)way;
}

static void random_nothing(struct cache *c, uint64_t set, uint32_t way)
{
    (void)c, (void)set, (void)way;
}

static uint32_t random_victim(struct cache *c, uint64_t set)
{
    (void)set;
    return (uint32_t)random_below(&c->random, c->ways);
}

static const struct wide_policy random_wide = {
    .hit = random_nothing, .fill = random_nothing, .victim = random_victim, .drop = random_nothing};
const struct policy policy_random = {"random", narrow_ops, &random_wide};
