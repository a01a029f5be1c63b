/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache-internal.h - one cache of a hierarchy, and the interface of a replacement policy.
 *
 * A cache is an array of slots in which the ways of a set are adjacent. There are two implementations. Narrow
 * sets, of up to NARROW_WAYS ways, are searched and managed as bits in a word (narrow.h, instantiated for
 * each policy and for the usual numbers of ways, so that both are constants for the compiler). Wide sets find
 * lines through a hash table (wide.c).
 */
#ifndef CACHEGRAM_SIM_CACHE_INTERNAL_H
#define CACHEGRAM_SIM_CACHE_INTERNAL_H

#include <stdint.h>

#include "base/error.h"
#include "base/random.h"
#include "sim/cache.h"

#define NARROW_WAYS 32u

/* Content of a slot: line << KEY_SHIFT and flags, or KEY_NONE. */
#define KEY_DIRTY UINT64_C(1)
#define KEY_OWNED UINT64_C(2) /* no other core's private cache holds the line */
#define KEY_FLAGS (KEY_DIRTY | KEY_OWNED)
#define KEY_SHIFT 2u
#define KEY_NONE UINT64_MAX

struct slot {
    uint64_t key;
    uint64_t stamp; /* LRU: last use, FIFO: arrival; unused in wide caches */
};

struct narrow_set {
    uint64_t signature[NARROW_WAYS / 8]; /* one hash byte per way, searched eight at a time */
    uint32_t valid;                      /* bit for each way */
    uint32_t bits, bits2;                /* used by the policy */
};

struct cache;
struct causes;

/* Operations of one replacement policy on wide sets. Ways are counted within the set, slots over all sets. */
struct wide_policy {
    int list, tree, state; /* which of struct wide's arrays it uses */
    void (*hit)(struct cache *c, uint64_t set, uint32_t way);
    void (*fill)(struct cache *c, uint64_t set, uint32_t way);
    uint32_t (*victim)(struct cache *c, uint64_t set); /* all ways hold lines */
    void (*drop)(struct cache *c, uint64_t set, uint32_t way);
};

struct wide {
    uint32_t *table; /* hash of line -> slot + 1; 0 empty */
    uint64_t table_mask;
    uint32_t *used;        /* by set: ways below this have held lines since the start */
    uint32_t *holes;       /* by set: number of those that are empty now */
    uint32_t *prev, *next; /* by slot: ways in order of use or arrival; WIDE_END ends */
    uint32_t *head, *tail; /* by set: newest and oldest way */
    uint64_t *tree;        /* PLRU: ways / 64 words a set, at least one; bit n: node n of the tree */
    uint8_t *state;        /* by slot */
    uint32_t *count;       /* by set; always there; Nehalem: accessed ways, Ice Lake: not the oldest */
};
#define WIDE_END UINT32_MAX

/* Operations of one cache; slot: index in cache.slots. */
struct cache_ops {
    int64_t (*find)(const struct cache *c, uint64_t line); /* slot, or -1 */
    void (*hit)(struct cache *c, uint64_t slot);
    /* Inserts a line that is absent; returns the key of the line that it replaces, or KEY_NONE. */
    uint64_t (*insert)(struct cache *c, uint64_t key);
    void (*remove)(struct cache *c, uint64_t slot);
    /*
     * Performs accesses to the first level, including misses: calls sim_first_miss, sim_first_store and
     * sim_first_straddle. NULL: only sim_access can.
     */
    void (*run)(struct sim *sim, struct cache *c, uint32_t core, const uint64_t *accesses, size_t n);
};

/* One per file, policy-NAME.c. */
struct policy {
    const char *name;
    const struct cache_ops *(*narrow)(uint32_t ways); /* ways <= NARROW_WAYS */
    const struct wide_policy *wide;
};
extern const struct policy policy_lru, policy_random, policy_fifo, policy_plru, policy_nehalem, policy_rrip,
    policy_icelake;

struct cache {
    const struct cache_ops *ops;
    struct slot *slots;
    struct narrow_set *sets; /* NULL: wide */
    struct wide wide;
    const struct wide_policy *wide_policy;
    uint64_t nsets;
    int power_of_two; /* nsets is a power of two */
    uint32_t ways;
    uint64_t now; /* last stamp */
    struct random_state random;
    struct causes *causes; /* NULL: not requested */
};

/* 0 or -ENOMEM. The geometry was checked. c is zeroed storage; cache_clear frees its contents. */
int cache_init(struct cache *c, const struct sim_level *level, uint32_t line_bytes, uint64_t seed);
void cache_clear(struct cache *c);
extern const struct cache_ops wide_ops;
int wide_init(struct cache *c);
void wide_clear(struct cache *c);

static inline uint64_t cache_set_of(const struct cache *c, uint64_t line)
{
    return c->power_of_two ? line & (c->nsets - 1) : line % c->nsets;
}

/* --- calls from the first level's loop --- */
void sim_first_miss(struct sim *sim, uint32_t core, uint64_t access);
/* A store hit a line that other cores may hold. */
void sim_first_store(struct sim *sim, uint32_t core, uint64_t line);
void sim_first_straddle(struct sim *sim, uint32_t core, uint64_t access);

/* --- misses by cause: a fully associative LRU twin of a cache (causes.c) --- */
struct causes *causes_new(uint64_t lines); /* NULL: memory */
void causes_free(struct causes *causes);
/* Returns why an access to the line would miss, if it does, and records the access. -ENOMEM if memory is
 * short. */
int causes_query(struct causes *causes, uint64_t line);
/* Makes the line the twin's most recent one. 0 or -ENOMEM. */
int causes_use(struct causes *causes, uint64_t line);
/* The line was removed for another reason than replacement: why is SIM_COHERENCE, SIM_INCLUSION, or
 * SIM_CAPACITY for none of these. */
void causes_remove(struct causes *causes, uint64_t line, enum sim_cause why);

#endif
