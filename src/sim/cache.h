/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - exact simulation of cache hierarchies: up to four levels, private and shared ones, several
 * cores (docs/methods.md, section 5). Arrays of accesses in, counts out; write-back and write-allocate
 * throughout.
 *
 * Rules of the hierarchy, where textbooks differ:
 *  - A miss asks the next level and then fills every level that it came through, the outermost first.
 *    An exclusive level is not filled by misses but by what its inner level evicts, clean or dirty, and
 *    hands a line that hits over to the inner level.
 *  - A line evicted from an inclusive level is taken out of all inner caches as well; if one of these was
 *    dirty, so is what is written back.
 *  - A dirty line that is evicted goes to the next level: marked dirty there, which does not count as a
 *    use of it, or put there if it is absent (config.write_around: passed on). Write-backs are not
 *    accesses.
 *  - Private caches are kept coherent: a store takes the line out of all other cores' private
 *    caches (their next miss on it is a coherence miss), a load finds them clean. Dirty copies are written
 *    back to the first shared level. A core's first store to a line that it alone holds is free.
 */
#ifndef CACHEGRAM_SIM_CACHE_H
#define CACHEGRAM_SIM_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

#define SIM_LEVELS 4u
#define SIM_CORES 64u
#define SIM_LINES (UINT64_C(1) << 30) /* in one cache, at most */

enum sim_policy { SIM_LRU, SIM_RANDOM, SIM_FIFO, SIM_PLRU, SIM_NEHALEM, SIM_RRIP, SIM_POLICIES };
enum sim_inclusion { SIM_NON_INCLUSIVE, SIM_INCLUSIVE, SIM_EXCLUSIVE };

struct sim_level {
    uint64_t size_bytes; /* of each cache of this level: ways * sets * line_bytes */
    uint32_t ways;       /* 0: fully associative; PLRU needs a power of two */
    enum sim_policy policy;
    enum sim_inclusion inclusion; /* towards the inner levels; the first level is SIM_NON_INCLUSIVE */
    int shared;                   /* one cache for all cores; levels beyond a shared one are shared */
};

struct sim_config {
    struct sim_level level[SIM_LEVELS];
    uint32_t levels;     /* 1 .. SIM_LEVELS */
    uint32_t cores;      /* 1 .. SIM_CORES; caches of a core are made when it first accesses memory */
    uint32_t line_bytes; /* a power of two, 16 .. 4096 */
    uint64_t seed;       /* of the random policy: cache `level` (0 first) of `core` (shared: 0) draws from
                            random_seed(seed + level * SIM_CORES + core) */
    int incoherent;      /* cores run different programs: stores do not concern the other cores */
    int straddle_once;   /* accesses may carry SIM_STRADDLE; no exclusive level, no coherent cores then */
    int write_around;    /* write-backs to a level that lacks the line go past it */
    int causes;          /* classify misses by cause; slower, and needs memory for all lines touched */
};

/* Why an access missed. */
enum sim_cause {
    SIM_COLD,      /* first access to the line in this cache */
    SIM_COHERENCE, /* another core's store took the line out */
    SIM_INCLUSION, /* an inclusive outer level evicted it */
    SIM_CAPACITY,  /* a fully associative LRU cache of this size misses it as well */
    SIM_CONFLICT,  /* it does not: the set, or the policy, is to blame */
    SIM_CAUSES
};

/* Of one core's accesses at one level. */
struct sim_stats {
    uint64_t accesses, misses;
    uint64_t stores, store_misses; /* of these, by stores */
    uint64_t evictions;            /* lines that made room for this core's fills */
    uint64_t writebacks;           /* dirty lines that left this level: evicted, or taken out */
    uint64_t cause[SIM_CAUSES];    /* add up to misses; all 0 unless config.causes */
};

/*
 * Accesses are packed into words: line << SIM_LINE_SHIFT, and flags. A reference that straddles
 * two lines is two accesses or, with SIM_STRADDLE (config.straddle_once), one access to `line` and
 * `line + 1`: at each level one access, and one miss if either line misses; then both lines are asked of
 * the next level (as Valgrind's cachegrind does).
 */
#define SIM_STORE 1u
#define SIM_STRADDLE 2u
#define SIM_LINE_SHIFT 2u

struct sim;

/* 0; -EINVAL for an invalid configuration, -ENOMEM. *sim is untouched on failure. */
int sim_new(const struct sim_config *config, struct sim **sim, struct error *err);
void sim_free(struct sim *sim); /* NULL is allowed */
/* One core's next n accesses. core < config.cores. 0, or -ENOMEM: then the simulation is over. */
int sim_run(struct sim *sim, uint32_t core, const uint64_t *accesses, size_t n, struct error *err);
/*
 * One access. The level that had it, 0 the innermost, config.levels for memory (a straddling access: the
 * outermost one asked); or -ENOMEM.
 */
int sim_access(struct sim *sim, uint32_t core, uint64_t access, struct error *err);
/* level < config.levels, core < config.cores. */
struct sim_stats sim_stats(const struct sim *sim, uint32_t level, uint32_t core);
/* Resets counts; cache contents stay. For warming up. */
void sim_reset_stats(struct sim *sim);
/* Is the line in this level's cache (the core's, if private)? For tests and for the curious. */
int sim_holds(const struct sim *sim, uint32_t level, uint32_t core, uint64_t line);
uint32_t sim_cores_seen(const struct sim *sim); /* 1 + the highest core that accessed anything; 0: none */

/* "lru", "random", ... */
const char *sim_policy_name(enum sim_policy policy);
/* "cold", "coherence", "inclusion", "capacity", "conflict". */
const char *sim_cause_name(enum sim_cause cause);

/*
 * Packs references [address, address + size) for sim_run, in order, until they are all done or fewer
 * than SIM_PACK_MAX words of `room` (at least that) are left. A reference is an access for each line that it
 * touches or, with `once`, a single one, cut to line_bytes, with SIM_STRADDLE where it spans two. References
 * longer than SIM_PACK_BYTES are cut to that. store[i] is nonzero for stores. Returns the number of words;
 * *taken is the number of references in them.
 */
#define SIM_PACK_BYTES 4096u
#define SIM_PACK_MAX (SIM_PACK_BYTES / 16u + 1u)
size_t sim_pack(const uint64_t *address, const uint16_t *size, const uint8_t *store, size_t n,
                uint32_t line_bytes, int once, uint64_t *accesses, size_t room, size_t *taken);

#endif
