/* SPDX-License-Identifier: Apache-2.0 */
/* Least recently used. Narrow sets keep the time of the last use, so that a hit, the frequent case, is one
 * store; the victim is searched. Wide ones keep a list. */
#include "sim/cache-internal.h"
#include "sim/wide.h"

#define POLICY_REPEATS_COST 0
#include "sim/narrow.h"
#include "sim/oldest.h"

INLINE void policy_hit(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    (void)set, (void)n;
    slots[way].stamp = ++c->now;
}

INLINE void policy_fill(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    policy_hit(c, set, slots, way, n);
}

INLINE uint32_t policy_victim(struct cache *c, struct narrow_set *set, const struct slot *slots, uint32_t n)
{
    (void)c, (void)set;
    return oldest_way(slots, n);
}

INLINE void policy_drop(struct narrow_set *set, uint32_t way)
{
    (void)set, (void)way;
}

static void lru_hit(struct cache *c, uint64_t set, uint32_t way)
{
    wide_list_unlink(c, set, way);
    wide_list_push(c, set, way);
}

static const struct wide_policy lru_wide = {
    .list = 1, .hit = lru_hit, .fill = wide_list_push, .victim = wide_list_last, .drop = wide_list_unlink};
const struct policy policy_lru = {"lru", narrow_ops, &lru_wide};
