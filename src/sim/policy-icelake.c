/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of the second-level caches of Cannon Lake and Ice Lake processors, and of dedicated sets of Ice
 * Lake's third level: QLRU_H00_M1_R0_U1 in the names of Abel & Reineke (2020, "nanoBench: a low-overhead tool
 * for running microbenchmarks on x86 systems", and https://uops.info/cache.html), who inferred it from
 * measurements. Each way has an age of 0 to 3. A hit makes it 0, a fill 1. After each access all other ways
 * grow older by the same amount, so that the oldest of them is 3. The victim is the first way of age 3.
 *
 * Example, 4 ways: misses on a b c d leave ages 3 3 3 1, as the last one adds 2 to the ages 1 1 1 of the
 * others. A miss on e replaces a: 1 3 3 1. A hit of b: 1 0 3 1. A miss on f replaces c: 1 0 1 1 become 3 2
 * 1 3.
 *
 * Stored is youth, 3 - age, so that an empty way is 0, the oldest. Narrow sets keep its two bits in two
 * words, a bit for each way.
 */
#include <string.h>

#include "sim/cache-internal.h"

#define POLICY_REPEATS_COST 1 /* the second access makes a new line younger */
#include "sim/narrow.h"

INLINE void make_young(struct narrow_set *set, uint32_t way, uint32_t n, uint32_t low)
{
    uint32_t own = UINT32_C(1) << way, others = (uint32_t)((UINT64_C(1) << n) - 1) & ~own;
    set->bits = (set->bits & ~own) | low << way;
    set->bits2 |= own;
    while (others && !(others & ~(set->bits | set->bits2))) { /* none is the oldest: subtract 1 from each */
        set->bits2 &= set->bits | own;
        set->bits ^= others;
    }
}

INLINE void policy_hit(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    (void)c, (void)slots;
    make_young(set, way, n, 1);
}

INLINE void policy_fill(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    (void)c, (void)slots;
    make_young(set, way, n, 0);
}

INLINE uint32_t policy_victim(struct cache *c, struct narrow_set *set, const struct slot *slots, uint32_t n)
{
    (void)c, (void)slots;
    return n > 1 ? (uint32_t)__builtin_ctz(~(set->bits | set->bits2)) : 0;
}

INLINE void policy_drop(struct narrow_set *set, uint32_t way)
{
    set->bits &= ~(UINT32_C(1) << way);
    set->bits2 &= ~(UINT32_C(1) << way);
}

/* Wide sets count the ways that are not the oldest. */
static void make_young_wide(struct cache *c, uint64_t set, uint32_t way, uint8_t value)
{
    uint8_t *youth = c->wide.state + set * c->ways;
    c->wide.count[set] += youth[way] == 0;
    youth[way] = value;
    while (c->wide.count[set] == c->ways) {
        c->wide.count[set] = 1;
        for (uint32_t other = 0; other < c->ways; other++)
            if (other != way)
                c->wide.count[set] += --youth[other] != 0;
    }
}

static void icelake_hit(struct cache *c, uint64_t set, uint32_t way)
{
    make_young_wide(c, set, way, 3);
}

static void icelake_fill(struct cache *c, uint64_t set, uint32_t way)
{
    make_young_wide(c, set, way, 2);
}

static uint32_t icelake_victim(struct cache *c, uint64_t set)
{
    const uint8_t *youth = c->wide.state + set * c->ways;
    return (uint32_t)((const uint8_t *)memchr(youth, 0, c->ways) - youth);
}

static void icelake_drop(struct cache *c, uint64_t set, uint32_t way)
{
    uint8_t *youth = c->wide.state + set * c->ways + way;
    c->wide.count[set] -= *youth != 0;
    *youth = 0;
}

static const struct wide_policy icelake_wide = {
    .state = 1, .hit = icelake_hit, .fill = icelake_fill, .victim = icelake_victim, .drop = icelake_drop};
const struct policy policy_icelake = {"icelake", narrow_ops, &icelake_wide};
