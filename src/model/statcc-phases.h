/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statcc-phases.h - programs that share a cache and go through phases: StatCC phase by phase.
 *
 * Whoever is in which phase at the same time shares as those phases do; so time goes from one change of a
 * phase, of any program, to the next. What lines are left over from the phase before is not modelled: phases
 * should be long against the time in which the cache fills.
 */
#ifndef CACHEGRAM_STATCC_PHASES_H
#define CACHEGRAM_STATCC_PHASES_H

#include <stdint.h>
#include "base/error.h"
#include "model/statcc.h"

struct statcc_phase {
    struct statcc_program program; /* as statcc_solve takes it */
    double references;             /* how long it lasts, above 0 */
};

struct statcc_run {
    const struct statcc_phase *phases; /* one after the other; behind the last comes the first again */
    uint32_t n;                        /* 1 or more */
};

struct statcc_run_result {
    double references, misses; /* made until the end; misses of the shared cache */
    double cycles;             /* the same for all programs */
    double instructions;       /* cpi = cycles / instructions */
};

/*
 * All programs start with their first phase; the end is when the first of them has gone through all of its
 * phases or, with until_all, every one has, those done before starting over. results[i] counts all that the
 * i-th did. *solved, if not NULL, is the number of times that statcc_solve was asked. 0; -EINVAL; -EDOM where
 * a solution did not converge.
 */
int statcc_solve_phases(const struct statcc_machine *machine, const struct statcc_run *runs, uint32_t n,
                        int until_all, struct statcc_run_result *results, uint32_t *solved,
                        struct error *err);

#endif
