/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache-assignment.h - assigns programs to shared caches with the least co-run slowdown (docs/methods.md,
 * section 10). Pure; the caller supplies the slowdowns of a group.
 */
#ifndef CACHEGRAM_CACHE_ASSIGNMENT_H
#define CACHEGRAM_CACHE_ASSIGNMENT_H

#include <stdint.h>
#include "base/error.h"

#define ASSIGNMENT_PROGRAMS 64u
#define ASSIGNMENT_CACHES 16u
#define ASSIGNMENT_EXACT 12u /* up to so many programs the result is optimal */

enum assignment_goal {
    ASSIGNMENT_TOTAL,
    ASSIGNMENT_WORST
}; /* minimise the sum, or the maximum, of slowdowns */

struct assignment_cache {
    uint64_t size_bytes; /* caches with equal size and cores are interchangeable */
    uint32_t cores;      /* programs that fit on it */
};

struct assignment_problem {
    uint32_t programs; /* 1 .. ASSIGNMENT_PROGRAMS */
    const struct assignment_cache *caches;
    uint32_t ncaches; /* 1 .. ASSIGNMENT_CACHES */
    enum assignment_goal goal;
    /*
     * Slowdowns (1 or more) of n >= 1 programs (numbers, ascending) together on a cache. Called once for each
     * group. 0, or negative with err filled, which ends the search.
     */
    int (*slowdowns)(void *context, const uint32_t *programs, uint32_t n,
                     const struct assignment_cache *cache, double *slowdown, struct error *err);
    void *context;
};

struct assignment_result {
    uint32_t cache[ASSIGNMENT_PROGRAMS];  /* of each program */
    double slowdown[ASSIGNMENT_PROGRAMS]; /* of each program */
    double total, worst;
    int exact;          /* 1: optimal; 0: found by search, and `bound` limits what an optimum could gain */
    double bound;       /* the goal of every assignment is at least this */
    double random_mean; /* mean of the goal over 100 random assignments */
    double spread;      /* the goal with programs dealt out in turn, as a scheduler does */
};

/*
 * Up to ASSIGNMENT_EXACT programs, dynamic programming over subsets. Beyond, moves and swaps of programs from
 * several starts until none helps; `bound` is then the sum (or maximum) of each program's least slowdown,
 * alone on its best cache or, where programs must share, next to its best companion. 0; -EINVAL (not enough
 * cores, a value out of its bounds), -ENOMEM, or what slowdowns returned.
 */
int assignment_solve(const struct assignment_problem *problem, uint64_t seed,
                     struct assignment_result *result, struct error *err);

#endif
