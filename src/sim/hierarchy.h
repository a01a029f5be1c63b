/* SPDX-License-Identifier: Apache-2.0 */
/* hierarchy.h - a simulation: the caches of all cores. Internal to src/sim. */
#ifndef CACHEGRAM_SIM_HIERARCHY_H
#define CACHEGRAM_SIM_HIERARCHY_H

#include "sim/cache-internal.h"

struct sim {
    struct sim_config config;
    uint32_t private_levels; /* the first ones */
    int coherent;            /* coherence with other cores is simulated */
    uint32_t cores_seen;
    int failed;                             /* memory was short: counts are wrong from now on */
    struct cache *private_cache[SIM_CORES]; /* [core][level]; NULL: no access yet */
    struct cache shared_cache[SIM_LEVELS];  /* [level], from private_levels on */
    struct sim_stats stats[SIM_LEVELS][SIM_CORES];
};

static inline struct cache *cache_at(const struct sim *sim, uint32_t level, uint32_t core)
{
    return level < sim->private_levels ? &sim->private_cache[core][level]
                                       : (struct cache *)&sim->shared_cache[level];
}

/* Performs one access of a core that has its caches; returns the level that had the line (sim_access). */
uint32_t hierarchy_access(struct sim *sim, uint32_t core, uint64_t access);

#endif
