/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - exact simulation of cache hierarchies: up to four levels, private and shared ones, several cores
 * (docs/methods.md, section 5). Arrays of accesses in, counts out; always write-back and write-allocate.
 *
 * Rules of the hierarchy, where textbooks differ:
 *  - A miss accesses the next level and then fills every level on its way, the outermost first. An exclusive
 *    level is not filled by misses but by lines that its inner level evicts, clean or dirty; a line that hits
 *    in it moves to the inner level.
 *  - A line evicted from an inclusive level is removed from all inner caches as well. If one of these was
 *    dirty, the line is written back.
 *  - An evicted dirty line goes to the next level. There it is marked dirty, which does not count as a use;
 *    if absent, it is inserted (config.write_around: passed on). Write-backs are not accesses.
 *  - Private caches are coherent: a store removes the line from all other cores' private caches (their next
 *    miss on it is a coherence miss), a load makes their copies clean. Dirty copies are written back to the
 *    first shared level. A core's first store to a line that only it holds is free.
 */
#ifndef CACHEGRAM_SIM_CACHE_H
#define CACHEGRAM_SIM_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

#define SIM_LEVELS 4u
#define SIM_CORES 64u
#define SIM_LINES (UINT64_C(1) << 30) /* most lines of one cache */

enum sim_policy { SIM_LRU, SIM_RANDOM, SIM_FIFO, SIM_PLRU, SIM_NEHALEM, SIM_RRIP, SIM_ICELAKE, SIM_POLICIES };
enum sim_inclusion { SIM_NON_INCLUSIVE, SIM_INCLUSIVE, SIM_EXCLUSIVE };

struct sim_level {
    uint64_t size_bytes; /* of each cache of this level: ways * sets * line_bytes */
    uint32_t ways;       /* 0: fully associative; PLRU requires a power of two */
    enum sim_policy policy;
    enum sim_inclusion inclusion; /* towards the inner levels; the first level is SIM_NON_INCLUSIVE */
    int shared;                   /* one cache for all cores; levels after a shared one are shared */
};

struct sim_config {
    struct sim_level level[SIM_LEVELS];
    uint32_t levels;     /* 1 .. SIM_LEVELS */
    uint32_t cores;      /* 1 .. SIM_CORES; caches of a core are created at its first access */
    uint32_t line_bytes; /* a power of two, 16 .. 4096 */
    uint64_t seed;       /* of the random policy: cache `level` (0 first) of `core` (shared: 0) draws from
                            random_seed(seed + level * SIM_CORES + core) */
    int incoherent;      /* cores run different programs: stores do not affect other cores */
    int straddle_once;   /* accesses may carry SIM_STRADDLE; no exclusive level, no coherent cores then */
    int write_around;    /* write-backs to a level that lacks the line go to the next one */
    int causes;          /* classify misses by cause; slower, and uses memory for every touched line */
};

/* Cause of a miss. */
enum sim_cause {
    SIM_COLD,      /* first access to the line in this cache */
    SIM_COHERENCE, /* another core's store removed the line */
    SIM_INCLUSION, /* an inclusive outer level evicted it */
    SIM_CAPACITY,  /* a fully associative LRU cache of this size also misses */
    SIM_CONFLICT,  /* it would hit: due to the set, or the policy */
    SIM_CAUSES
};

/* Counts of one core's accesses at one level. */
struct sim_stats {
    uint64_t accesses, misses;
    uint64_t stores, store_misses; /* of these, by stores */
    uint64_t evictions;            /* lines replaced by this core's fills */
    uint64_t writebacks;           /* dirty lines that left this level: evicted or removed */
    uint64_t cause[SIM_CAUSES];    /* add up to misses; all 0 unless config.causes */
};

/*
 * Accesses are packed into words: line << SIM_LINE_SHIFT, and flags. A reference that straddles two lines is
 * two accesses; or, with SIM_STRADDLE (config.straddle_once), one access to `line` and `line + 1`: at each
 * level one access, and one miss if either line misses; then both lines are requested from the next level (as
 * Valgrind's cachegrind does).
 */
#define SIM_STORE 1u
#define SIM_STRADDLE 2u
#define SIM_LINE_SHIFT 2u

struct sim;

/* 0; -EINVAL for an invalid configuration, -ENOMEM. *sim is unchanged on failure. */
int sim_new(const struct sim_config *config, struct sim **sim, struct error *err);
void sim_free(struct sim *sim); /* NULL is allowed */
/* Performs one core's next n accesses. core < config.cores. 0, or -ENOMEM: then the simulation cannot
 * continue. */
int sim_run(struct sim *sim, uint32_t core, const uint64_t *accesses, size_t n, struct error *err);
/*
 * Performs one access. Returns the level that had the line: 0 the innermost, config.levels for memory (a
 * straddling access: the outermost of both); or -ENOMEM.
 */
int sim_access(struct sim *sim, uint32_t core, uint64_t access, struct error *err);
/* level < config.levels, core < config.cores. */
struct sim_stats sim_stats(const struct sim *sim, uint32_t level, uint32_t core);
uint32_t sim_cores_seen(const struct sim *sim); /* 1 + the highest core that made an access; 0: none */

/* "lru", "random", ... */
const char *sim_policy_name(enum sim_policy policy);
/* "cold", "coherence", "inclusion", "capacity", "conflict". */
const char *sim_cause_name(enum sim_cause cause);

/*
 * Packs references [address, address + size) for sim_run, in order, until all are done or fewer than
 * SIM_PACK_MAX of the `room` words (at least that many) are left. A reference is one access for each line
 * that it touches; with `once` a single one, cut to line_bytes, with SIM_STRADDLE if it spans two lines.
 * store[i] is nonzero for stores. Returns the number of words; *taken is the number of references in them.
 */
#define SIM_PACK_MAX (UINT16_MAX / 16u + 2u) /* lines of 16 bytes of the longest reference */
size_t sim_pack(const uint64_t *address, const uint16_t *size, const uint8_t *store, size_t n,
                uint32_t line_bytes, int once, uint64_t *accesses, size_t capacity, size_t *taken);

#endif
