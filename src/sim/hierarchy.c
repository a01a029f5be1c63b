/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hierarchy.c - caches put together: misses and write-backs between levels, inclusion, coherence. The
 * rules are in cache.h.
 *
 * Problem. A hundred million references a second leave 10 ns for each, and the rules make for many
 * questions. Method: the questions are asked only on the way of a miss. Hits in the first level stay in
 * one loop that is made for its policy and ways (narrow.h); what a store hit must know, whether others may
 * hold the line, is a flag in the slot (KEY_OWNED), kept by those who fetch and those who take away.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cache-internal.h"

struct sim {
    struct sim_config config;
    uint32_t private_levels; /* the first ones */
    int coherent;            /* there are other cores to ask */
    uint32_t cores_seen;
    int failed;                             /* memory ran out: counts are no longer right */
    struct cache *private_cache[SIM_CORES]; /* [core][level], NULL: not seen yet */
    struct cache shared_cache[SIM_LEVELS];  /* [level], from private_levels on */
    struct sim_stats stats[SIM_LEVELS][SIM_CORES];
};

static struct cache *cache_at(const struct sim *sim, uint32_t level, uint32_t core)
{
    return level < sim->private_levels ? &sim->private_cache[core][level]
                                       : (struct cache *)&sim->shared_cache[level];
}

/* --- what a level loses --- */

static void place(struct sim *sim, uint32_t core, uint32_t level, uint64_t key);

/* Takes the line out of the inner caches of a core, below `level`. KEY_DIRTY if one of them was dirty. */
static uint64_t take_out(struct sim *sim, uint32_t core, uint32_t level, uint64_t line, enum sim_cause why)
{
    uint64_t dirty = 0;
    for (uint32_t l = 0; l < level && l < sim->private_levels; l++) {
        struct cache *c = cache_at(sim, l, core);
        int64_t slot = c->ops->find(c, line);
        if (slot < 0)
            continue;
        uint64_t key = c->slots[slot].key;
        sim->stats[l][core].writebacks += key & KEY_DIRTY;
        dirty |= key & KEY_DIRTY;
        c->ops->remove(c, (uint64_t)slot);
        if (c->causes)
            causes_remove(c->causes, line, why);
    }
    return dirty;
}

static uint64_t take_out_inner(struct sim *sim, uint32_t core, uint32_t level, uint64_t line)
{
    if (level < sim->private_levels) /* a core's own affair */
        return take_out(sim, core, level, line, SIM_INCLUSION);
    uint64_t dirty = 0;
    for (uint32_t other = 0; other < sim->cores_seen; other++)
        if (sim->private_cache[other])
            dirty |= take_out(sim, other, level, line, SIM_INCLUSION);
    /* Shared levels further in. */
    for (uint32_t l = sim->private_levels; l < level; l++) {
        struct cache *c = &sim->shared_cache[l];
        int64_t slot = c->ops->find(c, line);
        if (slot < 0)
            continue;
        sim->stats[l][core].writebacks += c->slots[slot].key & KEY_DIRTY;
        dirty |= c->slots[slot].key & KEY_DIRTY;
        c->ops->remove(c, (uint64_t)slot);
        if (c->causes)
            causes_remove(c->causes, line, SIM_INCLUSION);
    }
    return dirty;
}

/* A line dropped out of `level`, on behalf of core. */
static void evicted(struct sim *sim, uint32_t core, uint32_t level, uint64_t key)
{
    uint64_t line = key >> KEY_SHIFT;
    sim->stats[level][core].evictions++;
    if (sim->config.level[level].inclusion == SIM_INCLUSIVE)
        key |= take_out_inner(sim, core, level, line);
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

/* A line that comes from further in: a write-back, or an exclusive level's due. */
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
 * Another core's private caches give the line up (store) or stop owning it. KEY_OWNED if no copy is left
 * elsewhere.
 */
static uint64_t ask_others(struct sim *sim, uint32_t core, uint64_t line, int store)
{
    uint64_t owned = KEY_OWNED;
    for (uint32_t other = 0; other < sim->cores_seen; other++) {
        uint64_t dirty = 0;
        if (other == core || !sim->private_cache[other])
            continue;
        if (store) {
            dirty = take_out(sim, other, sim->private_levels, line, SIM_COHERENCE);
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
    ask_others(sim, core, line, 1);
    for (uint32_t l = 0; l < sim->private_levels; l++) {
        struct cache *c = &sim->private_cache[core][l];
        int64_t slot = c->ops->find(c, line);
        if (slot >= 0)
            c->slots[slot].key |= KEY_OWNED;
    }
}

/* --- what a level is asked for --- */

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

/* What a miss would be put down to; -1 if nobody asked. */
static int ask_causes(struct sim *sim, const struct cache *c, uint64_t line)
{
    if (!c->causes)
        return -1;
    int cause = causes_ask(c->causes, line);
    sim->failed |= cause < 0;
    return cause;
}

static void use_causes(struct sim *sim, const struct cache *c, uint64_t line)
{
    if (c->causes && causes_use(c->causes, line) != 0)
        sim->failed = 1;
}

/*
 * The core wants the line from `level` or beyond, to put it further in. Returns the level that had it;
 * *flags: to be kept with it there.
 */
static uint32_t fetch(struct sim *sim, uint32_t core, uint32_t level, uint64_t line, int store,
                      uint64_t *flags)
{
    if (level == sim->private_levels)
        *flags = sim->coherent ? ask_others(sim, core, line, store) : KEY_OWNED;
    if (level == sim->config.levels)
        return level;
    struct cache *c = cache_at(sim, level, core);
    int exclusive = sim->config.level[level].inclusion == SIM_EXCLUSIVE;
    int cause = ask_causes(sim, c, line);
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

/* Lines `line` and `line + 1` as one access. Levels are neither exclusive nor coherent (sim_new). */
static uint32_t straddle(struct sim *sim, uint32_t core, uint32_t level, uint64_t line, int store)
{
    if (level == sim->config.levels)
        return level;
    struct cache *c = cache_at(sim, level, core);
    int missed = 0, cause = -1;
    count_access(sim, core, level, store);
    for (uint64_t l = line; l <= line + 1; l++) {
        int why = ask_causes(sim, c, l);
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
    /* The loop counts its accesses in one go. */
    sim->stats[0][core].accesses--;
    sim->stats[0][core].stores -= access & SIM_STORE;
    straddle(sim, core, 0, access >> SIM_LINE_SHIFT, (int)(access & SIM_STORE));
}

static uint32_t one_access(struct sim *sim, uint32_t core, uint64_t access)
{
    uint64_t line = access >> SIM_LINE_SHIFT;
    int store = (int)(access & SIM_STORE);
    if (access & SIM_STRADDLE)
        return straddle(sim, core, 0, line, store);
    struct cache *c = cache_at(sim, 0, core);
    int cause = ask_causes(sim, c, line);
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

/* --- making and running --- */

static int check_level(const struct sim_config *config, uint32_t l, struct error *err)
{
    const struct sim_level *level = &config->level[l];
    uint64_t lines = level->size_bytes / config->line_bytes;
    if (level->size_bytes % config->line_bytes || lines == 0)
        return error_set(err, -EINVAL, "level %u: the size is no multiple of the line size, %u bytes", l + 1,
                         config->line_bytes);
    if (lines > SIM_LINES)
        return error_set(err, -EINVAL, "level %u: a cache has at most 2^30 lines", l + 1);
    uint64_t ways = level->ways ? level->ways : lines;
    if (ways > lines || lines % ways)
        return error_set(err, -EINVAL, "level %u: %llu lines do not make whole sets of %llu ways", l + 1,
                         (unsigned long long)lines, (unsigned long long)ways);
    if ((unsigned)level->policy >= SIM_POLICIES || (unsigned)level->inclusion > SIM_EXCLUSIVE)
        return error_set(err, -EINVAL, "level %u: no such policy or inclusion", l + 1);
    if (level->policy == SIM_PLRU && ways & (ways - 1))
        return error_set(err, -EINVAL, "level %u: plru needs a power of two of ways, not %llu", l + 1,
                         (unsigned long long)ways);
    if (l == 0 && level->inclusion != SIM_NON_INCLUSIVE)
        return error_set(err, -EINVAL, "the first level has nothing to be inclusive or exclusive of");
    if (l > 0 && config->level[l - 1].shared && !level->shared)
        return error_set(err, -EINVAL, "level %u is private, but lies beyond a shared one", l + 1);
    if (level->inclusion == SIM_EXCLUSIVE && config->straddle_once)
        return error_set(err, -EINVAL, "level %u is exclusive: straddling references cannot be one access",
                         l + 1);
    return 0;
}

static int check(const struct sim_config *config, struct error *err)
{
    if (config->levels < 1 || config->levels > SIM_LEVELS)
        return error_set(err, -EINVAL, "a hierarchy has 1 to %u levels", SIM_LEVELS);
    if (config->cores < 1 || config->cores > SIM_CORES)
        return error_set(err, -EINVAL, "there are 1 to %u cores", SIM_CORES);
    if (config->line_bytes < 16 || config->line_bytes > 4096 || config->line_bytes & (config->line_bytes - 1))
        return error_set(err, -EINVAL, "the line size is a power of two from 16 to 4096 bytes");
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
        return error_set(err, -ENOMEM, "no memory for the simulation");
    sim->config = *config;
    while (sim->private_levels < config->levels && !config->level[sim->private_levels].shared)
        sim->private_levels++;
    sim->coherent = config->cores > 1 && !config->incoherent;
    for (uint32_t l = sim->private_levels; l < config->levels; l++) {
        if (make_cache(sim, &sim->shared_cache[l], l, 0) != 0) {
            sim_free(sim);
            return error_set(err, -ENOMEM, "no memory for a simulated cache of level %u", l + 1);
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

/* Makes a core's private caches when it first shows up. */
static int see_core(struct sim *sim, uint32_t core, struct error *err)
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
            return error_set(err, code, "no memory for the caches of core %u", core);
        }
        sim->private_cache[core] = caches;
    }
    if (core >= sim->cores_seen)
        sim->cores_seen = core + 1;
    return 0;
}

static int failed(struct error *err)
{
    return error_set(err, -ENOMEM, "no memory to tell the misses by cause");
}

int sim_run(struct sim *sim, uint32_t core, const uint64_t *accesses, size_t n, struct error *err)
{
    int code = see_core(sim, core, err);
    if (code != 0)
        return code;
    struct cache *c = cache_at(sim, 0, core);
    if (c->causes || !c->ops->run) {
        for (size_t i = 0; i < n; i++)
            one_access(sim, core, accesses[i]);
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
    int code = see_core(sim, core, err);
    if (code != 0)
        return code;
    uint32_t from = one_access(sim, core, access);
    return sim->failed ? failed(err) : (int)from;
}

struct sim_stats sim_stats(const struct sim *sim, uint32_t level, uint32_t core)
{
    assert(level < sim->config.levels && core < sim->config.cores);
    return sim->stats[level][core];
}

void sim_reset_stats(struct sim *sim)
{
    memset(sim->stats, 0, sizeof sim->stats);
}

uint32_t sim_cores_seen(const struct sim *sim)
{
    return sim->cores_seen;
}

int sim_holds(const struct sim *sim, uint32_t level, uint32_t core, uint64_t line)
{
    if (level >= sim->config.levels || core >= sim->config.cores ||
        (level < sim->private_levels && !sim->private_cache[core]))
        return 0;
    const struct cache *c = cache_at(sim, level, core);
    return c->ops->find(c, line) >= 0;
}
