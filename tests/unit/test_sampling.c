/* SPDX-License-Identifier: Apache-2.0 */
/* Time and set sampling against the whole, and against what a plain look at the trace says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>

#include "base/random.h"
#include "sim/sampling.h"

enum { N = 400000 };
static uint64_t trace[N];

/* Popular lines and rare ones; a walk; behaviour changes every 10,000 references. */
static void make_trace(uint64_t seed)
{
    struct random_state random;
    random_seed(&random, seed);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t part = i / 10000 % 3, pick = random_below(&random, 10);
        uint64_t line = pick < 6   ? random_below(&random, 100)
                        : pick < 8 ? 1000 + i % (300 + 700 * part)
                                   : 5000 + random_below(&random, 4000);
        trace[i] = line << SIM_LINE_SHIFT | random_below(&random, 2);
    }
}

static struct sim_config one_cache(uint64_t lines, uint32_t ways)
{
    return (struct sim_config){.levels = 1,
                               .cores = 1,
                               .line_bytes = 64,
                               .level[0] = {lines * 64, ways, SIM_LRU, SIM_NON_INCLUSIVE, 0}};
}

static struct timesample_result sample(const struct timesample_config *config, size_t piece)
{
    struct timesample *t;
    struct error err;
    assert_int_equal(timesample_new(config, &t, &err), 0);
    for (size_t i = 0; i < N; i += piece)
        assert_int_equal(timesample_run(t, trace + i, N - i < piece ? N - i : piece, &err), 0);
    struct timesample_result r = timesample_result(t);
    timesample_free(t);
    return r;
}

/* a b a c b in one set of two ways: the example of timesample.c. */
static void worked_by_hand(void **state)
{
    const uint64_t lines[] = {1, 2, 1, 3, 2, 2, 3, 1};
    uint64_t accesses[8];
    struct timesample_config config = {128, 2, 64, 8, 8, 1};
    struct timesample *t;
    struct error err;
    (void)state;
    for (int i = 0; i < 8; i++)
        accesses[i] = lines[i] << SIM_LINE_SHIFT;
    assert_int_equal(timesample_new(&config, &t, &err), 0);
    assert_true(isnan(timesample_result(t).centre));
    assert_int_equal(timesample_run(t, accesses, 8, &err), 0);
    struct timesample_result r = timesample_result(t);
    assert_int_equal(r.samples, 1);
    assert_int_equal(r.unknown, 2); /* 1, 2 */
    assert_int_equal(r.hits, 3);    /* 1; 2; 3 */
    assert_int_equal(r.misses, 3);  /* 3 for 2; 2 for 1; 1 for 2 */
    assert_true(r.low == 3.0 / 8 && r.centre == 4.0 / 8 && r.high == 5.0 / 8);
    /* One whole generation: line 2 from access 5 to access 8, dead after access 6. */
    assert_true(fabs(r.dead_share - 2.0 / 3) < 1e-12);
    assert_true(r.generations == 0.5 && r.touched_share == 1);
    assert_true(isnan(r.standard_error));
    timesample_free(t);
}

/* Known hits and misses are those that the whole simulation has at the same places. */
static void bounds_hold(void **state)
{
    static const uint32_t ways[] = {1, 2, 8, 0};
    (void)state;
    make_trace(1);
    for (int w = 0; w < 4; w++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            struct timesample_config config = {512 * 64, ways[w], 64, 3000, 20000, seed};
            struct timesample_result r = sample(&config, 777);
            struct sim_config whole = one_cache(512, ways[w]);
            struct sim *sim;
            struct error err;
            struct random_state random;
            uint64_t missed = 0, begin = 0;
            assert_int_equal(sim_new(&whole, &sim, &err), 0);
            random_seed(&random, seed);
            for (uint64_t i = 0; i < N; i++) {
                if (i % 20000 == 0)
                    begin = i + random_below(&random, 17001);
                int from = sim_access(sim, 0, trace[i], &err);
                missed += i >= begin && i < begin + 3000 && from == 1;
            }
            sim_free(sim);
            assert_int_equal(r.samples, N / 20000);
            assert_int_equal(r.seen, N);
            assert_int_equal(r.accesses, 3000 * r.samples);
            assert_int_equal(r.hits + r.misses + r.unknown, r.accesses);
            assert_in_range(missed, r.misses, r.misses + r.unknown);
            assert_true(r.unknown > 0 && r.unknown < r.accesses / 2);
            assert_true(r.dead_share > 0 && r.dead_share < 1);
            assert_true(r.standard_error > 0 && r.standard_error < 0.1);
        }
}

/* One sample that is the whole trace: unknown are the first touches of ways, the rest is the simulation. */
static void all_of_it(void **state)
{
    struct timesample_config config = {256 * 64, 4, 64, N, N, 0};
    struct sim_config whole = one_cache(256, 4);
    struct sim *sim;
    struct error err;
    (void)state;
    make_trace(2);
    struct timesample_result r = sample(&config, N);
    assert_int_equal(sim_new(&whole, &sim, &err), 0);
    assert_int_equal(sim_run(sim, 0, trace, N, &err), 0);
    struct sim_stats s = sim_stats(sim, 0, 0);
    assert_int_equal(r.misses + r.unknown, s.misses);
    assert_int_equal(r.misses, s.evictions);
    assert_int_equal(r.unknown, 256);
    sim_free(sim);
}

/* Cut by hand at the places that the periods would have, it is the same. */
static void cut_by_hand(void **state)
{
    struct timesample_config drawn = {512 * 64, 8, 64, 4000, 4000, 0}, cut = {512 * 64, 8, 64, 0, 0, 0};
    struct timesample *t;
    struct error err;
    (void)state;
    make_trace(4);
    struct timesample_result want = sample(&drawn, 1000);
    assert_int_equal(timesample_new(&cut, &t, &err), 0);
    timesample_cut(t);
    for (size_t i = 0; i < N; i += 1000) {
        if (i % 4000 == 0)
            timesample_cut(t);
        assert_int_equal(timesample_run(t, trace + i, 1000, &err), 0);
    }
    timesample_cut(t);
    struct timesample_result got = timesample_result(t);
    assert_int_equal(got.samples, N / 4000);
    assert_memory_equal(&got, &want, sizeof got);
    timesample_free(t);
}

static struct sim_config two_levels(void)
{
    return (struct sim_config){.levels = 2,
                               .cores = 1,
                               .line_bytes = 64,
                               .level = {{64 * 2 * 64, 2, SIM_LRU, SIM_NON_INCLUSIVE, 0},
                                         {96 * 8 * 64, 8, SIM_PLRU, SIM_INCLUSIVE, 1}}};
}

/* All groups: the simulation itself. A part: those sets' own misses, and a mean that is right. */
static void sets(void **state)
{
    struct sim_config config = two_levels();
    struct setsample *s;
    struct sim *sim;
    struct error err;
    double whole[2], sum[2] = {0}, squares[2] = {0}, reported[2] = {0};
    enum { DRAWS = 200 };
    (void)state;
    make_trace(3);
    assert_int_equal(sim_new(&config, &sim, &err), 0);
    assert_int_equal(sim_run(sim, 0, trace, N, &err), 0);
    assert_int_equal(setsample_new(&config, 1, &s, &err), 0);
    assert_int_equal(setsample_run(s, 0, trace, N, &err), 0);
    for (uint32_t l = 0; l < 2; l++) {
        struct sim_stats stats = sim_stats(sim, l, 0);
        struct setsample_result r = setsample_result(s, l);
        assert_int_equal(r.accesses, stats.accesses);
        assert_int_equal(r.misses, stats.misses);
        assert_true(r.standard_error == 0);
        whole[l] = r.miss_ratio;
    }
    sim_free(sim);
    setsample_free(s);
    /* gcd(64, 96) = 32 groups, 8 of them. 200 draws: the mean within 5 standard errors of the truth, and the
     * error reported on average within a fifth of the one seen. */
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        config.seed = draw;
        assert_int_equal(setsample_new(&config, 0.25, &s, &err), 0);
        assert_true(setsample_share(s) == 0.25);
        assert_int_equal(setsample_run(s, 0, trace, N / 8, &err), 0);
        for (uint32_t l = 0; l < 2; l++) {
            struct setsample_result r = setsample_result(s, l);
            sum[l] += r.miss_ratio;
            squares[l] += r.miss_ratio * r.miss_ratio;
            reported[l] += r.standard_error * r.standard_error;
        }
        setsample_free(s);
    }
    config.seed = 0;
    assert_int_equal(setsample_new(&config, 1, &s, &err), 0);
    assert_int_equal(setsample_run(s, 0, trace, N / 8, &err), 0);
    for (uint32_t l = 0; l < 2; l++) {
        double mean = sum[l] / DRAWS, sd = sqrt(squares[l] / DRAWS - mean * mean);
        whole[l] = setsample_result(s, l).miss_ratio;
        assert_true(fabs(mean - whole[l]) < 5 * sd / sqrt(DRAWS));
        assert_true(fabs(sqrt(reported[l] / DRAWS) / sd - 1) < 0.2);
    }
    setsample_free(s);
}

static void refusals(void **state)
{
    struct timesample_config good = {4096, 2, 64, 10, 100, 0}, bad;
    struct timesample *t = NULL;
    struct setsample *s = NULL;
    struct sim_config config = two_levels();
    struct error err;
    (void)state;
    bad = good, bad.length = 0;
    assert_int_equal(timesample_new(&bad, &t, &err), -EINVAL);
    bad = good, bad.length = 101;
    assert_int_equal(timesample_new(&bad, &t, &err), -EINVAL);
    bad = good, bad.ways = 3;
    assert_int_equal(timesample_new(&bad, &t, &err), -EINVAL);
    assert_null(t);
    assert_int_equal(setsample_new(&config, 0, &s, &err), -EINVAL);
    assert_int_equal(setsample_new(&config, 1.5, &s, &err), -EINVAL);
    config.straddle_once = 1;
    assert_int_equal(setsample_new(&config, 0.5, &s, &err), -EINVAL);
    config = one_cache(1024, 0);
    assert_int_equal(setsample_new(&config, 0.5, &s, &err), -EINVAL);
    assert_null(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worked_by_hand), cmocka_unit_test(bounds_hold), cmocka_unit_test(all_of_it),
        cmocka_unit_test(cut_by_hand),    cmocka_unit_test(sets),        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
