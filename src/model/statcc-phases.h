/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statcc-phases.h - programs that share a cache and go through phases: StatCC phase by phase.
 *
 * Time advances from one change of phase, of any program, to the next; between changes, the phases share as
 * in statcc_solve. Lines left in the cache by the previous phase are not modelled: phases should be long
 * compared with the time in which the cache fills.
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
    const struct statcc_phase *phases; /* in order; the first follows the last */
    uint32_t n;                        /* 1 or more */
};

struct statcc_run_result {
    double references, misses; /* until the end; misses of the shared cache */
    double cycles;             /* the same for all programs */
    double instructions;       /* cpi = cycles / instructions */
};

/*
 * All programs start with their first phase. It ends when the first program has completed all of its phases
 * or, with until_all, when every program has; those that complete earlier start over. results[i] counts what
 * the i-th program did. *solved, if not NULL, is the number of calls of statcc_solve. 0; -EINVAL; -EDOM if a
 * solution did not converge.
 */
int statcc_solve_phases(const struct statcc_machine *machine, const struct statcc_run *runs, uint32_t n,
                        int until_all, struct statcc_run_result *results, uint32_t *solved,
                        struct error *err);

#endif
