/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of Nehalem's third-level cache, as reported in the thesis (III.3.2; docs/methods.md, section 5).
 * Each way has an accessed bit, set by every access. The victim is the first way whose bit is not set. When
 * the last bit would be set, all others are cleared. So after the first access the bits are never all set and
 * never all clear. (A single way needs no bit; a line that coherence or inclusion removes loses its bit.)
 *
 * Example, 4 ways, lines a b c d e, each a miss: a b c set bits 1110; d, the last, leaves 0001; e replaces a,
 * the first that is not set: 1001.
 */
#include <string.h>

#include "sim/cache-internal.h"

#define POLICY_REPEATS_COST 0
#include "sim/narrow.h"

INLINE void policy_hit(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    (void)c, (void)slots;
    uint32_t all = (uint32_t)((UINT64_C(1) << n) - 1), own = UINT32_C(1) << way, bits = set->bits | own;
    set->bits = bits != all ? bits : n > 1 ? own : 0;
}

INLINE void policy_fill(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    policy_hit(c, set, slots, way, n);
}

INLINE uint32_t policy_victim(struct cache *c, struct narrow_set *set, const struct slot *slots, uint32_t n)
{
    (void)c, (void)slots, (void)n;
    return (uint32_t)__builtin_ctz(~set->bits);
}

INLINE void policy_drop(struct narrow_set *set, uint32_t way)
{
    set->bits &= ~(UINT32_C(1) << way);
}

static void nehalem_hit(struct cache *c, uint64_t set, uint32_t way)
{
    uint8_t *accessed = c->wide.state + set * c->ways;
    c->wide.count[set] += !accessed[way];
    accessed[way] = 1;
    if (c->wide.count[set] == c->ways) {
        memset(accessed, 0, c->ways);
        accessed[way] = 1;
        c->wide.count[set] = 1;
    }
}

static uint32_t nehalem_victim(struct cache *c, uint64_t set)
{
    const uint8_t *accessed = c->wide.state + set * c->ways;
    return (uint32_t)((const uint8_t *)memchr(accessed, 0, c->ways) - accessed);
}

static void nehalem_drop(struct cache *c, uint64_t set, uint32_t way)
{
    uint8_t *accessed = c->wide.state + set * c->ways;
    c->wide.count[set] -= accessed[way];
    accessed[way] = 0;
}

static const struct wide_policy nehalem_wide = {
    .state = 1, .hit = nehalem_hit, .fill = nehalem_hit, .victim = nehalem_victim, .drop = nehalem_drop};
const struct policy policy_nehalem = {"nehalem", narrow_ops, &nehalem_wide};
