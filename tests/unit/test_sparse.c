/* SPDX-License-Identifier: Apache-2.0 */
/* The sparse sampler, its windows' curves, and its profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/random.h"
#include "model/windows.h"
#include "profile/profile.h"
#include "sim/sparse.h"

enum { N = 20000 };
static uint64_t trace[N], true_distance[N];

static void make_trace(uint64_t seed)
{
    struct random_state random;
    random_seed(&random, seed);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t line = random_below(&random, 3) ? random_below(&random, 20) : random_below(&random, 3000);
        trace[i] = line << SIM_LINE_SHIFT | random_below(&random, 2);
    }
    for (uint64_t i = 0; i < N; i++) {
        true_distance[i] = SPARSE_DANGLING;
        for (uint64_t k = i + 1; k < N && true_distance[i] == SPARSE_DANGLING; k++)
            if (trace[k] >> SIM_LINE_SHIFT == trace[i] >> SIM_LINE_SHIFT)
                true_distance[i] = k - i - 1;
    }
}

static struct sparse *sample(const struct sparse_config *config, size_t piece)
{
    struct sparse *s;
    struct error err;
    assert_int_equal(sparse_new(config, &s, &err), 0);
    for (size_t i = 0; i < N; i += piece)
        assert_int_equal(sparse_run(s, trace + i, N - i < piece ? N - i : piece, &err), 0);
    assert_int_equal(sparse_seen(s), N);
    return s;
}

/* Every access, window after window. */
static void all_of_them(void **state)
{
    struct sparse_config config = {500, 0, 500, 7};
    size_t nsamples, nwindows;
    (void)state;
    make_trace(1);
    struct sparse *s = sample(&config, 333);
    const struct sparse_sample *samples = sparse_samples(s, 0, &nsamples);
    sparse_windows(s, 0, &nwindows);
    assert_int_equal(nsamples, N);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(samples[i].start, i);
        assert_int_equal(samples[i].line, trace[i] >> SIM_LINE_SHIFT);
        assert_int_equal(samples[i].distance, true_distance[i]);
    }
    assert_in_range(nwindows, N / 500, N / 500 + 1);
    sparse_free(s);
}

/* Samples lie in their windows, and each has the distance of its place in the trace. */
static void samples_are_true(void **state)
{
    uint64_t all = 0;
    (void)state;
    make_trace(2);
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct sparse_config config = {200, 700, 40, seed};
        size_t nsamples, nwindows;
        struct sparse *s = sample(&config, 1 + seed * 97);
        const struct sparse_sample *samples = sparse_samples(s, 0, &nsamples);
        const struct sparse_window *windows = sparse_windows(s, 0, &nwindows);
        all += nsamples;
        for (size_t i = 0; i < nsamples; i++) {
            const struct sparse_window *w = &windows[samples[i].window];
            assert_in_range(samples[i].window, 0, nwindows - 1);
            assert_in_range(samples[i].start, w->start, w->start + w->length - 1);
            assert_true(i == 0 || samples[i].start > samples[i - 1].start);
            assert_int_equal(samples[i].distance, true_distance[samples[i].start]);
        }
        for (size_t i = 0; i < nwindows; i++) {
            assert_true(windows[i].length <= 200);
            assert_true(windows[i].length == 200 || i == 0 || i == nwindows - 1);
        }
        sparse_free(s);
    }
    /* 20000 * 40 / 900 each; sd of a seed's number about 190, of the sum 1340. */
    assert_in_range(all, 44444 - 5000, 44444 + 5000);
}

/* Over many seeds, every tenth of the trace is sampled as often as any other, its ends too. */
static void all_references_have_the_same_chance(void **state)
{
    enum { PARTS = 10, SEEDS = 2000, LENGTH = 2000 };
    uint64_t count[PARTS] = {0};
    const double expected = SEEDS * (LENGTH / PARTS) * 30.0 / 1200;
    (void)state;
    make_trace(3);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sparse_config config = {300, 900, 30, seed};
        struct sparse *s;
        struct error err;
        size_t n;
        assert_int_equal(sparse_new(&config, &s, &err), 0);
        assert_int_equal(sparse_run(s, trace, LENGTH, &err), 0);
        const struct sparse_sample *samples = sparse_samples(s, 0, &n);
        for (size_t i = 0; i < n; i++)
            count[samples[i].start * PARTS / LENGTH]++;
        sparse_free(s);
    }
    /* A part is in a window or not, wholly at times: sd of its count about 20 * sqrt(3/16) * sqrt(SEEDS) =
     * 387 at most, of 10,000; four of them. */
    for (int p = 0; p < PARTS; p++)
        assert_true(fabs((double)count[p] - expected) < 4 * 387);
}

/* Side by side, samplers of all kinds find what each finds alone. */
static void a_set_is_as_its_members(void **state)
{
    enum { SAMPLERS = 24 };
    struct sparse_config configs[SAMPLERS];
    struct sparse *set;
    struct error err;
    (void)state;
    make_trace(4);
    for (uint64_t k = 0; k < SAMPLERS; k++) /* the first ones watch every line, the same ones */
        configs[k] = k < 2 ? (struct sparse_config){500, 0, 500, k}
                           : (struct sparse_config){1 + 37 * k, 90.0 * (double)(k % 7), 1 + (double)k, k};
    assert_int_equal(sparse_new_set(configs, SAMPLERS, &set, &err), 0);
    for (size_t i = 0, piece = 1; i < N; i += piece, piece = 1 + piece * 7 % 500)
        assert_int_equal(sparse_run(set, trace + i, N - i < piece ? N - i : piece, &err), 0);
    for (size_t k = 0; k < SAMPLERS; k++) {
        size_t nsamples, nwindows, n;
        struct sparse *alone = sample(&configs[k], 100);
        const struct sparse_sample *samples = sparse_samples(alone, 0, &nsamples);
        const struct sparse_window *windows = sparse_windows(alone, 0, &nwindows);
        assert_true(nsamples > 100);
        assert_memory_equal(sparse_samples(set, k, &n), samples, nsamples * sizeof *samples);
        assert_int_equal(n, nsamples);
        assert_memory_equal(sparse_windows(set, k, &n), windows, nwindows * sizeof *windows);
        assert_int_equal(n, nwindows);
        sparse_free(alone);
    }
    sparse_free(set);
}

static struct hist *hist_of(const uint64_t *distances, size_t n)
{
    struct hist *h = calloc(1, sizeof *h);
    for (size_t i = 0; i < n; i++)
        hist_add(h, distances[i], 1);
    return h;
}

/* Windows are modelled apart and averaged by their references. */
static void curves_of_windows(void **state)
{
    static const uint64_t near[] = {0, 1, 2, 3, 50, 60}, far[] = {5, 400, 500, 3000};
    const struct curve_window windows[] = {
        {near, 6, 1, 1000}, {far, 4, 2, 500}, {NULL, 0, 0, 1000}, {near, 6, 0, 0}};
    (void)state;
    for (int model = CURVE_WINDOWS_STATSTACK; model <= CURVE_WINDOWS_STATCACHE; model++) {
        struct curve_point first[3] = {{512, 0, 0, 0}, {4096, 0, 0, 0}, {65536, 0, 0, 0}}, second[3], got[3];
        struct hist *a = hist_of(near, 6), *b = hist_of(far, 4);
        struct error err;
        memcpy(second, first, sizeof first);
        memcpy(got, first, sizeof first);
        if (model == CURVE_WINDOWS_STATSTACK) {
            assert_int_equal(curve_statstack(a, 1, 64, first, 3, &err), 0);
            assert_int_equal(curve_statstack(b, 2, 64, second, 3, &err), 0);
        } else {
            assert_int_equal(curve_statcache(a, 1, 64, first, 3, &err), 0);
            assert_int_equal(curve_statcache(b, 2, 64, second, 3, &err), 0);
        }
        assert_int_equal(curve_windows(windows, 4, (enum curve_window_model)model, 64, got, 3, &err), 0);
        for (int i = 0; i < 3; i++) {
            double want = (1000 * first[i].miss_ratio + 500 * second[i].miss_ratio) / 1500;
            /* w (m - mean) is the same for both, but for the sign: 1000/3 of their difference. */
            double off = fabs(first[i].miss_ratio - second[i].miss_ratio) * 1000 / 3 / 1500;
            assert_true(fabs(got[i].miss_ratio - want) < 1e-12);
            assert_true(fabs(got[i].high - fmin(1, want + 2 * off * 2)) < 1e-9);
            assert_true(fabs(got[i].low - fmax(0, want - 2 * off * 2)) < 1e-9);
        }
        assert_int_equal(curve_windows(windows, 1, (enum curve_window_model)model, 64, got, 3, &err), 0);
        assert_true(got[1].miss_ratio == first[1].miss_ratio && isnan(got[1].low) && isnan(got[1].high));
        assert_int_equal(curve_windows(windows + 2, 2, (enum curve_window_model)model, 64, got, 3, &err), 0);
        assert_true(isnan(got[0].miss_ratio));
        free(a);
        free(b);
    }
    struct curve_window bad = {near, 6, 0, -1};
    struct curve_point point = {64, 0, 0, 0};
    struct error err;
    assert_int_equal(curve_windows(&bad, 1, CURVE_WINDOWS_STATSTACK, 64, &point, 1, &err), -EINVAL);
}

static void through_a_profile(void **state)
{
    char folder[] = "/tmp/test_sparse-XXXXXX", path[64];
    const struct profile_window windows[] = {{1, 0, 100}, {2, UINT64_C(1) << 40, 7}};
    const struct profile_sample samples[] = {
        {1, 3, 17, 5}, {1, 90, PROFILE_DANGLING, UINT64_MAX - 1}, {2, (UINT64_C(1) << 40) + 6, 0, 5}};
    struct profile *p;
    struct profile_window *got_windows;
    struct profile_sample *got_samples;
    size_t nwindows, nsamples;
    struct error err;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/p.db", folder);
    assert_int_equal(profile_create(path, &p, &err), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(profile_add_window(p, &windows[i], &err), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(profile_add_sample(p, &samples[i], &err), 0);
    assert_int_equal(profile_close(p, 1, &err), 0);
    assert_int_equal(profile_open(path, &p, &err), 0);
    assert_int_equal(profile_windows(p, &got_windows, &nwindows, &err), 0);
    assert_int_equal(profile_samples(p, &got_samples, &nsamples, &err), 0);
    assert_int_equal(nwindows, 2);
    assert_int_equal(nsamples, 3);
    assert_memory_equal(got_windows, windows, sizeof windows);
    assert_memory_equal(got_samples, samples, sizeof samples);
    free(got_windows);
    free(got_samples);
    profile_close(p, 0, NULL);
    unlink(path);
    rmdir(folder);
}

static void refusals(void **state)
{
    const struct sparse_config bad[] = {{0, 1, 1, 0},   {100, -1, 1, 0},  {100, NAN, 1, 0},
                                        {100, 1, 0, 0}, {100, 1, 101, 0}, {100, 1, NAN, 0}};
    struct sparse *s = NULL;
    struct error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(sparse_new(&bad[i], &s, &err), -EINVAL);
    assert_int_equal(sparse_new_set(bad, 0, &s, &err), -EINVAL);
    assert_null(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_them),
        cmocka_unit_test(samples_are_true),
        cmocka_unit_test(all_references_have_the_same_chance),
        cmocka_unit_test(a_set_is_as_its_members),
        cmocka_unit_test(curves_of_windows),
        cmocka_unit_test(through_a_profile),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
