/* SPDX-License-Identifier: Apache-2.0 */
/* simulation.c - creates and runs simulations, and returns their counts. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/hierarchy.h"

static int check_level(const struct sim_config *config, uint32_t l, struct error *err)
{
    const struct sim_level *level = &config->level[l];
    uint64_t lines = level->size_bytes / config->line_bytes;
    if (level->size_bytes % config->line_bytes || lines == 0)
        return error_set(err, -EINVAL, "level %u: the size is not a multiple of the line size, %u bytes",
                         l + 1, config->line_bytes);
    if (lines > SIM_LINES)
        return error_set(err, -EINVAL, "level %u: a cache must have at most 2^30 lines", l + 1);
    uint64_t ways = level->ways ? level->ways : lines;
    if (ways > lines || lines % ways)
        return error_set(err, -EINVAL, "level %u: %llu lines cannot be divided into sets of %llu ways", l + 1,
                         (unsigned long long)lines, (unsigned long long)ways);
    if ((unsigned)level->policy >= SIM_POLICIES || (unsigned)level->inclusion > SIM_EXCLUSIVE)
        return error_set(err, -EINVAL, "level %u: no such policy or inclusion", l + 1);
    if (level->policy == SIM_PLRU && ways & (ways - 1))
        return error_set(err, -EINVAL, "level %u: plru needs a power of two of ways, not %llu", l + 1,
                         (unsigned long long)ways);
    if (l == 0 && level->inclusion != SIM_NON_INCLUSIVE)
        return error_set(err, -EINVAL, "the first level has no inner level to be inclusive or exclusive of");
    if (l > 0 && config->level[l - 1].shared && !level->shared)
        return error_set(err, -EINVAL, "level %u is private, but comes after a shared one", l + 1);
    if (level->inclusion == SIM_EXCLUSIVE && config->straddle_once)
        return error_set(err, -EINVAL, "level %u is exclusive: straddling references cannot be one access",
                         l + 1);
    return 0;
}

static int check(const struct sim_config *config, struct error *err)
{
    if (config->levels < 1 || config->levels > SIM_LEVELS)
        return error_set(err, -EINVAL, "a hierarchy must have 1 to %u levels", SIM_LEVELS);
    if (config->cores < 1 || config->cores > SIM_CORES)
        return error_set(err, -EINVAL, "there must be 1 to %u cores", SIM_CORES);
    if (config->line_bytes < 16 || config->line_bytes > 4096 || config->line_bytes & (config->line_bytes - 1))
        return error_set(err, -EINVAL, "the line size must be a power of two from 16 to 4096 bytes");
    if (config->straddle_once && config->cores > 1 && !config->incoherent)
        return error_set(err, -EINVAL, "between coherent cores straddling references cannot be one access");
    for (uint32_t l = 0; l < config->levels; l++) {
        int code = check_level(config, l, err);
        if (code != 0)
            return code;
    }
    return 0;
}

static int make_cache(const struct sim *sim, struct cache *c, uint32_t level, uint32_t core)
{
    const struct sim_config *config = &sim->config;
    if (cache_init(c, &config->level[level], config->line_bytes, config->seed + level * SIM_CORES + core) !=
        0)
        return -ENOMEM;
    if (config->causes)
        c->causes = causes_new(config->level[level].size_bytes / config->line_bytes);
    return config->causes && !c->causes ? -ENOMEM : 0;
}

int sim_new(const struct sim_config *config, struct sim **result, struct error *err)
{
    int code = check(config, err);
    if (code != 0)
        return code;
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return error_set(err, -ENOMEM, "out of memory for the simulation");
    sim->config = *config;
    while (sim->private_levels < config->levels && !config->level[sim->private_levels].shared)
        sim->private_levels++;
    sim->coherent = config->cores > 1 && !config->incoherent;
    for (uint32_t l = sim->private_levels; l < config->levels; l++) {
        if (make_cache(sim, &sim->shared_cache[l], l, 0) != 0) {
            sim_free(sim);
            return error_set(err, -ENOMEM, "out of memory for a simulated cache of level %u", l + 1);
        }
    }
    *result = sim;
    return 0;
}

void sim_free(struct sim *sim)
{
    if (!sim)
        return;
    for (uint32_t core = 0; core < SIM_CORES; core++) {
        for (uint32_t l = 0; sim->private_cache[core] && l < sim->private_levels; l++)
            cache_clear(&sim->private_cache[core][l]);
        free(sim->private_cache[core]);
    }
    for (uint32_t l = sim->private_levels; l < sim->config.levels; l++)
        cache_clear(&sim->shared_cache[l]);
    free(sim);
}

/* Creates a core's private caches at its first access. */
static int add_core(struct sim *sim, uint32_t core, struct error *err)
{
    if (core >= sim->config.cores)
        return error_set(err, -EINVAL, "core %u is not one of the %u simulated", core, sim->config.cores);
    if (sim->private_levels && !sim->private_cache[core]) {
        struct cache *caches = calloc(sim->private_levels, sizeof *caches);
        int code = caches ? 0 : -ENOMEM;
        for (uint32_t l = 0; code == 0 && l < sim->private_levels; l++)
            code = make_cache(sim, &caches[l], l, core);
        if (code != 0) {
            for (uint32_t l = 0; caches && l < sim->private_levels; l++)
                cache_clear(&caches[l]);
            free(caches);
            return error_set(err, code, "out of memory for the caches of core %u", core);
        }
        sim->private_cache[core] = caches;
    }
    if (core >= sim->cores_seen)
        sim->cores_seen = core + 1;
    return 0;
}

static int failed(struct error *err)
{
    return error_set(err, -ENOMEM, "out of memory for the causes of misses");
}

int sim_run(struct sim *sim, uint32_t core, const uint64_t *accesses, size_t n, struct error *err)
{
    int code = add_core(sim, core, err);
    if (code != 0)
        return code;
    struct cache *c = cache_at(sim, 0, core);
    if (c->causes || !c->ops->run) {
        for (size_t i = 0; i < n; i++)
            hierarchy_access(sim, core, accesses[i]);
    } else {
        uint64_t stores = 0;
        for (size_t i = 0; i < n; i++)
            stores += accesses[i] & SIM_STORE;
        sim->stats[0][core].accesses += n;
        sim->stats[0][core].stores += stores;
        c->ops->run(sim, c, core, accesses, n);
    }
    return sim->failed ? failed(err) : 0;
}

int sim_access(struct sim *sim, uint32_t core, uint64_t access, struct error *err)
{
    int code = add_core(sim, core, err);
    if (code != 0)
        return code;
    uint32_t from = hierarchy_access(sim, core, access);
    return sim->failed ? failed(err) : (int)from;
}

struct sim_stats sim_stats(const struct sim *sim, uint32_t level, uint32_t core)
{
    assert(level < sim->config.levels && core < sim->config.cores);
    return sim->stats[level][core];
}

uint32_t sim_cores_seen(const struct sim *sim)
{
    return sim->cores_seen;
}
