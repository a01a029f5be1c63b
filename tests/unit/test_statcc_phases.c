/* SPDX-License-Identifier: Apache-2.0 */
/* StatCC by combinations of phases: against simulation, and where the outcome is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench/corun_sim.h"
#include "model/statcc-phases.h"

#define MIX 0.5

/* Phases of uniformly random references to so many lines: an LRU cache of c lines misses in 1 - c/lines. */
struct program {
    struct random_state random;
    uint64_t lines[2];
    double mean[2]; /* references that a phase lasts for */
    uint32_t phase;
    uint64_t left;
};

static int64_t read_program(void *context, uint64_t *accesses, size_t capacity, struct error *err)
{
    struct program *p = context;
    (void)err;
    for (size_t i = 0; i < capacity; i++) {
        if (p->left == 0) {
            p->phase ^= 1;
            p->left = (uint64_t)(p->mean[p->phase] * -log(1 - random_unit(&p->random))) + 1;
        }
        p->left--;
        accesses[i] = (random_below(&p->random, p->lines[p->phase]) + 100000 * p->phase) << SIM_LINE_SHIFT;
    }
    return (int64_t)capacity;
}

static int restart_program(void *context, struct error *err)
{
    (void)context, (void)err;
    return 0;
}

static const struct corun_config config = {
    .level = {{8 * 64, 8, SIM_LRU, SIM_NON_INCLUSIVE, 0}, {256 * 64, 256, SIM_LRU, SIM_NON_INCLUSIVE, 1}},
    .levels = 2,
    .line_bytes = 64,
    .cpi_base = 1,
    .latency_cycles = {1, 10, 130},
    .warm_up = 100000,
    .references = 16000000,
};
static const struct statcc_machine machine = {
    .privates = 1, .private_lines = {8}, .shared_lines = 256, .latency_cycles = {1, 10, 130}};

/* share: of the first phase; 1 and 0 give the phases by themselves. */
static void make_curve(const uint64_t lines[2], double share, struct statcc_curve *curve)
{
    enum { POINTS = 2000 };
    static struct curve_point points[POINTS];
    struct error err;
    for (int i = 0; i < POINTS; i++) {
        points[i].size_bytes = 64 * (i + 1);
        points[i].miss_ratio = share * fmax(0, 1 - (i + 1) / (double)lines[0]) +
                               (1 - share) * fmax(0, 1 - (i + 1) / (double)lines[1]);
    }
    assert_int_equal(statcc_curve_points(points, POINTS, 64, curve, &err), 0);
}

struct case_of {
    struct program program[2];
    double miss[2], cpi[2];                 /* simulated */
    struct statcc_result whole[2], each[2]; /* without and with phases */
};

static void run_case(struct case_of *c)
{
    static struct statcc_curve curve[2][3];
    struct statcc_phased phased[2];
    struct statcc_program whole[2];
    struct statcc_solution solution;
    struct corun_stream streams[2];
    struct corun_result got[2];
    struct error err;
    for (int i = 0; i < 2; i++) {
        const struct program *p = &c->program[i];
        double share = p->mean[0] / (p->mean[0] + p->mean[1]);
        make_curve(p->lines, share, &curve[i][0]);
        make_curve(p->lines, 1, &curve[i][1]);
        make_curve(p->lines, 0, &curve[i][2]);
        whole[i] = statcc_paper_program(&curve[i][0], MIX);
        phased[i] = (struct statcc_phased){.n = 2, .share = {share, 1 - share}};
        phased[i].program[0] = statcc_paper_program(&curve[i][1], MIX);
        phased[i].program[1] = statcc_paper_program(&curve[i][2], MIX);
        random_seed(&c->program[i].random, (uint64_t)i + 5);
        streams[i] = (struct corun_stream){read_program, restart_program, &c->program[i], MIX};
    }
    assert_int_equal(corun_run(&config, streams, 2, NULL, got, &err), 0);
    assert_int_equal(statcc_solve(&machine, whole, 2, c->whole, &solution, &err), 0);
    assert_int_equal(statcc_solve_phases(&machine, phased, 2, c->each, &solution, &err), 0);
    assert_true(solution.converged);
    for (int i = 0; i < 2; i++) {
        c->miss[i] = got[i].miss_ratio;
        c->cpi[i] = got[i].cpi;
    }
}

/*
 * Both programs need 225 of the 256 lines in one phase and 15 in the other. Without phases each seems to need
 * some 125 at all times.
 */
static void agrees_with_simulation(void **state)
{
    struct case_of c = {.program = {{.lines = {225, 15}, .mean = {50000, 50000}},
                                    {.lines = {225, 15}, .mean = {37500, 75000}}}};
    (void)state;
    run_case(&c);
    for (int i = 0; i < 2; i++) {
        double error = fabs(c.each[i].miss_ratio - c.miss[i]);
        assert_true(error < 0.01);
        assert_true(fabs(c.each[i].cpi / c.cpi[i] - 1) < 0.1);
        assert_true(fabs(c.whole[i].miss_ratio - c.miss[i]) > 4 * error);
    }
}

/* Phases that do not differ change nothing, be their combinations all solved or chosen at random. */
static void phases_that_are_alike(void **state)
{
    enum { MOST = 8 };
    static struct statcc_curve curve[2];
    struct statcc_program whole[MOST];
    struct statcc_phased phased[MOST];
    struct statcc_result want[MOST], got[MOST];
    struct statcc_solution solution;
    struct error err;
    (void)state;
    make_curve((const uint64_t[]){500, 2000}, 0.7, &curve[0]);
    make_curve((const uint64_t[]){100, 900}, 0.4, &curve[1]);
    for (uint32_t n = 1; n <= MOST; n++)
        for (uint32_t phases = 1; phases <= 4; phases += 3) {
            for (uint32_t i = 0; i < n; i++) {
                whole[i] = statcc_paper_program(&curve[i % 2], MIX);
                phased[i].n = phases;
                for (uint32_t a = 0; a < phases; a++) {
                    phased[i].program[a] = whole[i];
                    phased[i].share[a] = phases == 1 ? 1 : 0.1 * (a + 1);
                }
            }
            assert_int_equal(statcc_solve(&machine, whole, n, want, &solution, &err), 0);
            assert_int_equal(statcc_solve_phases(&machine, phased, n, got, &solution, &err), 0);
            assert_true(solution.converged);
            for (uint32_t i = 0; i < n; i++) {
                assert_true(fabs(got[i].cpi / want[i].cpi - 1) < 1e-6);
                assert_true(fabs(got[i].miss_ratio - want[i].miss_ratio) < 1e-6);
                assert_true(fabs(got[i].lines / want[i].lines - 1) < 1e-6);
            }
        }
}

/* The first program never misses; the second always does in one of its two phases. */
static void shares_of_instructions_are_kept(void **state)
{
    static struct statcc_curve small, stream;
    struct statcc_phased phased[2];
    struct statcc_result got[2];
    struct statcc_solution solution;
    struct error err;
    (void)state;
    make_curve((const uint64_t[]){4, 4}, 1, &small);
    make_curve((const uint64_t[]){100000000, 100000000}, 1, &stream);
    phased[0] = (struct statcc_phased){.n = 1, .share = {1}};
    phased[0].program[0] = statcc_paper_program(&small, MIX);
    phased[1] = (struct statcc_phased){.n = 2, .share = {0.25, 0.75}};
    phased[1].program[0] = statcc_paper_program(&stream, MIX);
    phased[1].program[1] = statcc_paper_program(&small, MIX);
    assert_int_equal(statcc_solve_phases(&machine, phased, 2, got, &solution, &err), 0);
    assert_true(fabs(got[0].cpi - (1 + MIX)) < 1e-3);
    assert_true(fabs(got[1].miss_ratio - 0.25) < 1e-3);
    assert_true(fabs(got[1].cpi - (1 + MIX * (0.25 * 130 + 0.75 * 1))) < 0.1);
}

static void refusals(void **state)
{
    static struct statcc_curve curve;
    struct statcc_phased phased = {.n = 1, .share = {1}};
    struct statcc_result got[1];
    struct statcc_solution solution;
    struct error err;
    (void)state;
    make_curve((const uint64_t[]){500, 2000}, 0.7, &curve);
    phased.program[0] = phased.program[1] = statcc_paper_program(&curve, MIX);
    assert_int_equal(statcc_solve_phases(&machine, &phased, 0, got, &solution, &err), -EINVAL);
    phased.share[0] = 0.5;
    assert_int_equal(statcc_solve_phases(&machine, &phased, 1, got, &solution, &err), -EINVAL);
    phased.n = 2;
    assert_int_equal(statcc_solve_phases(&machine, &phased, 1, got, &solution, &err), -EINVAL);
    phased.share[1] = 0.5;
    assert_int_equal(statcc_solve_phases(&machine, &phased, 1, got, &solution, &err), 0);
    phased.program[1].overlap = 0;
    assert_int_equal(statcc_solve_phases(&machine, &phased, 1, got, &solution, &err), -EINVAL);
    phased.n = STATCC_PHASES + 1;
    assert_int_equal(statcc_solve_phases(&machine, &phased, 1, got, &solution, &err), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_simulation),
        cmocka_unit_test(phases_that_are_alike),
        cmocka_unit_test(shares_of_instructions_are_kept),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
