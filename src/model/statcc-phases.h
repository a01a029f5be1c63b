/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statcc-phases.h - StatCC for programs with phases (docs/methods.md, section 8): solves each combination of
 * their phases, and takes the mean over all of them, weighted by how long they coincide. Pure, as statcc.h.
 */
#ifndef CACHEGRAM_STATCC_PHASES_H
#define CACHEGRAM_STATCC_PHASES_H

#include "model/statcc.h"

#define STATCC_PHASES 8u /* of a program */

struct statcc_phased {
    uint32_t n;                                   /* 1 .. STATCC_PHASES */
    struct statcc_program program[STATCC_PHASES]; /* in each phase */
    double share[STATCC_PHASES];                  /* of the program's instructions; the sum is 1 */
};

/*
 * Results as from statcc_solve: miss_ratio by references, cpi by instructions, lines and lines_per_cycle by
 * time; private_miss is set to NaN. unknown: the programs spend more than 1% of the time in combinations
 * whose shares are beyond known_lines. solution->iterations is of the outer fixed point; converged: all
 * combinations did, and it did. 0; -EINVAL as statcc_solve, or for shares that do not add up to 1; -ENOMEM.
 */
int statcc_solve_phases(const struct statcc_machine *machine, const struct statcc_phased *programs,
                        uint32_t n, struct statcc_result *results, struct statcc_solution *solution,
                        struct error *err);

#endif
