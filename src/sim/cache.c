/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - one cache: its memory, and the choice of its implementation. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cache-internal.h"

static const struct policy *const policies[SIM_POLICIES] = {
    [SIM_LRU] = &policy_lru,         [SIM_RANDOM] = &policy_random,   [SIM_FIFO] = &policy_fifo,
    [SIM_PLRU] = &policy_plru,       [SIM_NEHALEM] = &policy_nehalem, [SIM_RRIP] = &policy_rrip,
    [SIM_ICELAKE] = &policy_icelake,
};

const char *sim_policy_name(enum sim_policy policy)
{
    return policies[policy]->name;
}

const char *sim_cause_name(enum sim_cause cause)
{
    static const char *const names[SIM_CAUSES] = {"cold", "coherence", "inclusion", "capacity", "conflict"};
    return names[cause];
}

/* Zeroed, and aligned so that a narrow set's data do not straddle lines of the host's cache. */
static void *zeroed(uint64_t count, size_t size)
{
    size_t bytes = (count * size + 63) / 64 * 64;
    void *memory = aligned_alloc(64, bytes);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

int cache_init(struct cache *c, const struct sim_level *level, uint32_t line_bytes, uint64_t seed)
{
    uint64_t lines = level->size_bytes / line_bytes;
    const struct policy *policy = policies[level->policy];
    c->ways = level->ways ? level->ways : (uint32_t)lines;
    c->nsets = lines / c->ways;
    c->power_of_two = (c->nsets & (c->nsets - 1)) == 0;
    c->wide_policy = policy->wide;
    random_seed(&c->random, seed);
    c->slots = zeroed(lines, sizeof *c->slots);
    if (!c->slots)
        return -ENOMEM;
    for (uint64_t i = 0; i < lines; i++)
        c->slots[i].key = KEY_NONE;
    if (c->ways > NARROW_WAYS) {
        c->ops = &wide_ops;
        return wide_init(c);
    }
    c->ops = policy->narrow(c->ways);
    c->sets = zeroed(c->nsets, sizeof *c->sets);
    return c->sets ? 0 : -ENOMEM;
}

void cache_clear(struct cache *c)
{
    free(c->slots);
    free(c->sets);
    wide_clear(c);
    causes_free(c->causes);
}
