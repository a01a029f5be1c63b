/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hierarchy.c - the caches together: misses and write-backs between levels, inclusion, coherence. The rules
 * are in cache.h.
 *
 * Problem. At a hundred million references per second there are 10 ns for each, and the rules require many
 * checks. Method: they are made only on a miss. Hits in the first level stay in one loop that is instantiated
 * for its policy and ways (narrow.h). A store hit needs to know whether other cores may hold the line: this
 * is a flag in the slot (KEY_OWNED), maintained when lines are fetched and invalidated.
 */

#include "sim/hierarchy.h"

/* --- evictions --- */

static void place(struct sim *sim, uint32_t core, uint32_t level, uint64_t key);

/* Returns KEY_DIRTY if the cache holds the line, and it is dirty there. */
static uint64_t remove_from_cache(struct cache *c, struct sim_stats *stats, uint64_t line, enum sim_cause why)
{
    int64_t slot = c->ops->find(c, line);
    if (slot < 0)
        return 0;
    uint64_t dirty = c->slots[slot].key & KEY_DIRTY;
    stats->writebacks += dirty;
    c->ops->remove(c, (uint64_t)slot);
    if (c->causes)
        causes_remove(c->causes, line, why);
    return dirty;
}

/* Removes the line from a core's caches inside `level`. Returns KEY_DIRTY if one of them was dirty. */
static uint64_t remove_from_core(struct sim *sim, uint32_t core, uint32_t level, uint64_t line,
                                 enum sim_cause why)
{
    uint64_t dirty = 0;
    for (uint32_t l = 0; l < level && l < sim->private_levels; l++)
        dirty |= remove_from_cache(cache_at(sim, l, core), &sim->stats[l][core], line, why);
    return dirty;
}

static uint64_t remove_from_inner(struct sim *sim, uint32_t core, uint32_t level, uint64_t line)
{
    if (level < sim->private_levels) /* only this core is affected */
        return remove_from_core(sim, core, level, line, SIM_INCLUSION);
    uint64_t dirty = 0;
    for (uint32_t other = 0; other < sim->cores_seen; other++)
        if (sim->private_cache[other])
            dirty |= remove_from_core(sim, other, level, line, SIM_INCLUSION);
    /* Shared levels further inside. */
    for (uint32_t l = sim->private_levels; l < level; l++)
        dirty |= remove_from_cache(&sim->shared_cache[l], &sim->stats[l][core], line, SIM_INCLUSION);
    return dirty;
}

/* A line was evicted from `level` because of core. */
static void evicted(struct sim *sim, uint32_t core, uint32_t level, uint64_t key)
{
    uint64_t line = key >> KEY_SHIFT;
    sim->stats[level][core].evictions++;
    if (sim->config.level[level].inclusion == SIM_INCLUSIVE)
        key |= remove_from_inner(sim, core, level, line);
    sim->stats[level][core].writebacks += key & KEY_DIRTY;
    uint32_t next = level + 1;
    if (next < sim->config.levels && (key & KEY_DIRTY || sim->config.level[next].inclusion == SIM_EXCLUSIVE))
        place(sim, core, next, key);
}

static void fill(struct sim *sim, uint32_t core, uint32_t level, uint64_t key)
{
    struct cache *c = cache_at(sim, level, core);
    uint64_t victim = c->ops->insert(c, key);
    if (victim != KEY_NONE)
        evicted(sim, core, level, victim);
}

/* Handles a line evicted from the inner level: a write-back, or the fill of an exclusive level. */
static void place(struct sim *sim, uint32_t core, uint32_t level, uint64_t key)
{
    struct cache *c = cache_at(sim, level, core);
    int64_t slot = c->ops->find(c, key >> KEY_SHIFT);
    if (slot >= 0) {
        c->slots[slot].key |= key & KEY_DIRTY;
        return;
    }
    if (sim->config.write_around && sim->config.level[level].inclusion != SIM_EXCLUSIVE) {
        if (level + 1 < sim->config.levels)
            place(sim, core, level + 1, key);
        return;
    }
    if (c->causes && causes_use(c->causes, key >> KEY_SHIFT) != 0)
        sim->failed = 1;
    fill(sim, core, level, key);
}

/* --- coherence --- */

/*
 * Removes the line from other cores' private caches (store), or ends their ownership. Returns KEY_OWNED if no
 * other copy is left.
 */
static uint64_t query_other_cores(struct sim *sim, uint32_t core, uint64_t line, int store)
{
    uint64_t owned = KEY_OWNED;
    for (uint32_t other = 0; other < sim->cores_seen; other++) {
        uint64_t dirty = 0;
        if (other == core || !sim->private_cache[other])
            continue;
        if (store) {
            dirty = remove_from_core(sim, other, sim->private_levels, line, SIM_COHERENCE);
        } else {
            for (uint32_t l = 0; l < sim->private_levels; l++) {
                struct cache *c = &sim->private_cache[other][l];
                int64_t slot = c->ops->find(c, line);
                if (slot < 0)
                    continue;
                owned = 0;
                sim->stats[l][other].writebacks += c->slots[slot].key & KEY_DIRTY;
                dirty |= c->slots[slot].key & KEY_DIRTY;
                c->slots[slot].key &= ~KEY_FLAGS;
            }
        }
        if (dirty && sim->private_levels < sim->config.levels)
            place(sim, other, sim->private_levels, line << KEY_SHIFT | KEY_FLAGS);
    }
    return owned;
}

/* The core is about to store to a line that it holds but does not own. */
static void own(struct sim *sim, uint32_t core, uint64_t line)
{
    query_other_cores(sim, core, line, 1);
    for (uint32_t l = 0; l < sim->private_levels; l++) {
        struct cache *c = &sim->private_cache[core][l];
        int64_t slot = c->ops->find(c, line);
        if (slot >= 0)
            c->slots[slot].key |= KEY_OWNED;
    }
}

/* --- requests to a level --- */

static void count_access(struct sim *sim, uint32_t core, uint32_t level, int store)
{
    struct sim_stats *stats = &sim->stats[level][core];
    stats->accesses++;
    stats->stores += (uint64_t)store;
}

static void count_miss(struct sim *sim, uint32_t core, uint32_t level, int store, int cause)
{
    struct sim_stats *stats = &sim->stats[level][core];
    stats->misses++;
    stats->store_misses += (uint64_t)store;
    if (cause >= 0)
        stats->cause[cause]++;
}

/* Returns the cause of a miss; -1 if causes are not classified. */
static int query_causes(struct sim *sim, const struct cache *c, uint64_t line)
{
    if (!c->causes)
        return -1;
    int cause = causes_query(c->causes, line);
    sim->failed |= cause < 0;
    return cause;
}

static void use_causes(struct sim *sim, const struct cache *c, uint64_t line)
{
    if (c->causes && causes_use(c->causes, line) != 0)
        sim->failed = 1;
}

/*
 * Fetches the line for the core from `level` or beyond. Returns the level that had it; *flags: to be stored
 * with the line.
 */
static uint32_t fetch(struct sim *sim, uint32_t core, uint32_t level, uint64_t line, int store,
                      uint64_t *flags)
{
    if (level == sim->private_levels)
        *flags = sim->coherent ? query_other_cores(sim, core, line, store) : KEY_OWNED;
    if (level == sim->config.levels)
        return level;
    struct cache *c = cache_at(sim, level, core);
    int exclusive = sim->config.level[level].inclusion == SIM_EXCLUSIVE;
    int cause = query_causes(sim, c, line);
    int64_t slot = c->ops->find(c, line);
    uint32_t from = level;
    count_access(sim, core, level, store);
    if (!exclusive)
        use_causes(sim, c, line);
    if (slot < 0) {
        count_miss(sim, core, level, store, cause);
        from = fetch(sim, core, level + 1, line, store, flags);
        if (!exclusive) {
            fill(sim, core, level, line << KEY_SHIFT | *flags);
            *flags &= ~KEY_DIRTY;
        }
        return from;
    }
    uint64_t key = c->slots[slot].key;
    if (exclusive) {
        c->ops->remove(c, (uint64_t)slot);
        if (c->causes)
            causes_remove(c->causes, line, SIM_CAPACITY);
    } else {
        c->ops->hit(c, (uint64_t)slot);
    }
    if (level < sim->private_levels) {
        *flags = key & KEY_OWNED;
        if (store && !(key & KEY_OWNED)) {
            own(sim, core, line);
            *flags = KEY_OWNED;
        }
    }
    if (exclusive)
        *flags |= key & KEY_DIRTY;
    return from;
}

static uint32_t first_miss(struct sim *sim, uint32_t core, uint64_t line, int store, int cause)
{
    uint64_t flags = KEY_OWNED;
    count_miss(sim, core, 0, store, cause);
    uint32_t from = fetch(sim, core, 1, line, store, &flags);
    fill(sim, core, 0, line << KEY_SHIFT | flags | (store ? KEY_DIRTY : 0));
    return from;
}

/* Accesses `line` and `line + 1` as one access. Levels are neither exclusive nor coherent (sim_new). */
static uint32_t straddle(struct sim *sim, uint32_t core, uint32_t level, uint64_t line, int store)
{
    if (level == sim->config.levels)
        return level;
    struct cache *c = cache_at(sim, level, core);
    int missed = 0, cause = -1;
    count_access(sim, core, level, store);
    for (uint64_t l = line; l <= line + 1; l++) {
        int why = query_causes(sim, c, l);
        int64_t slot = c->ops->find(c, l);
        use_causes(sim, c, l);
        if (slot >= 0) {
            c->ops->hit(c, (uint64_t)slot);
        } else {
            if (!missed)
                cause = why;
            missed = 1;
            fill(sim, core, level, l << KEY_SHIFT | KEY_OWNED);
            slot = c->ops->find(c, l);
        }
        if (level == 0 && store)
            c->slots[slot].key |= KEY_DIRTY;
    }
    if (!missed)
        return level;
    count_miss(sim, core, level, store, cause);
    return straddle(sim, core, level + 1, line, store);
}

/* --- the first level --- */

void sim_first_miss(struct sim *sim, uint32_t core, uint64_t access)
{
    first_miss(sim, core, access >> SIM_LINE_SHIFT, (int)(access & SIM_STORE), -1);
}

void sim_first_store(struct sim *sim, uint32_t core, uint64_t line)
{
    own(sim, core, line);
}

void sim_first_straddle(struct sim *sim, uint32_t core, uint64_t access)
{
    /* The loop has counted this access already. */
    sim->stats[0][core].accesses--;
    sim->stats[0][core].stores -= access & SIM_STORE;
    straddle(sim, core, 0, access >> SIM_LINE_SHIFT, (int)(access & SIM_STORE));
}

uint32_t hierarchy_access(struct sim *sim, uint32_t core, uint64_t access)
{
    uint64_t line = access >> SIM_LINE_SHIFT;
    int store = (int)(access & SIM_STORE);
    if (access & SIM_STRADDLE)
        return straddle(sim, core, 0, line, store);
    struct cache *c = cache_at(sim, 0, core);
    int cause = query_causes(sim, c, line);
    int64_t slot = c->ops->find(c, line);
    count_access(sim, core, 0, store);
    use_causes(sim, c, line);
    if (slot < 0)
        return first_miss(sim, core, line, store, cause);
    c->ops->hit(c, (uint64_t)slot);
    if (store) {
        if (!(c->slots[slot].key & KEY_OWNED))
            own(sim, core, line);
        c->slots[slot].key |= KEY_DIRTY;
    }
    return 0;
}
