/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that share a cache: closed forms, the paper's way done literally, and the simulator. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "model/statcc.h"
#include "bench/corun_sim.h"

#define LINE 64u

/* A program's touches of lines, and what there is to know of them. */
struct program {
    uint64_t *line;
    size_t n, next;
    struct hist stack, reuse;
    uint64_t cold;
    struct statcc_curve curve;
};

static void near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance))
        fail_msg("%.12g is not within %g of %.12g", a, tolerance, b);
}

/* Reuse distances are forward ones; a whole program has the same backward, with as many cold as dangling. */
static void add_distances(struct program *p, size_t n)
{
    uint64_t top = 0;
    for (size_t i = 0; i < n; i++)
        top = p->line[i] > top ? p->line[i] : top;
    size_t *last = calloc(top + 1, sizeof *last); /* 1 + index of the last touch */
    unsigned char *is_last = calloc(n, 1);
    for (size_t i = 0; i < n; i++) {
        size_t before = last[p->line[i]];
        if (before) {
            uint64_t distinct = 0;
            for (size_t k = before; k < i; k++)
                distinct += is_last[k];
            hist_add(&p->stack, distinct, 1);
            hist_add(&p->reuse, i - before, 1);
            is_last[before - 1] = 0;
        } else {
            p->cold++;
        }
        is_last[i] = 1;
        last[p->line[i]] = i + 1;
    }
    free(last);
    free(is_last);
}

/* Of every 16 touches `hot` go to few lines, the others anywhere in `lines`; scan: a loop instead. */
static struct program *program_new(size_t n, uint64_t lines, unsigned hot, int scan, uint64_t seed)
{
    struct program *p = calloc(1, sizeof *p);
    struct random_state r;
    struct error err;
    random_seed(&r, seed);
    p->line = malloc(n * sizeof *p->line);
    p->n = n;
    for (size_t i = 0; i < n; i++) {
        if (scan)
            p->line[i] = i % lines;
        else if (random_below(&r, 16) < hot)
            p->line[i] = random_below(&r, 1 + lines / 16);
        else
            p->line[i] = random_below(&r, lines);
    }
    add_distances(p, n);
    assert_int_equal(statcc_curve_exact(&p->stack, &p->reuse, p->cold, &p->curve, &err), 0);
    return p;
}

static void program_free(struct program *p)
{
    free(p->line);
    free(p);
}

static struct statcc_machine machine_of(double private_lines, double shared_lines)
{
    struct statcc_machine machine = statcc_paper;
    machine.private_lines[0] = private_lines;
    machine.shared_lines = shared_lines;
    return machine;
}

/* A curve by a few points, sizes in lines. */
static struct statcc_curve *curve_of(size_t n, const double (*points)[2])
{
    struct curve_point p[16];
    struct error err;
    struct statcc_curve *curve = malloc(sizeof *curve);
    for (size_t i = 0; i < n; i++)
        p[i] = (struct curve_point){points[i][0] * LINE, points[i][1], points[i][1], points[i][1]};
    assert_int_equal(statcc_curve_points(p, n, LINE, curve, &err), 0);
    return curve;
}

static const double stream_points[][2] = {{1, 1}, {1e6, 1}};

/* --- one program --- */

static void test_solo_exact(void **state)
{
    (void)state;
    struct program *p = program_new(6000, 900, 9, 0, 5);
    struct statcc_curve *statstack = malloc(sizeof *statstack), *points = malloc(sizeof *points);
    struct curve_point exact[40], model[40];
    struct error err;
    for (int i = 0; i < 40; i++)
        exact[i] = model[i] = (struct curve_point){.size_bytes = LINE * floor(pow(2, 0.5 * i))};
    assert_int_equal(curve_exact(&p->stack, p->cold, LINE, exact, 40, &err), 0);
    assert_int_equal(curve_statstack(&p->reuse, p->cold, LINE, model, 40, &err), 0);
    assert_int_equal(statcc_curve_statstack(&p->reuse, p->cold, statstack, &err), 0);
    assert_int_equal(statcc_curve_points(exact + 4, 36, LINE, points, &err), 0);
    for (int i = 4; i < 40; i++) {
        struct statcc_machine machine = machine_of(1, exact[i].size_bytes / LINE);
        const struct statcc_curve *const curves[] = {&p->curve, statstack, points};
        const struct curve_point *const solo[] = {exact, model, exact};
        for (int k = 0; k < 3; k++) {
            struct statcc_program program = statcc_paper_program(curves[k], 0.4);
            struct statcc_solution solution;
            struct statcc_result result;
            assert_int_equal(statcc_solve(&machine, &program, 1, &result, &solution, &err), 0);
            assert_true(solution.converged);
            assert_true(result.miss_ratio == solo[k][i].miss_ratio);
            assert_true(result.lines == machine.shared_lines);
            assert_true(result.cpi == statcc_cpi(&machine, &program, result.miss_ratio, 0));
        }
    }
    free(statstack);
    free(points);
    program_free(p);
}

static void test_cpi_by_hand(void **state)
{
    (void)state;
    /* 20% of references miss 512 lines, 5% miss 32768: 1 + 0.5 * (0.8 * 1 + 0.15 * 10 + 0.05 * 130). */
    static const double points[][2] = {{1, 1}, {512, 0.2}, {32768, 0.05}};
    struct statcc_curve *curve = curve_of(3, points);
    struct statcc_program program = statcc_paper_program(curve, 0.5);
    struct statcc_solution solution;
    struct statcc_result result;
    struct error err;
    assert_int_equal(statcc_solve(&statcc_paper, &program, 1, &result, &solution, &err), 0);
    near(result.cpi, 5.4, 1e-12);
    near(result.private_miss[0], 0.2, 1e-12);
    near(result.lines_per_cycle, 0.05 * 0.5 / 5.4, 1e-12);
    program.overlap = 2;
    near(statcc_cpi(&statcc_paper, &program, 0.05, 0), 1 + 4.4 / 2, 1e-12);
    near(statcc_cpi(&statcc_paper, &program, 0.05, 40), 1 + 4.4 / 2 + 0.5 * 0.05 * 40, 1e-12);
    free(curve);
}

/* --- several --- */

static void solve(const struct statcc_machine *machine, const struct statcc_program *programs, uint32_t n,
                  struct statcc_result *results)
{
    struct statcc_solution solution;
    struct error err;
    assert_int_equal(statcc_solve(machine, programs, n, results, &solution, &err), 0);
    assert_true(solution.converged);
    double lines = 0;
    for (uint32_t i = 0; i < n; i++) {
        lines += results[i].lines;
        /* It is a fixed point: what the results say of each other holds. */
        near(results[i].cpi, statcc_cpi(machine, &programs[i], results[i].miss_ratio, solution.wait_cycles),
             1e-9);
        near(results[i].miss_ratio, statcc_curve_miss(programs[i].curve, results[i].lines), 1e-12);
    }
    assert_true(lines <= machine->shared_lines * (1 + 1e-9));
}

static void test_equal_programs(void **state)
{
    (void)state;
    struct program *p = program_new(4000, 600, 8, 0, 2);
    struct statcc_machine machine = machine_of(8, 480);
    struct statcc_program programs[8];
    struct statcc_result results[8];
    for (uint32_t i = 0; i < 8; i++)
        programs[i] = statcc_paper_program(&p->curve, 0.3);
    for (uint32_t n = 1; n <= 8; n++) {
        solve(&machine, programs, n, results);
        for (uint32_t i = 0; i < n; i++) {
            near(results[i].lines, 480.0 / n, 1e-6);
            assert_true(results[i].cpi == results[0].cpi);
        }
    }
    program_free(p);
}

static void test_streams(void **state)
{
    (void)state;
    static const double loop_points[][2] = {{1, 1}, {9, 1}, {10, 0}};
    struct statcc_curve *stream = curve_of(2, stream_points), *loop = curve_of(3, loop_points);
    struct statcc_machine machine = machine_of(1, 100);
    struct statcc_program two[2] = {statcc_paper_program(stream, 0.5), statcc_paper_program(stream, 0.5)};
    struct statcc_result results[2];
    /* Equal latencies everywhere, no base: CPI is proportional to references, so both do as many a cycle. */
    solve(&machine, two, 2, results);
    near(results[0].lines, 50, 1e-6);
    two[1].cpi_base = 1 + statcc_cpi(&machine, &two[0], 1, 0); /* takes twice as long */
    solve(&machine, two, 2, results);
    near(results[0].lines, 200.0 / 3, 1e-6);
    near(results[1].lines, 100.0 / 3, 1e-6);
    assert_true(results[0].miss_ratio == 1 && results[1].miss_ratio == 1);
    /* A loop that fits keeps its lines, the stream takes all others. */
    two[1] = statcc_paper_program(loop, 0.5);
    solve(&machine, two, 2, results);
    near(results[1].lines, 10, 1.01);
    near(results[0].lines + results[1].lines, 100, 1e-6);
    assert_true(results[1].miss_ratio < 0.2);
    /* Nothing is taken from whom it does not lack: two loops in a cache for both. */
    two[0] = two[1];
    solve(&machine, two, 2, results);
    assert_true(results[0].lines <= 10 && results[0].miss_ratio < 1e-9);
    free(stream);
    free(loop);
}

/* Two programs of n threads and one, against n + 1 programs of one; and levels that each thread has for
 * itself. */
static void test_threads(void **state)
{
    (void)state;
    static const double own_points[][2] = {{1, 1}, {15, 1}, {16, 0.25}};
    struct statcc_curve *stream = curve_of(2, stream_points), *own = curve_of(3, own_points);
    struct statcc_machine machine = machine_of(1, 100);
    struct statcc_program two[2] = {statcc_paper_program(stream, 0.5), statcc_paper_program(stream, 0.5)};
    struct statcc_result results[2], one;
    two[0].threads = 3;
    machine.bandwidth_lines = 1;
    solve(&machine, two, 2, results);
    near(results[0].lines, 75, 1e-6);
    near(results[0].cpi, results[1].cpi, 1e-9);
    near(results[0].lines_per_cycle, 3 * results[1].lines_per_cycle, 1e-9);
    struct statcc_program four[4] = {two[1], two[1], two[1], two[1]};
    struct statcc_result apart[4];
    solve(&machine, four, 4, apart);
    near(results[0].cpi, apart[0].cpi, 1e-6);
    near(results[0].lines, 3 * apart[0].lines, 1e-6);
    /* What the private level holds is by the threads' own curve, but not less than the shared one's misses.
     */
    machine = (struct statcc_machine){
        .privates = 1, .private_lines = {16}, .shared_lines = 100, .latency_cycles = {1, 10, 100}};
    two[0].private_curve = own;
    solve(&machine, two, 1, &one);
    near(one.private_miss[0], 1, 1e-9);
    static const double shared_points[][2] = {{1, 1}, {64, 0.125}};
    struct statcc_curve *shared = curve_of(2, shared_points);
    two[0].curve = shared;
    solve(&machine, two, 1, &one);
    near(one.private_miss[0], 0.25, 1e-9);
    near(one.cpi, 1 + 0.5 * (0.75 * 1 + 0.125 * 10 + 0.125 * 100), 1e-9);
    free(stream);
    free(own);
    free(shared);
}

static void test_partitions(void **state)
{
    (void)state;
    struct program *a = program_new(4000, 600, 8, 0, 2), *b = program_new(4000, 300, 3, 0, 3);
    struct statcc_machine machine = machine_of(8, 400);
    struct statcc_program programs[3] = {statcc_paper_program(&a->curve, 0.3),
                                         statcc_paper_program(&b->curve, 0.5),
                                         statcc_paper_program(&b->curve, 0.5)};
    struct statcc_result results[3], pair[2];
    struct statcc_solution solution;
    struct error err;
    programs[0].partition_lines = 128;
    solve(&machine, programs, 3, results);
    assert_true(results[0].miss_ratio == statcc_curve_miss(&a->curve, 128));
    machine.shared_lines = 272;
    solve(&machine, programs + 1, 2, pair);
    near(pair[0].miss_ratio, results[1].miss_ratio, 1e-9);
    near(pair[1].cpi, results[2].cpi, 1e-9);
    programs[1].partition_lines = 144;
    assert_int_equal(statcc_solve(&machine, programs, 3, results, &solution, &err), -EINVAL);
    programs[2].partition_lines = 0.5; /* all have one: nothing need be left over */
    machine.shared_lines = 272.5;
    solve(&machine, programs, 3, results);
    assert_true(results[1].miss_ratio == statcc_curve_miss(&b->curve, 144));
    program_free(a);
    program_free(b);
}

/*
 * The paper's way: scale every distance, add the distributions by their weight, StatStack on the sum. Returns
 * the miss ratios for given references a cycle.
 */
static void literally(struct program *const *p, const double *speed, uint32_t n, double lines, double *miss)
{
    double all = 0, expected = 0;
    for (uint32_t i = 0; i < n; i++)
        all += speed[i];
    for (double j = 1;; j++) {
        /* Distances of program i are d * all / speed[i]; which share of the sum is at least j? */
        double at_least = 0;
        for (uint32_t i = 0; i < n; i++) {
            double total = (double)p[i]->reuse.total + (double)p[i]->cold;
            double own = ceil(j * speed[i] / all);
            miss[i] = (hist_at_least(&p[i]->reuse, own) + (double)p[i]->cold) / total;
            at_least += speed[i] / all * miss[i];
        }
        expected += at_least;
        if (expected >= lines)
            return;
    }
}

static void test_paper_literally(void **state)
{
    (void)state;
    struct program *p[3] = {program_new(8000, 500, 9, 0, 1), program_new(8000, 900, 4, 0, 2),
                            program_new(8000, 200, 0, 1, 3)};
    struct statcc_machine machine = machine_of(8, 256);
    struct statcc_program programs[3];
    struct statcc_result results[3];
    struct error err;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(statcc_curve_statstack(&p[i]->reuse, p[i]->cold, &p[i]->curve, &err), 0);
        programs[i] = statcc_paper_program(&p[i]->curve, 0.2 + 0.1 * i);
    }
    for (uint32_t n = 2; n <= 3; n++) {
        double speed[3], miss[3];
        solve(&machine, programs, n, results);
        for (uint32_t i = 0; i < n; i++)
            speed[i] = programs[i].references_per_instruction / results[i].cpi;
        literally(p, speed, n, machine.shared_lines, miss);
        /* Whole steps there, straight lines here. */
        for (uint32_t i = 0; i < n; i++)
            near(results[i].miss_ratio, miss[i], 0.004);
    }
    for (int i = 0; i < 3; i++)
        program_free(p[i]);
}

/* A curve made from miss ratios alone, by integration, fills a cache as fast as the distances say. */
static void test_curve_from_points(void **state)
{
    (void)state;
    struct program *p = program_new(8000, 500, 6, 0, 4);
    struct statcc_curve *points = malloc(sizeof *points);
    struct curve_point at[500];
    struct error err;
    for (int i = 0; i < 500; i++)
        at[i].size_bytes = LINE * (i + 1.0);
    assert_int_equal(curve_statstack(&p->reuse, p->cold, LINE, at, 500, &err), 0);
    assert_int_equal(statcc_curve_points(at, 500, LINE, points, &err), 0);
    assert_int_equal(statcc_curve_statstack(&p->reuse, p->cold, &p->curve, &err), 0);
    for (uint32_t lines = 10; lines <= 400; lines += 30)
        near(points->refs[lines], p->curve.refs[lines], 1); /* whole references there */
    /* Where the points end without an answer, so does the curve. */
    at[100].miss_ratio = NAN;
    assert_int_equal(statcc_curve_points(at, 500, LINE, points, &err), 0);
    near(points->known_lines, 100, 0);
    struct statcc_machine machine = machine_of(8, 150);
    struct statcc_program two[2] = {statcc_paper_program(points, 0.3), statcc_paper_program(points, 0.3)};
    struct statcc_result results[2];
    solve(&machine, two, 2, results);
    assert_int_equal(results[0].unknown, 0);
    machine.shared_lines = 202;
    solve(&machine, two, 2, results);
    assert_int_equal(results[0].unknown, 1);
    free(points);
    program_free(p);
}

/* --- bandwidth, fits --- */

static void test_bandwidth(void **state)
{
    (void)state;
    struct statcc_curve *stream = curve_of(2, stream_points);
    struct statcc_program programs[4];
    struct statcc_result results[4];
    struct statcc_machine machine = machine_of(1, 100);
    struct statcc_solution solution;
    struct error err;
    double before = 0;
    machine.bandwidth_lines = 1.0 / 100;
    for (uint32_t i = 0; i < 4; i++)
        programs[i] = statcc_paper_program(stream, 0.5);
    for (uint32_t n = 1; n <= 4; n++) {
        assert_int_equal(statcc_solve(&machine, programs, n, results, &solution, &err), 0);
        assert_true(solution.converged);
        /* What moves is below what can, and nearer to it with each program; the wait is that of the queue. */
        double u = solution.utilisation;
        assert_true(u > before && u < 1);
        near(u, n * results[0].lines_per_cycle * 100, 1e-9);
        near(solution.wait_cycles, 100 * u / (2 * (1 - u)), 1e-6 * solution.wait_cycles);
        before = u;
    }
    assert_true(before > 0.8);
    free(stream);
}

static void test_fit(void **state)
{
    (void)state;
    static const double points[][2] = {{1, 1}, {512, 0.2}, {16384, 0.1}, {32768, 0.05}};
    struct statcc_curve *curve = curve_of(4, points);
    struct statcc_program made = statcc_paper_program(curve, 0.5), got = made;
    const double sizes[2] = {16384, 32768};
    double cpi[2];
    struct error err;
    made.cpi_base = 0.7;
    assert_int_equal(statcc_fit(&statcc_paper, statcc_cpi(&statcc_paper, &made, 0.05, 0), 0.25, &got, &err),
                     0);
    near(got.cpi_base, 0.7, 1e-12);
    near(got.overlap, 1, 0);
    made.cpi_base = 0.25;
    made.overlap = 3;
    assert_int_equal(statcc_fit(&statcc_paper, statcc_cpi(&statcc_paper, &made, 0.05, 0), 0.25, &got, &err),
                     0);
    near(got.cpi_base, 0.25, 1e-12);
    near(got.overlap, 3, 1e-9);
    assert_int_equal(statcc_fit(&statcc_paper, 0.2, 0.25, &got, &err), -ERANGE);
    near(got.overlap, 3, 1e-9); /* as it was */
    /* Pipelined: 0.5 references, of which 15% wait 9 cycles and 5% 129 more than a first-level hit. */
    got.pipelined = 1;
    assert_int_equal(statcc_fit(&statcc_paper, 5, 0.25, &got, &err), 0);
    near(got.cpi_base, 5 - 0.5 * (0.15 * 9 + 0.05 * 129), 1e-12);
    near(got.overlap, 1, 0);
    assert_int_equal(statcc_fit(&statcc_paper, 1.55, 0.25, &got, &err), 0);
    near(got.cpi_base, 0.25, 0);
    near(got.overlap, 0.5 * (0.15 * 9 + 0.05 * 129) / 1.3, 1e-12);
    near(statcc_cpi(&statcc_paper, &got, 0.05, 0), 1.55, 1e-12);
    got.pipelined = 0;
    got.overlap = 3;
    made.cpi_base = 0.9;
    for (int i = 0; i < 2; i++)
        cpi[i] = statcc_cpi(&statcc_paper, &made, statcc_curve_miss(curve, sizes[i]), 0);
    assert_int_equal(statcc_fit_two(&statcc_paper, sizes, cpi, &got, &err), 0);
    near(got.cpi_base, 0.9, 1e-9);
    near(got.overlap, 3, 1e-9);
    cpi[1] = cpi[0] + 1; /* faster with less cache */
    assert_int_equal(statcc_fit_two(&statcc_paper, sizes, cpi, &got, &err), -ERANGE);
    free(curve);
}

static void test_bad_values(void **state)
{
    (void)state;
    struct statcc_curve *stream = curve_of(2, stream_points);
    struct statcc_machine machine = statcc_paper;
    struct statcc_program program = statcc_paper_program(stream, 0.5);
    struct statcc_solution solution;
    struct statcc_result result;
    struct error err;
    assert_int_equal(statcc_solve(&machine, &program, 0, &result, &solution, &err), -EINVAL);
    program.overlap = 0.5;
    assert_int_equal(statcc_solve(&machine, &program, 1, &result, &solution, &err), -EINVAL);
    program = statcc_paper_program(stream, NAN);
    assert_int_equal(statcc_solve(&machine, &program, 1, &result, &solution, &err), -EINVAL);
    program = statcc_paper_program(stream, 0.5);
    machine.shared_lines = 0;
    assert_int_equal(statcc_solve(&machine, &program, 1, &result, &solution, &err), -EINVAL);
    struct curve_point falling[2] = {{640, 0.5, 0, 1}, {64, 0.6, 0, 1}}, high = {64, 1.5, 0, 1};
    assert_int_equal(statcc_curve_points(falling, 2, LINE, stream, &err), -EINVAL);
    assert_int_equal(statcc_curve_points(&high, 1, LINE, stream, &err), -EINVAL);
    free(stream);
}

/* --- against the simulator --- */

static int64_t read_lines(void *context, uint64_t *accesses, size_t capacity, struct error *err)
{
    struct program *p = context;
    size_t n = p->n - p->next < capacity ? p->n - p->next : capacity;
    (void)err;
    for (size_t i = 0; i < n; i++)
        accesses[i] = p->line[p->next + i] << SIM_LINE_SHIFT;
    p->next += n;
    return (int64_t)n;
}

static int restart(void *context, struct error *err)
{
    (void)err;
    ((struct program *)context)->next = 0;
    return 0;
}

static void test_against_simulation(void **state)
{
    (void)state;
    struct program *p[3] = {program_new(40000, 3000, 9, 0, 1), program_new(40000, 1200, 12, 0, 2),
                            program_new(40000, 5000, 0, 1, 3)};
    struct corun_config config = corun_statcc;
    config.level[0].size_bytes = 32 * LINE;
    config.level[1].size_bytes = 1024 * LINE;
    config.references = 100000;
    config.until_all = 1;
    config.warm_up = 10000;
    struct statcc_machine machine = machine_of(32, 1024);
    struct statcc_program programs[3];
    struct statcc_result results[3];
    struct corun_stream streams[3];
    struct corun_result got[3];
    struct error err;
    for (int i = 0; i < 3; i++) {
        programs[i] = statcc_paper_program(&p[i]->curve, 0.4);
        streams[i] = (struct corun_stream){read_lines, restart, p[i], 0.4};
    }
    assert_int_equal(corun_run(&config, streams, 3, NULL, got, &err), 0);
    solve(&machine, programs, 3, results);
    for (int i = 0; i < 3; i++)
        near(results[i].cpi / got[i].cpi, 1, 0.03);
    /* And sharing did matter: the third is as bad off as alone, the second is not. */
    assert_true(got[1].miss_ratio > 1.5 * statcc_curve_miss(&p[1]->curve, 1024));
    for (int i = 0; i < 3; i++)
        program_free(p[i]);
}

/* Curves that fall off a cliff: the steps from CPI to CPI are steep there, and must settle all the same. */
static void test_cliffs(void **state)
{
    (void)state;
    struct program *p[5];
    struct statcc_program programs[5];
    struct statcc_result results[5];
    for (uint32_t i = 0; i < 5; i++) {
        p[i] = program_new(6000, 150 + 130 * i, 0, i != 2, i + 1);
        programs[i] = statcc_paper_program(&p[i]->curve, 0.25 + 0.05 * i);
    }
    for (double lines = 100; lines <= 2000; lines += 25) {
        struct statcc_machine machine = machine_of(8, lines);
        for (uint32_t n = 2; n <= 5; n++)
            solve(&machine, programs + (n < 5), n, results);
    }
    for (uint32_t i = 0; i < 5; i++)
        program_free(p[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_solo_exact),      cmocka_unit_test(test_cpi_by_hand),
        cmocka_unit_test(test_equal_programs),  cmocka_unit_test(test_streams),
        cmocka_unit_test(test_threads),         cmocka_unit_test(test_partitions),
        cmocka_unit_test(test_paper_literally), cmocka_unit_test(test_curve_from_points),
        cmocka_unit_test(test_bandwidth),       cmocka_unit_test(test_fit),
        cmocka_unit_test(test_bad_values),      cmocka_unit_test(test_against_simulation),
        cmocka_unit_test(test_cliffs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
