/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StatCC for programs with phases (docs/methods.md, section 8).
 *
 * Two programs that each need most of the cache for half of the time slow each other down much less than two
 * that need it always, and much more than two that need half of it always. A curve of the whole run cannot
 * distinguish these. So each combination of phases is solved by itself.
 *
 * How often do phases coincide? Programs start at unknown times and run for long. If they never slowed each
 * other down, the share of the time of a combination k would be the product of the programs' shares s_i. But
 * where both are slow, both also take long to get on to their next phase: a combination lasts the longer, the
 * slower it is. If all were slowed down alike, its share of the time would be exactly
 *
 *     p_k ~ cpi_k * (product over i of s_i(phase of i in k)).
 *
 * In general it depends on how long each phase lasts. The geometric mean of the programs' CPIs takes the
 * place of cpi_k, which is between the two extremes: a program whose phases are much shorter than the other's
 * (cpi_k is its own), and one whose phases are much longer (1). Then the p_k are scaled until each program
 * executes s_i of its instructions in each of its phases (iterative proportional fitting):
 *
 *     (sum over k with i in phase a of p_k / cpi_ik) = s_i(a) * (sum over all k of p_k / cpi_ik).
 *
 * Left out: lines that a phase leaves in the cache for the next one, and those that it has to fetch again.
 * Phases last much longer than it takes to fill a cache.
 *
 * If there are more combinations than COMBINATIONS, so many are chosen at random, by the programs' shares of
 * their instructions.
 */
#include "model/statcc-phases.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"

#define COMBINATIONS 1024u
#define TOLERANCE 1e-9
#define STEPS 10000u
#define SEED 1u
/* Shares of the time that may be spent where the curve is unknown. */
#define UNKNOWN_SHARE 0.01

struct combination {
    double time; /* its share */
    double wait_cycles;
    uint8_t phase[STATCC_PROGRAMS];
    struct statcc_result result[STATCC_PROGRAMS];
};

struct system {
    const struct statcc_phased *programs;
    uint32_t n;
    struct combination *list;
    size_t count;
};

static int check(const struct statcc_phased *programs, uint32_t n, struct error *err)
{
    if (n < 1 || n > STATCC_PROGRAMS)
        return error_set(err, -EINVAL, "1 to %u programs can run together", STATCC_PROGRAMS);
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0;
        if (programs[i].n < 1 || programs[i].n > STATCC_PHASES)
            return error_set(err, -EINVAL, "program %u must have 1 to %u phases", i + 1, STATCC_PHASES);
        for (uint32_t a = 0; a < programs[i].n; a++) {
            if (!(programs[i].share[a] > 0))
                return error_set(err, -EINVAL, "program %u: each phase must have a share above 0", i + 1);
            sum += programs[i].share[a];
        }
        if (!(fabs(sum - 1) < 1e-6))
            return error_set(err, -EINVAL, "program %u: the shares of its phases must add up to 1", i + 1);
    }
    return 0;
}

/* The phases of combination number k, of all. Returns the product of their shares. */
static double choose_in_order(const struct system *s, size_t k, struct combination *c)
{
    double product = 1;
    for (uint32_t i = 0; i < s->n; i++) {
        c->phase[i] = (uint8_t)(k % s->programs[i].n);
        k /= s->programs[i].n;
        product *= s->programs[i].share[c->phase[i]];
    }
    return product;
}

static void choose_at_random(const struct system *s, struct random_state *random, struct combination *c)
{
    for (uint32_t i = 0; i < s->n; i++) {
        double left = random_unit(random);
        uint32_t a = 0;
        while (a + 1 < s->programs[i].n && left >= s->programs[i].share[a])
            left -= s->programs[i].share[a++];
        c->phase[i] = (uint8_t)a;
    }
}

static int solve_combinations(const struct statcc_machine *machine, struct system *s,
                              struct statcc_solution *worst, struct error *err)
{
    double all = 1;
    struct random_state random;
    for (uint32_t i = 0; i < s->n; i++)
        all *= s->programs[i].n;
    s->count = all <= COMBINATIONS ? (size_t)all : COMBINATIONS;
    s->list = calloc(s->count, sizeof *s->list);
    if (!s->list)
        return error_set(err, -ENOMEM, "out of memory for combinations of phases");
    random_seed(&random, SEED);
    *worst = (struct statcc_solution){.converged = 1};
    for (size_t k = 0; k < s->count; k++) {
        struct combination *c = &s->list[k];
        struct statcc_program chosen[STATCC_PROGRAMS];
        struct statcc_solution solution;
        c->time = 1;
        if (all <= COMBINATIONS)
            c->time = choose_in_order(s, k, c);
        else
            choose_at_random(s, &random, c);
        for (uint32_t i = 0; i < s->n; i++)
            chosen[i] = s->programs[i].program[c->phase[i]];
        int code = statcc_solve(machine, chosen, s->n, c->result, &solution, err);
        if (code != 0)
            return code;
        double log_sum = 0;
        for (uint32_t i = 0; i < s->n; i++)
            log_sum += log(c->result[i].cpi);
        c->time *= exp(log_sum / s->n);
        c->wait_cycles = solution.wait_cycles;
        worst->converged &= solution.converged;
        worst->residual = fmax(worst->residual, solution.residual);
    }
    return 0;
}

/* Scales the times so that program i executes its share of instructions in each phase. Returns the largest
 * relative change. */
static double fit_shares(struct system *s, uint32_t i)
{
    double made[STATCC_PHASES] = {0}, all = 0, present = 0, largest = 0;
    for (size_t k = 0; k < s->count; k++)
        made[s->list[k].phase[i]] += s->list[k].time / s->list[k].result[i].cpi;
    for (uint32_t a = 0; a < s->programs[i].n; a++) {
        all += made[a];
        present += made[a] > 0 ? s->programs[i].share[a] : 0; /* not so if it was not chosen at random */
    }
    for (size_t k = 0; k < s->count; k++) {
        uint32_t a = s->list[k].phase[i];
        double factor = s->programs[i].share[a] / present * all / made[a];
        s->list[k].time *= factor;
        largest = fmax(largest, fabs(factor - 1));
    }
    return largest;
}

static struct statcc_result sum_up(const struct system *s, uint32_t i)
{
    struct statcc_result r = {0};
    double time = 0, instructions = 0, references = 0, misses = 0, unknown = 0;
    for (size_t k = 0; k < s->count; k++) {
        const struct combination *c = &s->list[k];
        const struct statcc_result *part = &c->result[i];
        double made = c->time / part->cpi * s->programs[i].program[c->phase[i]].references_per_instruction;
        time += c->time;
        instructions += c->time / part->cpi;
        references += made;
        misses += made * part->miss_ratio;
        r.lines += c->time * part->lines;
        r.lines_per_cycle += c->time * part->lines_per_cycle;
        unknown += part->unknown ? c->time : 0;
    }
    r.cpi = time / instructions;
    r.miss_ratio = misses / references;
    r.lines /= time;
    r.lines_per_cycle /= time;
    r.unknown = unknown > UNKNOWN_SHARE * time;
    for (uint32_t level = 0; level < STATCC_PRIVATE; level++)
        r.private_miss[level] = NAN;
    return r;
}

static double mean_wait(const struct system *s)
{
    double time = 0, sum = 0;
    for (size_t k = 0; k < s->count; k++) {
        time += s->list[k].time;
        sum += s->list[k].time * s->list[k].wait_cycles;
    }
    return sum / time;
}

int statcc_solve_phases(const struct statcc_machine *machine, const struct statcc_phased *programs,
                        uint32_t n, struct statcc_result *results, struct statcc_solution *solution,
                        struct error *err)
{
    struct system *s = calloc(1, sizeof *s);
    if (!s)
        return error_set(err, -ENOMEM, "out of memory for combinations of phases");
    s->programs = programs;
    s->n = n;
    int code = check(programs, n, err);
    if (code == 0)
        code = solve_combinations(machine, s, solution, err);
    if (code == 0) {
        double change = INFINITY, moved = 0;
        for (solution->iterations = 0; solution->iterations < STEPS && change > TOLERANCE;
             solution->iterations++) {
            change = 0;
            for (uint32_t i = 0; i < n; i++)
                change = fmax(change, fit_shares(s, i));
        }
        solution->converged &= change <= TOLERANCE;
        for (uint32_t i = 0; i < n; i++) {
            results[i] = sum_up(s, i);
            moved += results[i].lines_per_cycle;
        }
        solution->wait_cycles = mean_wait(s);
        solution->utilisation = machine->bandwidth_lines > 0 ? moved / machine->bandwidth_lines : 0;
    }
    free(s->list);
    free(s);
    return code;
}
