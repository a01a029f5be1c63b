/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - which programs to put together on which shared cache. Pure; what a group costs is the caller's.
 */
#ifndef CACHEGRAM_PLACE_H
#define CACHEGRAM_PLACE_H

#include <stdint.h>
#include "base/error.h"

#define PLACE_PROGRAMS 64u
#define PLACE_CACHES 16u
#define PLACE_EXACT 12u /* programs up to which all placements are looked at */

enum place_goal { PLACE_TOTAL, PLACE_WORST }; /* least sum, or least maximum, of slowdowns */

struct place_cache {
    uint64_t size_bytes; /* caches of equal size and cores are taken for equal */
    uint32_t cores;      /* programs that it has room for */
};

struct place_problem {
    uint32_t programs; /* 1 .. PLACE_PROGRAMS */
    const struct place_cache *caches;
    uint32_t ncaches; /* 1 .. PLACE_CACHES */
    enum place_goal goal;
    /*
     * Slowdowns, 1 or more, of n >= 1 programs (numbers, ascending) together on a cache; each is asked for
     * once. 0, or negative with err filled, which ends the search.
     */
    int (*slowdowns)(void *context, const uint32_t *programs, uint32_t n, const struct place_cache *cache,
                     double *slowdown, struct error *err);
    void *context;
};

struct place_result {
    uint32_t cache[PLACE_PROGRAMS];  /* of each program */
    double slowdown[PLACE_PROGRAMS]; /* there */
    double total, worst;
    int exact;    /* none is better; else found by search, and `bound` says how much better one may be */
    double bound; /* no placement's goal is below this */
    double random_mean;    /* of the goal, over random placements */
    double spread;         /* of the goal, with the programs dealt out in turn, as a scheduler does */
    uint32_t random_count; /* placements behind random_mean */
};

/*
 * Exact up to PLACE_EXACT programs: dynamic programming over subsets. Beyond: from several starts, moves and
 * swaps of programs until none helps; `bound` is then what each program suffers at least, alone on its best
 * cache or, where programs must share, with the one beside which it is best off. 0; -EINVAL (no room for all,
 * bounds), -ENOMEM, or what slowdowns returned.
 */
int place_solve(const struct place_problem *problem, uint64_t seed, struct place_result *result,
                struct error *err);

#endif
