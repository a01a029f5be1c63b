/* SPDX-License-Identifier: Apache-2.0 */
/* Programs side by side: against a plain loop over the twin, and where the outcome is known. */
#include "twin_cache.h"

#include <errno.h>
#include <math.h>

#include "bench/corun_sim.h"

struct array {
    const uint64_t *access;
    size_t n, at, most; /* most: accesses a call */
};

static int64_t read_array(void *context, uint64_t *accesses, size_t capacity, struct error *err)
{
    struct array *a = context;
    size_t n = a->n - a->at;
    (void)err;
    if (n > capacity)
        n = capacity;
    if (n > a->most)
        n = a->most;
    for (size_t i = 0; i < n; i++)
        accesses[i] = a->access[a->at++];
    return (int64_t)n;
}

static int restart_array(void *context, struct error *err)
{
    (void)err;
    ((struct array *)context)->at = 0;
    return 0;
}

static struct corun_stream stream(struct array *a, double references_per_instruction)
{
    return (struct corun_stream){read_array, restart_array, a, references_per_instruction};
}

enum { N = 3000 };
static uint64_t access_of[3][N];

static void fill(uint64_t seed)
{
    struct random_state random;
    random_seed(&random, seed);
    for (uint64_t p = 0; p < 3; p++)
        for (uint64_t i = 0; i < N; i++) {
            uint64_t line = random_below(&random, 3) ? random_below(&random, 10 + 20 * p) : i % (60 + 90 * p);
            access_of[p][i] = line << SIM_LINE_SHIFT | random_below(&random, 2);
        }
}

static const struct corun_config small = {
    .level = {{8 * 64, 2, SIM_LRU, SIM_NON_INCLUSIVE, 0}, {128 * 64, 8, SIM_LRU, SIM_INCLUSIVE, 1}},
    .levels = 2,
    .line_bytes = 64,
    .cpi_base = 1,
    .latency_cycles = {1, 10, 130},
};

/* Clocks are compared and added in the same way, over the brute-force hierarchy. */
static void agrees_with_twin(void **state)
{
    static const double mix[3] = {0.5, 0.25,
                                  0.4}; /* 2, 4 and 2.5 cycles between references: exact in binary */
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        fill(seed);
        struct corun_config config = small;
        config.until_all = seed % 2 == 1;
        config.references = seed < 4 ? 0 : 5000;
        config.warm_up = seed == 5 ? 700 : 0;
        struct sim_config caches = {.levels = 2, .cores = 3, .line_bytes = 64, .incoherent = 1};
        memcpy(caches.level, config.level, sizeof caches.level);
        struct twin *t = twin_new(&caches);
        uint64_t at[3] = {0}, made[3] = {0}, want[3][3] = {{0}}, warm[3] = {0};
        double now[3] = {0}, start[3] = {0};
        int counting = config.warm_up == 0, over[3] = {0};
        while (!(config.until_all ? over[0] && over[1] && over[2] : over[0] || over[1] || over[2])) {
            int p = now[1] < now[0] ? 1 : 0;
            p = now[2] < now[p] ? 2 : p;
            if (at[p] == N) {
                at[p] = 0;
                over[p] |= config.references == 0;
                continue;
            }
            uint64_t access = access_of[p][at[p]++];
            uint32_t from = twin_access(t, (uint32_t)p, (access >> SIM_LINE_SHIFT) + 1024 * (uint64_t)p,
                                        (int)(access & SIM_STORE));
            now[p] += 1 / mix[p] + config.latency_cycles[from];
            want[p][from]++;
            made[p]++;
            warm[p] += !counting;
            if (counting && config.references && made[p] == config.references)
                over[p] = 1;
            if (!counting && warm[0] >= config.warm_up && warm[1] >= config.warm_up &&
                warm[2] >= config.warm_up) {
                counting = 1;
                memset(want, 0, sizeof want);
                memset(made, 0, sizeof made);
                memcpy(start, now, sizeof start);
            }
        }
        struct array arrays[3];
        struct corun_stream streams[3];
        struct corun_result got[3];
        struct error err;
        for (int p = 0; p < 3; p++) {
            arrays[p] = (struct array){access_of[p], N, 0, seed % 3 ? 100000 : 37};
            streams[p] = stream(&arrays[p], mix[p]);
        }
        assert_int_equal(corun_run(&config, streams, 3, NULL, got, &err), 0);
        for (int p = 0; p < 3; p++) {
            assert_memory_equal(got[p].hits, want[p], sizeof want[p]);
            assert_int_equal(got[p].references, made[p]);
            assert_true(got[p].cycles == now[p] - start[p]);
            double cpi = 1;
            for (int l = 0; l < 3; l++)
                cpi += mix[p] * config.latency_cycles[l] * (double)want[p][l] / (double)made[p];
            assert_true(fabs(got[p].cpi - cpi) < 1e-9);
            assert_true(got[p].miss_ratio == (double)want[p][2] / (double)made[p]);
        }
        twin_free(t);
    }
}

/*
 * Twice the same loop over 20,000 lines, in 32,768: alone both fit (all misses cold); together, in step, they
 * ask for 40,000 by turns and LRU keeps nothing.
 */
static void loops_that_do_not_fit(void **state)
{
    enum { LINES = 20000, ROUNDS = 5 };
    uint64_t *access = malloc(LINES * ROUNDS * sizeof *access);
    struct corun_result got[2];
    struct error err;
    (void)state;
    assert_non_null(access);
    for (uint64_t i = 0; i < LINES * ROUNDS; i++)
        access[i] = i % LINES << SIM_LINE_SHIFT;
    struct array arrays[2] = {{access, LINES * ROUNDS, 0, 1000}, {access, LINES * ROUNDS, 0, 1000}};
    struct corun_stream streams[2] = {stream(&arrays[0], 0.5), stream(&arrays[1], 0.5)};
    assert_int_equal(corun_run(&corun_statcc, streams, 1, NULL, got, &err), 0);
    assert_int_equal(got[0].hits[2], LINES);
    assert_int_equal(got[0].hits[1], LINES * (ROUNDS - 1));
    /* 1 + 0.5 * (130 + 4 * 10) / 5 */
    assert_true(fabs(got[0].cpi - 18) < 1e-9);
    arrays[0].at = 0;
    assert_int_equal(corun_run(&corun_statcc, streams, 2, NULL, got, &err), 0);
    assert_int_equal(got[0].hits[2], LINES * ROUNDS);
    assert_true(fabs(got[0].cpi - 66) < 1e-9);
    assert_true(fabs(got[1].miss_ratio - 1) < 1e-9);
    free(access);
}

static int64_t read_fails(void *context, uint64_t *accesses, size_t capacity, struct error *err)
{
    (void)context, (void)accesses, (void)capacity;
    return error_set(err, -EIO, "as reported");
}

static void refusals(void **state)
{
    struct array empty = {access_of[0], 0, 0, 1}, full = {access_of[0], N, 0, N};
    struct corun_stream good = stream(&full, 0.5), bad = good;
    struct corun_result got[1];
    struct error err;
    struct corun_config config = small;
    uint64_t high = UINT64_C(1) << (CORUN_LINE_BITS + SIM_LINE_SHIFT);
    volatile int interrupted = 1;
    (void)state;
    fill(1);
    bad.context = &empty;
    assert_int_equal(corun_run(&config, &bad, 1, NULL, got, &err), -EINVAL);
    bad = good;
    bad.references_per_instruction = 0;
    assert_int_equal(corun_run(&config, &bad, 1, NULL, got, &err), -EINVAL);
    bad = good;
    bad.read = read_fails;
    assert_int_equal(corun_run(&config, &bad, 1, NULL, got, &err), -EIO);
    assert_string_equal(err.text, "as reported");
    bad = stream(&(struct array){&high, 1, 0, 1}, 1);
    assert_int_equal(corun_run(&config, &bad, 1, NULL, got, &err), -EINVAL);
    assert_int_equal(corun_run(&config, &good, 0, NULL, got, &err), -EINVAL);
    config.warm_up = 1;
    assert_int_equal(corun_run(&config, &good, 1, NULL, got, &err), -EINVAL);
    config.references = 100;
    config.latency_cycles[1] = 0;
    assert_int_equal(corun_run(&config, &good, 1, NULL, got, &err), -EINVAL);
    config = small;
    config.level[0].ways = 3;
    assert_int_equal(corun_run(&config, &good, 1, NULL, got, &err), -EINVAL);
    assert_int_equal(corun_run(&small, &good, 1, &interrupted, got, &err), -EINTR);
    assert_int_equal(got[0].references, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_twin),
        cmocka_unit_test(loops_that_do_not_fit),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
