/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twin_cache.h - the brute-force twin of src/sim's hierarchies: the rules of cache.h once more, in the
 * plainest way. Ways are searched one by one, orders are kept as times, other cores are asked at every store,
 * and the fully associative LRU twin of a twin is an array that is shifted. Lines are below TWIN_LINES.
 */
#ifndef CACHEGRAM_TWIN_CACHE_H
#define CACHEGRAM_TWIN_CACHE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "sim/cache.h"

#define TWIN_LINES 4096u
#define TWIN_CORES 4u

struct twin_way {
    int valid, dirty, accessed, rrpv, age;
    uint64_t line, used, arrived;
};

struct twin_cache {
    uint32_t sets, ways;
    enum sim_policy policy;
    struct twin_way *way; /* [set][way] */
    int *tree;            /* [set][node] */
    uint64_t clock;
    struct random_state random;
    /* of the causes */
    uint64_t recent[TWIN_LINES], nrecent;
    int seen[TWIN_LINES], taken[TWIN_LINES];
};

struct twin {
    struct sim_config config;
    struct twin_cache cache[SIM_LEVELS][TWIN_CORES]; /* shared: core 0's */
    struct sim_stats stats[SIM_LEVELS][TWIN_CORES];
};

static inline struct twin_cache *twin_at(struct twin *t, uint32_t level, uint32_t core)
{
    return &t->cache[level][t->config.level[level].shared ? 0 : core];
}

static inline struct twin *twin_new(const struct sim_config *config)
{
    struct twin *t = calloc(1, sizeof *t);
    t->config = *config;
    for (uint32_t l = 0; l < config->levels; l++)
        for (uint32_t core = 0; core < (config->level[l].shared ? 1 : config->cores); core++) {
            struct twin_cache *c = &t->cache[l][core];
            uint64_t lines = config->level[l].size_bytes / config->line_bytes;
            c->ways = config->level[l].ways ? config->level[l].ways : (uint32_t)lines;
            c->sets = (uint32_t)(lines / c->ways);
            c->policy = config->level[l].policy;
            c->way = calloc(lines, sizeof *c->way);
            c->tree = calloc((size_t)c->sets * c->ways, sizeof *c->tree);
            random_seed(&c->random, config->seed + l * SIM_CORES + core);
        }
    return t;
}

static inline void twin_free(struct twin *t)
{
    for (uint32_t l = 0; l < SIM_LEVELS; l++)
        for (uint32_t core = 0; core < TWIN_CORES; core++) {
            free(t->cache[l][core].way);
            free(t->cache[l][core].tree);
        }
    free(t);
}

static inline struct twin_way *twin_find(struct twin_cache *c, uint64_t line)
{
    struct twin_way *set = &c->way[line % c->sets * c->ways];
    for (uint32_t w = 0; w < c->ways; w++)
        if (set[w].valid && set[w].line == line)
            return &set[w];
    return NULL;
}

/* Adds to the ages of all ways but one, so that the oldest of them is 3. Empty ways are of age 3. */
static inline void twin_grow_old(struct twin_way *ways, uint32_t n, uint32_t but)
{
    int oldest = 0;
    for (uint32_t w = 0; w < n; w++)
        if (w != but && (!ways[w].valid || ways[w].age > oldest))
            oldest = ways[w].valid ? ways[w].age : 3;
    for (uint32_t w = 0; w < n; w++)
        if (w != but)
            ways[w].age += 3 - oldest;
}

static inline void twin_use(struct twin_cache *c, struct twin_way *way, int arrives)
{
    uint32_t set = (uint32_t)(way->line % c->sets);
    struct twin_way *ways = &c->way[set * c->ways];
    uint32_t unset = 0, own = (uint32_t)(way - ways);
    way->used = ++c->clock;
    if (arrives)
        way->arrived = c->clock;
    way->rrpv = arrives ? 2 : 0;
    way->accessed = 1;
    way->age = arrives ? 1 : 0;
    twin_grow_old(ways, c->ways, own);
    for (uint32_t w = 0; w < c->ways; w++)
        unset += !ways[w].accessed;
    if (unset == 0 && c->ways > 1)
        for (uint32_t w = 0; w < c->ways; w++)
            ways[w].accessed = w == own;
    if (c->policy == SIM_PLRU) { /* halve the range of ways; each node points to the half not used */
        uint32_t low = 0, size = c->ways, node = 1;
        while (size > 1) {
            size /= 2;
            int right = own >= low + size;
            c->tree[set * c->ways + node] = !right;
            node = 2 * node + (uint32_t)right;
            low += right ? size : 0;
        }
    }
}

static inline struct twin_way *twin_victim(struct twin_cache *c, uint64_t line)
{
    uint32_t set = (uint32_t)(line % c->sets), best = 0, node = 1, size = c->ways;
    struct twin_way *ways = &c->way[set * c->ways];
    for (uint32_t w = 0; w < c->ways; w++)
        if (!ways[w].valid)
            return &ways[w];
    switch (c->policy) {
    case SIM_RANDOM:
        best = (uint32_t)random_below(&c->random, c->ways);
        break;
    case SIM_LRU:
    case SIM_FIFO:
        for (uint32_t w = 1; w < c->ways; w++)
            if (c->policy == SIM_LRU ? ways[w].used < ways[best].used : ways[w].arrived < ways[best].arrived)
                best = w;
        break;
    case SIM_PLRU:
        while (size > 1) {
            int right = c->tree[set * c->ways + node];
            size /= 2;
            best += right ? size : 0;
            node = 2 * node + (uint32_t)right;
        }
        break;
    case SIM_NEHALEM:
        while (c->ways > 1 && ways[best].accessed)
            best++;
        break;
    case SIM_ICELAKE:
        while (c->ways > 1 && ways[best].age != 3)
            best++;
        break;
    case SIM_RRIP:
        for (;; best = 0) {
            while (best < c->ways && ways[best].rrpv != 3)
                best++;
            if (best < c->ways)
                break;
            for (uint32_t w = 0; w < c->ways; w++)
                ways[w].rrpv++;
        }
        break;
    case SIM_POLICIES:
        break;
    }
    return &ways[best];
}

/* --- causes --- */

static inline void twin_recent_drop(struct twin_cache *c, uint64_t line)
{
    for (uint64_t i = 0; i < c->nrecent; i++)
        if (c->recent[i] == line) {
            memmove(&c->recent[i], &c->recent[i + 1], (c->nrecent - i - 1) * sizeof c->recent[0]);
            c->nrecent--;
            return;
        }
}

static inline void twin_recent_use(struct twin_cache *c, uint64_t line)
{
    twin_recent_drop(c, line);
    memmove(&c->recent[1], &c->recent[0], c->nrecent * sizeof c->recent[0]);
    c->recent[0] = line;
    c->nrecent += c->nrecent < (uint64_t)c->sets * c->ways;
    c->taken[line] = 0;
}

static inline int twin_cause(struct twin_cache *c, uint64_t line)
{
    int held = 0;
    if (!c->seen[line]) {
        c->seen[line] = 1;
        return SIM_COLD;
    }
    for (uint64_t i = 0; i < c->nrecent; i++)
        held |= c->recent[i] == line;
    return c->taken[line] ? c->taken[line] : held ? SIM_CONFLICT : SIM_CAPACITY;
}

/* --- the hierarchy --- */

static inline int twin_take(struct twin *t, uint32_t level, uint32_t core, uint32_t who, uint64_t line,
                            int why)
{
    struct twin_cache *c = twin_at(t, level, core);
    struct twin_way *way = twin_find(c, line);
    if (!way)
        return 0;
    int dirty = way->dirty;
    *way = (struct twin_way){0};
    t->stats[level][who].writebacks += (uint64_t)dirty;
    twin_recent_drop(c, line);
    c->taken[line] = why;
    return dirty;
}

static inline void twin_give(struct twin *t, uint32_t level, uint32_t core, uint64_t line, int dirty);

static inline void twin_put(struct twin *t, uint32_t level, uint32_t core, uint64_t line, int dirty)
{
    struct twin_cache *c = twin_at(t, level, core);
    struct twin_way *way = twin_victim(c, line), old = *way;
    *way = (struct twin_way){.valid = 1, .dirty = dirty, .line = line};
    way->accessed = 0;
    twin_use(c, way, 1);
    if (!old.valid)
        return;
    t->stats[level][core].evictions++;
    if (t->config.level[level].inclusion == SIM_INCLUSIVE)
        for (uint32_t l = 0; l < level; l++) {
            if (t->config.level[l].shared)
                old.dirty |= twin_take(t, l, 0, core, old.line, SIM_INCLUSION);
            for (uint32_t other = 0; !t->config.level[l].shared && other < t->config.cores; other++)
                if (other == core || t->config.level[level].shared)
                    old.dirty |= twin_take(t, l, other, other, old.line, SIM_INCLUSION);
        }
    t->stats[level][core].writebacks += (uint64_t)old.dirty;
    uint32_t next = level + 1;
    if (next == t->config.levels || !(old.dirty || t->config.level[next].inclusion == SIM_EXCLUSIVE))
        return;
    twin_give(t, next, core, old.line, old.dirty);
}

static inline void twin_give(struct twin *t, uint32_t level, uint32_t core, uint64_t line, int dirty)
{
    for (; level < t->config.levels; level++) {
        struct twin_way *there = twin_find(twin_at(t, level, core), line);
        if (there) {
            there->dirty |= dirty;
            return;
        }
        if (t->config.level[level].inclusion == SIM_EXCLUSIVE || !t->config.write_around) {
            twin_recent_use(twin_at(t, level, core), line);
            twin_put(t, level, core, line, dirty);
            return;
        }
    }
}

static inline void twin_others(struct twin *t, uint32_t core, uint64_t line, int store)
{
    uint32_t shared = 0;
    while (shared < t->config.levels && !t->config.level[shared].shared)
        shared++;
    for (uint32_t other = 0; other < t->config.cores; other++) {
        int dirty = 0;
        for (uint32_t l = 0; other != core && l < shared; l++) {
            struct twin_way *way = twin_find(&t->cache[l][other], line);
            if (store) {
                dirty |= twin_take(t, l, other, other, line, SIM_COHERENCE);
            } else if (way) {
                t->stats[l][other].writebacks += (uint64_t)way->dirty;
                dirty |= way->dirty;
                way->dirty = 0;
            }
        }
        if (dirty)
            twin_give(t, shared, other, line, 1);
    }
}

/* The level that had the line; *dirty is handed over to the next inner one. */
static inline uint32_t twin_fetch(struct twin *t, uint32_t level, uint32_t core, uint64_t line, int store,
                                  int *dirty)
{
    int beyond_private = level == t->config.levels || t->config.level[level].shared;
    if (beyond_private && !t->config.incoherent && (level == 0 || !t->config.level[level - 1].shared))
        twin_others(t, core, line, store);
    *dirty = 0;
    if (level == t->config.levels)
        return level;
    struct twin_cache *c = twin_at(t, level, core);
    struct twin_way *way = twin_find(c, line);
    struct sim_stats *stats = &t->stats[level][core];
    int exclusive = t->config.level[level].inclusion == SIM_EXCLUSIVE;
    int cause = twin_cause(c, line);
    stats->accesses++;
    stats->stores += (uint64_t)store;
    if (!exclusive)
        twin_recent_use(c, line);
    if (way && exclusive) {
        *dirty = way->dirty;
        *way = (struct twin_way){0};
        twin_recent_drop(c, line);
        c->taken[line] = 0;
        return level;
    }
    if (way) {
        twin_use(c, way, 0);
        return level;
    }
    stats->misses++;
    stats->store_misses += (uint64_t)store;
    if (t->config.causes)
        stats->cause[cause]++;
    uint32_t from = twin_fetch(t, level + 1, core, line, store, dirty);
    if (!exclusive) {
        twin_put(t, level, core, line, *dirty);
        *dirty = 0;
    }
    return from;
}

static inline uint32_t twin_access(struct twin *t, uint32_t core, uint64_t line, int store)
{
    int dirty;
    uint32_t from = twin_fetch(t, 0, core, line, store, &dirty);
    if (store) {
        if (!t->config.incoherent)
            twin_others(t, core, line, 1);
        twin_find(twin_at(t, 0, core), line)->dirty = 1;
    }
    return from;
}

#endif
