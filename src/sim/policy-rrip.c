/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static re-reference interval prediction with two bits a way, hit priority (Jaleel et al. 2010, "High
 * performance cache replacement using re-reference interval prediction"). A way's value is 2 when it is
 * filled, 0 after a hit. The victim is the first way with 3; while there is none, all values grow by one.
 *
 * Narrow sets keep the two bits in two words, a bit for each way, so that all grow at once.
 */
#include <string.h>

#include "sim/cache-internal.h"

#define POLICY_REPEATS_COST 1 /* the second access marks the line as used */
#include "sim/narrow.h"

INLINE void policy_hit(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    (void)c, (void)slots, (void)n;
    set->bits &= ~(UINT32_C(1) << way);  /* low bit */
    set->bits2 &= ~(UINT32_C(1) << way); /* high bit */
}

INLINE void policy_fill(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    (void)c, (void)slots, (void)n;
    set->bits &= ~(UINT32_C(1) << way);
    set->bits2 |= UINT32_C(1) << way;
}

INLINE uint32_t policy_victim(struct cache *c, struct narrow_set *set, const struct slot *slots, uint32_t n)
{
    (void)c, (void)slots;
    uint32_t all = (uint32_t)((UINT64_C(1) << n) - 1);
    while (!(set->bits & set->bits2)) {
        set->bits2 ^= set->bits;
        set->bits ^= all;
    }
    return (uint32_t)__builtin_ctz(set->bits & set->bits2);
}

INLINE void policy_drop(struct narrow_set *set, uint32_t way)
{
    (void)set, (void)way; /* empty ways are filled first */
}

static void rrip_hit(struct cache *c, uint64_t set, uint32_t way)
{
    c->wide.state[set * c->ways + way] = 0;
}

static void rrip_fill(struct cache *c, uint64_t set, uint32_t way)
{
    c->wide.state[set * c->ways + way] = 2;
}

static uint32_t rrip_victim(struct cache *c, uint64_t set)
{
    uint8_t *value = c->wide.state + set * c->ways;
    const uint8_t *found;
    while ((found = memchr(value, 3, c->ways)) == NULL)
        for (uint32_t way = 0; way < c->ways; way++)
            value[way]++;
    return (uint32_t)(found - value);
}

static void rrip_drop(struct cache *c, uint64_t set, uint32_t way)
{
    (void)c, (void)set, (void)way;
}

static const struct wide_policy rrip_wide = {
    .state = 1, .hit = rrip_hit, .fill = rrip_fill, .victim = rrip_victim, .drop = rrip_drop};
const struct policy policy_rrip = {"rrip", narrow_ops, &rrip_wide};
