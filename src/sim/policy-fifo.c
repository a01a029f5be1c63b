/* SPDX-License-Identifier: Apache-2.0 */
/* First in, first out: as LRU, but only a line's arrival counts as a use. */
#include "sim/cache-internal.h"
#include "sim/wide.h"

#define POLICY_REPEATS_COST 0
#include "sim/narrow.h"
#include "sim/oldest.h"

INLINE void policy_hit(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    (void)c, (void)set, (void)slots, (void)way, (void)n;
}

INLINE void policy_fill(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n)
{
    (void)set, (void)n;
    slots[way].stamp = ++c->now;
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

static void fifo_hit(struct cache *c, uint64_t set, uint32_t way)
{
    (void)c, (void)set, (void)way;
}

static const struct wide_policy fifo_wide = {
    .list = 1, .hit = fifo_hit, .fill = wide_list_push, .victim = wide_list_last, .drop = wide_list_unlink};
const struct policy policy_fifo = {"fifo", narrow_ops, &fifo_wide};
