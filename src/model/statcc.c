/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StatCC: the miss ratios and speeds of programs that share a cache (docs/methods.md, section 8).
 *
 * Problem. A line stays in a shared LRU cache of L lines until L other lines have been touched by any
 * program. How many the other programs touch in that time depends on their speeds, which depend on their
 * misses, which depend on how many lines this program touches.
 *
 * Method of the paper. With v_k = references_per_instruction_k / cpi_k, the references of program k in a
 * cycle, all distances of program i are scaled by (sum of v) / v_i, the distributions added, each weighted
 * by v_k, and StatStack run on the sum. The expected stack distance over T cycles of that sum is
 *
 *     sum over j = 1 .. T*sum(v) of F_sum(j),     F_sum(j) = sum over k of v_k/sum(v) * F_k(j * v_k/sum(v))
 *
 * which, step by step, is ES_1(v_1 T) + ... + ES_n(v_n T): the lines that each touches by itself in that
 * time. So scaling and adding is not necessary: find the T at which these terms add up to L. Then
 * c_k = ES_k(v_k T) is the share of program k, and its miss ratio is that of a cache of c_k lines of its own.
 * The same holds with an exact curve in place of StatStack's (statcc_curve_exact). One program alone gets its
 * own curve: c_1 = L. The unit tests compare this with the paper's procedure, carried out literally.
 *
 * Speeds follow from miss ratios (statcc_cpi), and miss ratios from speeds. The fixed point is found by
 * damped steps of log(cpi): if a program's change reverses its sign, its step is halved; otherwise it grows
 * again. (A change that grows does not shorten the step: near a cliff of a curve it leads away from a fixed
 * point that is not stable.) Initially, each program has the speed that goes with an equal part of the cache.
 *
 * Bandwidth. Memory that moves at most b lines per cycle is a server with service time 1/b; with Poisson
 * arrivals at rate u*b a line waits u / (2 (1 - u) b) cycles (M/D/1, Pollaczek-Khinchine). For given miss
 * ratios the consistent wait is unique, since a longer wait means less traffic: bisection.
 *
 * Example: two streams (miss(c) = 1, ES(r) = r) at the same speed in a cache of 100 lines: T*(v + v) =
 * 100, 50 lines each. If one makes twice the references per cycle, it has 67 lines. A loop over 10 lines
 * next to a stream of equal speed holds its 10 lines once T*v >= 10, and the stream has the other 90.
 */
#include "model/statcc.h"

#include <errno.h>
#include <math.h>

/*
 * The fixed point: relative change at which it has converged, maximum of steps, smallest damping factor.
 * Curves with cliffs make the map from CPI to CPI steep; 1/1024 is stable up to slopes of 2,000.
 */
#define TOLERANCE 1e-9
#define STEPS 1000u
#define STEP_SMALLEST (1.0 / 1024)
#define STEP_GROWS 1.2

const struct statcc_machine statcc_paper = {
    .privates = 1,
    .private_lines = {512},
    .shared_lines = 32768,
    .latency_cycles = {1, 10, 130},
};

struct statcc_program statcc_paper_program(const struct statcc_curve *curve,
                                           double references_per_instruction)
{
    return (struct statcc_program){.curve = curve,
                                   .private_curve = curve,
                                   .threads = 1,
                                   .references_per_instruction = references_per_instruction,
                                   .cpi_base = 1,
                                   .overlap = 1,
                                   .lines_per_miss = 1,
                                   .cpi_factor = 1};
}

/* --- speed from miss ratios --- */

/* Miss ratios of the private levels; none is below that of the shared cache, which they are filled from. */
static void private_misses(const struct statcc_machine *machine, const struct statcc_program *program,
                           double miss, double *result)
{
    double outer = miss;
    for (uint32_t level = machine->privates; level-- > 0;) {
        outer = fmax(outer, statcc_curve_miss(program->private_curve, machine->private_lines[level]));
        result[level] = outer;
    }
}

/* Mean cycles of a reference without overlap and without waiting for bandwidth. */
static double reference_cycles(const struct statcc_machine *machine, const struct statcc_program *program,
                               double miss)
{
    double private_miss[STATCC_PRIVATE], left = 1, cycles = 0;
    private_misses(machine, program, miss, private_miss);
    for (uint32_t level = 0; level < machine->privates; level++) {
        cycles += (left - private_miss[level]) * machine->latency_cycles[level];
        left = private_miss[level];
    }
    cycles += (left - miss) * machine->latency_cycles[machine->privates] +
              miss * machine->latency_cycles[machine->privates + 1];
    return program->pipelined ? fmax(0, cycles - machine->latency_cycles[0]) : cycles;
}

double statcc_cpi(const struct statcc_machine *machine, const struct statcc_program *program, double miss,
                  double wait_cycles)
{
    return program->cpi_base +
           program->references_per_instruction *
               (reference_cycles(machine, program, miss) / program->overlap + miss * wait_cycles);
}

/* Of all threads together. */
static double references_per_cycle(const struct statcc_program *p, double cpi)
{
    return p->threads * p->references_per_instruction / cpi;
}

/* --- the system of equations --- */

struct system {
    const struct statcc_machine *machine;
    const struct statcc_program *programs;
    uint32_t n;
    double competed_lines; /* of the shared cache, without partitions */
    double fill_cycles;    /* T of the last solution, where the next search begins; 0: none yet */
};

static double touched_lines(const struct system *s, const double *cpi, double cycles)
{
    double lines = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct statcc_program *p = &s->programs[i];
        if (p->partition_lines == 0)
            lines += statcc_curve_lines(p->curve, cycles * references_per_cycle(p, cpi[i]));
    }
    return lines;
}

/* T: cycles in which all programs together touch as many lines as the cache has; INFINITY if they never do.
 */
static double find_fill_cycles(struct system *s, const double *cpi)
{
    double goal = s->competed_lines, low = s->fill_cycles > 0 ? s->fill_cycles / 2 : goal, high = low;
    while (low > 1e-3 && touched_lines(s, cpi, low) >= goal) {
        high = low;
        low /= 4;
    }
    if (high == low)
        high *= 4;
    while (touched_lines(s, cpi, high) < goal) {
        low = high;
        high *= 4;
        if (high > 1e30)
            return INFINITY;
    }
    while (high - low > 1e-13 * high) {
        double middle = low + (high - low) / 2;
        if (!(middle > low && middle < high))
            break;
        if (touched_lines(s, cpi, middle) < goal)
            low = middle;
        else
            high = middle;
    }
    s->fill_cycles = high;
    return high;
}

/* Shares and miss ratios at these speeds. */
static void share(struct system *s, const double *cpi, double *lines, double *miss)
{
    uint32_t competing = 0;
    for (uint32_t i = 0; i < s->n; i++)
        competing += s->programs[i].partition_lines == 0;
    double cycles = competing > 1 ? find_fill_cycles(s, cpi) : 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct statcc_program *p = &s->programs[i];
        if (p->partition_lines > 0)
            lines[i] = p->partition_lines;
        else if (competing == 1) /* without T: exactly its own curve */
            lines[i] = s->competed_lines;
        else if (isinf(cycles)) /* everything fits */
            lines[i] = statcc_curve_lines(p->curve, 1e300);
        else
            lines[i] = statcc_curve_lines(p->curve, cycles * references_per_cycle(p, cpi[i]));
        miss[i] = statcc_curve_miss(p->curve, lines[i]);
    }
}

/* Lines per cycle that all programs together move if each memory access waits so long. */
static double traffic(const struct system *s, const double *miss, double wait_cycles)
{
    double lines = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct statcc_program *p = &s->programs[i];
        double cpi = p->cpi_factor * statcc_cpi(s->machine, p, miss[i], wait_cycles);
        lines += p->lines_per_miss * miss[i] * references_per_cycle(p, cpi);
    }
    return lines;
}

static double queue_cycles(double bandwidth_lines, double utilisation)
{
    return utilisation < 1 ? utilisation / (2 * (1 - utilisation) * bandwidth_lines) : INFINITY;
}

static double find_wait(const struct system *s, const double *miss)
{
    double bandwidth = s->machine->bandwidth_lines, low = 0, high = 1;
    if (bandwidth == 0)
        return 0;
    while (queue_cycles(bandwidth, traffic(s, miss, high) / bandwidth) > high) {
        low = high;
        high *= 2;
    }
    for (int i = 0; i < 60; i++) {
        double middle = low + (high - low) / 2;
        if (queue_cycles(bandwidth, traffic(s, miss, middle) / bandwidth) > middle)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* One iteration: the next CPIs from the current ones. Returns the largest relative change. */
static double next_cpis(struct system *s, const double *cpi, double *next, double *lines, double *miss,
                        double *wait)
{
    double largest = 0;
    share(s, cpi, lines, miss);
    *wait = find_wait(s, miss);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct statcc_program *p = &s->programs[i];
        next[i] = p->cpi_factor * statcc_cpi(s->machine, p, miss[i], *wait);
        largest = fmax(largest, fabs(log(next[i] / cpi[i])));
    }
    return largest;
}

static void iterate(struct system *s, double *lines, double *miss, struct statcc_solution *solution)
{
    double cpi[STATCC_PROGRAMS], next[STATCC_PROGRAMS], step[STATCC_PROGRAMS], before[STATCC_PROGRAMS];
    for (uint32_t i = 0; i < s->n; i++) {
        const struct statcc_program *p = &s->programs[i];
        double part = p->partition_lines > 0 ? p->partition_lines : s->competed_lines / s->n;
        cpi[i] = p->cpi_factor * statcc_cpi(s->machine, p, statcc_curve_miss(p->curve, part), 0);
        step[i] = 1;
        before[i] = 0;
    }
    for (solution->iterations = 1;; solution->iterations++) {
        solution->residual = next_cpis(s, cpi, next, lines, miss, &solution->wait_cycles);
        solution->converged = solution->residual <= TOLERANCE;
        if (solution->converged || solution->iterations == STEPS)
            return;
        for (uint32_t i = 0; i < s->n; i++) {
            double change = log(next[i] / cpi[i]);
            step[i] =
                change * before[i] < 0 ? fmax(step[i] / 2, STEP_SMALLEST) : fmin(step[i] * STEP_GROWS, 1);
            before[i] = change;
            cpi[i] *= exp(step[i] * change);
        }
    }
}

/* --- public functions --- */

static int above_zero(double value)
{
    return value > 0 && isfinite(value);
}

static int check_machine(const struct statcc_machine *m, struct error *err)
{
    if (m->privates > STATCC_PRIVATE)
        return error_set(err, -EINVAL, "at most %u private levels", STATCC_PRIVATE);
    for (uint32_t level = 0; level < m->privates; level++)
        if (!above_zero(m->private_lines[level]))
            return error_set(err, -EINVAL, "private level %u has size 0", level + 1);
    if (!above_zero(m->shared_lines))
        return error_set(err, -EINVAL, "the shared cache has size 0");
    for (uint32_t level = 0; level < m->privates + 2; level++)
        if (!(m->latency_cycles[level] >= 0) || !isfinite(m->latency_cycles[level]))
            return error_set(err, -EINVAL, "latencies must be 0 or more");
    if (!(m->bandwidth_lines >= 0) || !isfinite(m->bandwidth_lines))
        return error_set(err, -EINVAL, "the bandwidth must be 0 (no limit) or more");
    return 0;
}

static int check_program(const struct statcc_machine *m, const struct statcc_program *p, uint32_t number,
                         struct error *err)
{
    if (!above_zero(p->references_per_instruction))
        return error_set(err, -EINVAL, "program %u: references per instruction must be above 0", number);
    if (!(p->threads >= 1) || !isfinite(p->threads))
        return error_set(err, -EINVAL, "program %u: one thread or more must work at a time", number);
    if (!(p->cpi_base >= 0) || !isfinite(p->cpi_base))
        return error_set(err, -EINVAL, "program %u: the base CPI must be 0 or more", number);
    if (!(p->overlap >= 1) || !isfinite(p->overlap))
        return error_set(err, -EINVAL, "program %u: the overlap factor must be 1 or more", number);
    if (!(p->lines_per_miss >= 1 && p->lines_per_miss <= 2))
        return error_set(err, -EINVAL, "program %u: lines moved per miss must be 1 to 2", number);
    if (!(p->partition_lines >= 0) || !isfinite(p->partition_lines))
        return error_set(err, -EINVAL, "program %u: its partition must be 0 or more", number);
    if (!above_zero(p->cpi_factor))
        return error_set(err, -EINVAL, "program %u: the CPI's factor must be above 0", number);
    if (!above_zero(statcc_cpi(m, p, statcc_curve_miss(p->curve, m->shared_lines), 0)))
        return error_set(err, -EINVAL, "program %u: its instructions and references take no time", number);
    return 0;
}

int statcc_solve(const struct statcc_machine *machine, const struct statcc_program *programs, uint32_t n,
                 struct statcc_result *results, struct statcc_solution *solution, struct error *err)
{
    struct system s = {.machine = machine, .programs = programs, .n = n};
    double lines[STATCC_PROGRAMS], miss[STATCC_PROGRAMS];
    int code = check_machine(machine, err), competing = 0;
    if (code != 0)
        return code;
    if (n < 1 || n > STATCC_PROGRAMS)
        return error_set(err, -EINVAL, "1 to %u programs can run together", STATCC_PROGRAMS);
    s.competed_lines = machine->shared_lines;
    for (uint32_t i = 0; i < n; i++) {
        if ((code = check_program(machine, &programs[i], i + 1, err)) != 0)
            return code;
        s.competed_lines -= programs[i].partition_lines;
        competing |= programs[i].partition_lines == 0;
    }
    /* Rounded: parts such as 5/12 and 7/12 of the cache may add up to slightly more than all of it. */
    if (s.competed_lines + 1e-9 * machine->shared_lines < (competing ? 1 : 0))
        return error_set(err, -EINVAL, "the partitions together leave nothing of the shared cache");
    iterate(&s, lines, miss, solution);
    double moved = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct statcc_program *p = &programs[i];
        struct statcc_result *r = &results[i];
        r->lines = lines[i];
        r->miss_ratio = miss[i];
        private_misses(machine, p, miss[i], r->private_miss);
        r->cpi = statcc_cpi(machine, p, miss[i], solution->wait_cycles);
        r->lines_per_cycle = p->lines_per_miss * miss[i] * references_per_cycle(p, r->cpi);
        r->unknown = lines[i] > p->curve->known_lines;
        moved += r->lines_per_cycle;
    }
    solution->utilisation = machine->bandwidth_lines > 0 ? moved / machine->bandwidth_lines : 0;
    return 0;
}

/* --- fitting --- */

int statcc_fit(const struct statcc_machine *machine, double measured_cpi, double least_base,
               struct statcc_program *program, struct error *err)
{
    double miss = statcc_curve_miss(program->curve, machine->shared_lines);
    double references = program->references_per_instruction * reference_cycles(machine, program, miss);
    double base = measured_cpi - references;
    if (base >= least_base) {
        program->cpi_base = base;
        program->overlap = 1;
        return 0;
    }
    if (!(measured_cpi > least_base))
        return error_set(err, -ERANGE,
                         "the measured %.3f cycles per instruction are fewer than its references take",
                         measured_cpi);
    program->cpi_base = least_base;
    program->overlap = references / (measured_cpi - least_base);
    return 0;
}

int statcc_fit_two(const struct statcc_machine *machine, const double shared_lines[2],
                   const double measured_cpi[2], struct statcc_program *program, struct error *err)
{
    double references[2];
    for (int i = 0; i < 2; i++) {
        double miss = statcc_curve_miss(program->curve, shared_lines[i]);
        references[i] = program->references_per_instruction * reference_cycles(machine, program, miss);
    }
    double explained = references[0] - references[1], measured = measured_cpi[0] - measured_cpi[1];
    if (fabs(explained) < 1e-12 || !(measured / explained > 0))
        return error_set(err, -ERANGE,
                         "the measured CPI does not rise with the miss ratio: the model cannot be fitted");
    double overlap = fmax(1, explained / measured), base = measured_cpi[0] - references[0] / overlap;
    if (!(base >= 0))
        return error_set(err, -ERANGE,
                         "the measured CPIs leave %.3f cycles for the instructions without their misses: the "
                         "model cannot be fitted",
                         base);
    program->overlap = overlap;
    program->cpi_base = base;
    return 0;
}
