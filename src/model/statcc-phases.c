/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From change to change: solve for the current phases, find the program whose phase ends first at these
 * speeds, advance all programs to that moment.
 *
 * Example: a program of two phases of 100 references each, beside one of one phase of 300, all at one
 * reference a cycle. Changes are at 100 and at 200 cycles: the first program ends there, and the second has
 * made 200.
 */
#include "model/statcc-phases.h"

#include <errno.h>
#include <math.h>

struct place_in_run {
    uint32_t phase;
    double left; /* references of the phase */
    int done;    /* it has gone through all of them at least once */
};

static int check(const struct statcc_run *runs, uint32_t n, struct error *err)
{
    if (n < 1 || n > STATCC_PROGRAMS)
        return error_set(err, -EINVAL, "1 to %u programs can run together", STATCC_PROGRAMS);
    for (uint32_t i = 0; i < n; i++) {
        if (runs[i].n < 1)
            return error_set(err, -EINVAL, "program %u has no phases", i + 1);
        for (uint32_t k = 0; k < runs[i].n; k++)
            if (!(runs[i].phases[k].references > 0) || !isfinite(runs[i].phases[k].references))
                return error_set(err, -EINVAL, "program %u: phase %u has no references", i + 1, k + 1);
    }
    return 0;
}

/* Advances all programs by so many cycles at their speeds. */
static void advance(const struct statcc_run *runs, uint32_t n, struct place_in_run *at,
                    const struct statcc_result *speed, double cycles, struct statcc_run_result *results)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct statcc_phase *phase = &runs[i].phases[at[i].phase];
        double instructions = cycles / speed[i].cpi;
        double references = instructions * phase->program.references_per_instruction;
        results[i].cycles += cycles;
        results[i].instructions += instructions;
        results[i].references += references;
        results[i].misses += references * speed[i].miss_ratio;
        at[i].left -= references;
        /* Tolerates rounding where several phases end at the same time. */
        if (at[i].left > 1e-9 * phase->references)
            continue;
        at[i].phase = (at[i].phase + 1) % runs[i].n;
        at[i].done |= at[i].phase == 0;
        at[i].left = runs[i].phases[at[i].phase].references;
    }
}

static int is_over(const struct place_in_run *at, uint32_t n, int until_all)
{
    uint32_t done = 0;
    for (uint32_t i = 0; i < n; i++)
        done += at[i].done != 0;
    return until_all ? done == n : done > 0;
}

int statcc_solve_phases(const struct statcc_machine *machine, const struct statcc_run *runs, uint32_t n,
                        int until_all, struct statcc_run_result *results, uint32_t *solved, struct error *err)
{
    struct place_in_run at[STATCC_PROGRAMS];
    struct statcc_run_result sums[STATCC_PROGRAMS] = {{0}};
    uint32_t asked = 0;
    int code = check(runs, n, err);
    if (code != 0)
        return code;
    for (uint32_t i = 0; i < n; i++)
        at[i] = (struct place_in_run){.left = runs[i].phases[0].references};
    while (!is_over(at, n, until_all)) {
        struct statcc_program programs[STATCC_PROGRAMS];
        struct statcc_result speed[STATCC_PROGRAMS];
        struct statcc_solution solution;
        double cycles = INFINITY;
        for (uint32_t i = 0; i < n; i++)
            programs[i] = runs[i].phases[at[i].phase].program;
        code = statcc_solve(machine, programs, n, speed, &solution, err);
        if (code != 0)
            return code;
        if (!solution.converged)
            return error_set(err, -EDOM, "no stable answer for phases that run together");
        asked++;
        for (uint32_t i = 0; i < n; i++)
            cycles = fmin(cycles, at[i].left * speed[i].cpi / programs[i].references_per_instruction);
        advance(runs, n, at, speed, cycles, sums);
    }
    for (uint32_t i = 0; i < n; i++)
        results[i] = sums[i];
    if (solved)
        *solved = asked;
    return 0;
}
