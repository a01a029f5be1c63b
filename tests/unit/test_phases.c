/* SPDX-License-Identifier: Apache-2.0 */
/* Phases of windows, and how windows are cut, joined and stored. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "analysis/windows.h"
#include "base/random.h"
#include "collect/reduce/windows.h"
#include "collect/tunables.h"
#include "model/phases.h"
#include "model/shrink.h"
#include "profile/windows.h"

/* A window of exact mode that executed place `a` and, as a share, place `b`; with one miss ratio everywhere.
 */
static struct phases_window window(unsigned a, unsigned b, double share, double miss_ratio)
{
    struct phases_window w = {.weight = 1, .samples = INFINITY, .kind = PHASES_EXACT};
    w.code[a] += 1000 * (1 - share);
    w.code[b] += 1000 * share;
    for (unsigned i = 0; i < PHASES_DATA; i++)
        w.data[i] = miss_ratio;
    return w;
}

static void expect(struct phases_window *w, size_t n, int phases, const char *numbers)
{
    assert_int_equal(phases_find(w, n), phases);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(w[i].phase, numbers[i] - '0');
}

static void test_code_and_data(void **state)
{
    (void)state;
    struct phases_window w[] = {window(1, 1, 0, 0), window(2, 2, 0, 0),   window(1, 1, 0, 0.01),
                                window(3, 3, 0, 0), window(3, 3, 0, 0.2), window(2, 2, 0, 0.03)};
    expect(w, 6, 4, "121342");
}

static void test_transition(void **state)
{
    (void)state;
    /* The third window is 40% of the first phase and 60% of the second; the last one is neither. */
    struct phases_window w[] = {window(1, 1, 0, 0),   window(1, 1, 0, 0),   window(1, 2, 0.6, 0.18),
                                window(2, 2, 0, 0.3), window(7, 8, 0.5, 0), window(1, 1, 0, 0)};
    expect(w, 6, 3, "112231");
}

/* Ten windows each of one place, of two, and of the other: too long for a transition. */
static void test_mixture_that_lasts(void **state)
{
    (void)state;
    struct phases_window w[30];
    for (unsigned i = 0; i < 30; i++) {
        w[i] = window(1, 2, i / 10 * 0.5, 0);
        w[i].samples = 20;
        w[i].kind = PHASES_NO_DATA;
    }
    expect(w, 30, 3, "111111111122222222223333333333");
}

static void test_threads(void **state)
{
    (void)state;
    /* Alternating threads of different phases are no transitions. */
    struct phases_window w[] = {window(1, 1, 0, 0), window(2, 2, 0, 0), window(1, 2, 0.5, 0),
                                window(2, 2, 0, 0), window(1, 1, 0, 0)};
    w[1].thread = w[3].thread = 1;
    expect(w, 5, 3, "12321");
}

static void test_without_code(void **state)
{
    (void)state;
    struct phases_window w[] = {window(1, 1, 0, 0), {.weight = 1, .samples = 5}, window(1, 1, 0, 0)};
    expect(w, 3, 1, "101");
    expect(NULL, 0, 0, "");
}

/* Two phases, each with eight places of code, seen through few samples. */
static void test_noise(void **state)
{
    (void)state;
    enum { WINDOWS = 200, SAMPLES = 16 };
    struct phases_window *w = calloc(WINDOWS, sizeof *w);
    struct random_state random;
    random_seed(&random, 5);
    for (unsigned i = 0; i < WINDOWS; i++) {
        unsigned first = i / 20 % 2 ? 8 : 0;
        w[i].weight = 1;
        w[i].samples = SAMPLES;
        for (unsigned k = 0; k < SAMPLES; k++)
            w[i].code[first + random_below(&random, 8)]++;
    }
    assert_int_equal(phases_find(w, WINDOWS), 2);
    for (unsigned i = 0; i < WINDOWS; i++)
        assert_int_equal(w[i].phase, 1 + i / 20 % 2);
    free(w);
}

/* Similar code in many places, seen through few samples: 24 places each, of which 16 are common. */
static void test_similar_code(void **state)
{
    (void)state;
    enum { WINDOWS = 200, SAMPLES = 16 };
    struct phases_window *w = calloc(WINDOWS, sizeof *w);
    struct random_state random;
    random_seed(&random, 5);
    for (unsigned i = 0; i < WINDOWS; i++) {
        w[i].weight = 1;
        w[i].samples = SAMPLES;
        for (unsigned k = 0; k < SAMPLES; k++)
            w[i].code[(i / 40 % 2 ? 8 : 0) + random_below(&random, 24)]++;
    }
    assert_int_equal(phases_find(w, WINDOWS), 2);
    for (unsigned i = 0; i < WINDOWS; i++)
        if (i % 40 > 1 && i % 40 < 38)
            assert_int_equal(w[i].phase, 1 + i / 40 % 2);
    free(w);
}

/* Among 1000 windows, one to four that are different are no phase. */
static void test_short_ones(void **state)
{
    (void)state;
    enum { WINDOWS = 1000 };
    struct phases_window *w = calloc(WINDOWS, sizeof *w);
    for (unsigned i = 0; i < WINDOWS; i++)
        w[i] = i < 400                          ? window(1, 1, 0, 0.1)
               : i < 404 || i == 500            ? window(i % 20 + 20, 3, 0.1, 0.3)
               : i % 100 >= 40 && i % 100 <= 45 ? window(5, 5, 0, 0.5)
                                                : window(2, 2, 0, 0.1);
    assert_int_equal(phases_find(w, WINDOWS), 3);
    free(w);
}

/* The same code; data only in every third window, with noise. */
static void test_data_of_bursts(void **state)
{
    (void)state;
    enum { WINDOWS = 120 };
    struct phases_window *w = calloc(WINDOWS, sizeof *w);
    struct random_state random;
    random_seed(&random, 7);
    for (unsigned i = 0; i < WINDOWS; i++) {
        double of_phase = i / 30 % 2 ? 0.3 : 0.1;
        w[i] = window(1, 2, 0.5, 0);
        w[i].samples = 16;
        w[i].kind = i % 3 == 0 ? PHASES_SAMPLED : PHASES_NO_DATA;
        w[i].bursts = 1;
        for (unsigned k = 0; k < PHASES_DATA; k++)
            w[i].data[k] = of_phase + 0.02 * ((double)random_below(&random, 100) / 100 - 0.5);
    }
    assert_int_equal(phases_find(w, WINDOWS), 2);
    for (unsigned i = 0; i < WINDOWS; i++) /* within a window with data of the boundary */
        if (i % 30 > 2 && i % 30 < 28)
            assert_int_equal(w[i].phase, 1 + i / 30 % 2);
    free(w);
}

/* Regular code: all bursts of a phase have the same data, so there is no noise. */
static void test_data_without_noise(void **state)
{
    (void)state;
    enum { WINDOWS = 60 };
    struct phases_window *w = calloc(WINDOWS, sizeof *w);
    for (unsigned i = 0; i < WINDOWS; i++) {
        w[i] = window(1, 2, 0.5, i < 30 ? 0.3 : 0.1);
        w[i].samples = 16;
        w[i].kind = i % 3 == 0 ? PHASES_SAMPLED : PHASES_NO_DATA;
        w[i].bursts = 1;
    }
    assert_int_equal(phases_find(w, WINDOWS), 2);
    for (unsigned i = 0; i < WINDOWS; i++)
        if (i < 28 || i > 30)
            assert_int_equal(w[i].phase, 1 + (i >= 30));
    free(w);
}

/* A window between two phases whose bursts were all in the same one of them. */
static void test_transition_with_few_bursts(void **state)
{
    (void)state;
    enum { WINDOWS = 41, TRANSITION = 20 };
    for (unsigned late = 0; late < 2; late++) {
        struct phases_window *w = calloc(WINDOWS, sizeof *w);
        for (unsigned i = 0; i < WINDOWS; i++) {
            unsigned place = i < TRANSITION ? 1 : 2;
            w[i] = window(place, place, 0, place == 1 ? 0.1 : 0.5);
            if (i == TRANSITION)
                w[i] = window(1, 2, 0.5, late ? 0.5 : 0.1);
            w[i].samples = 16;
            w[i].kind = PHASES_SAMPLED;
            w[i].bursts = 1;
        }
        assert_int_equal(phases_find(w, WINDOWS), 2);
        for (unsigned i = 0; i < WINDOWS; i++)
            if (i != TRANSITION)
                assert_int_equal(w[i].phase, 1 + (i > TRANSITION));
        free(w);
    }
}

/* The same code, first in full mode; the data of bursts say nothing about exact windows. */
static void test_exact_before_bursts(void **state)
{
    (void)state;
    enum { WINDOWS = 60, EXACT = 10, FIRST = 30 };
    struct phases_window *w = calloc(WINDOWS, sizeof *w);
    for (unsigned i = 0; i < WINDOWS; i++) {
        w[i] = window(1, 1, 0, i < EXACT ? 0.1 + 0.001 * i : i < FIRST ? 0.12 : 0.5);
        if (i < EXACT)
            continue;
        w[i].samples = 16;
        w[i].kind = PHASES_SAMPLED;
        w[i].bursts = 1;
    }
    assert_int_equal(phases_find(w, WINDOWS), 2);
    for (unsigned i = 0; i < WINDOWS; i++)
        assert_int_equal(w[i].phase, 1 + (i >= FIRST));
    free(w);
}

/* --- estimates of windows --- */

static void test_shrink(void **state)
{
    (void)state;
    const double y[][1] = {{1}, {1}, {3}, {3}, {NAN}};
    struct shrink_value v[5];
    const uint32_t group_of[] = {1, 1, 1, 1, 1, 0};
    double of_member[6], of_group[2];
    for (size_t i = 0; i < 5; i++)
        v[i] = (struct shrink_value){i, 1, 2, y[i]};
    assert_int_equal(shrink_values(v, 5, 1, group_of, 6, 2, of_member, of_group), 0);
    /* The example of shrink.c; nothing is known of group 0. */
    const double expected[] = {1.75, 1.75, 2.25, 2.25, 2};
    for (size_t i = 0; i < 5; i++)
        assert_true(fabs(of_member[i] - expected[i]) < 1e-12);
    assert_true(of_group[1] == 2 && isnan(of_group[0]) && isnan(of_member[5]));
    /* Several values of a member; weights. A value of no member counts for its group. */
    for (size_t i = 0; i < 4; i++)
        v[i] = (struct shrink_value){i < 3 ? 0 : 6, 1, i < 3 ? 1 : 3, y[i < 3 ? 0 : 2]};
    assert_int_equal(shrink_values(v, 4, 1, group_of, 6, 2, of_member, of_group), 0);
    assert_true(of_group[1] == 2 && fabs(of_member[0] - 1.5) < 1e-12 && of_member[1] == 2);
    /* Where all values are alike, so are members. */
    for (size_t i = 0; i < 4; i++)
        v[i] = (struct shrink_value){i, i < 2 ? 0 : 1, 1, y[i < 2 ? 0 : 2]};
    const uint32_t two[] = {0, 0, 1, 1};
    assert_int_equal(shrink_values(v, 4, 1, two, 4, 2, of_member, of_group), 0);
    for (size_t i = 0; i < 4; i++)
        assert_true(of_member[i] == (i < 2 ? 1 : 3) && of_group[i / 2] == of_member[i]);
    assert_int_equal(shrink_values(NULL, 0, 1, two, 4, 2, of_member, of_group), 0);
    assert_true(isnan(of_member[0]) && isnan(of_group[1]));
}

/* --- windows of a run --- */

static struct profile_time_window *store(struct windows *w, size_t *n, struct profile **p)
{
    struct error err;
    char name[] = "/tmp/test_phases-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    unlink(name);
    assert_int_equal(profile_create(name, p, &err), 0);
    assert_int_equal(windows_store(w, 1, *p, &err), 0);
    struct profile_time_window *list;
    assert_int_equal(profile_time_windows(*p, &list, n, &err), 0);
    unlink(name);
    return list;
}

static void test_ticks(void **state)
{
    (void)state;
    struct error err;
    struct windows *w = windows_new(64, 1000, &err);
    struct windows_code *code = windows_code_new(NULL, NULL, &err);
    /* A second thread sleeps half of the time. From 1024 ms of CPU time on both are in other code. */
    for (uint64_t ms = 1; ms <= 2048; ms++)
        for (uint32_t tid = 7; tid <= 8; tid++) {
            struct wire_tick tick = {.tid = tid,
                                     .cpu_ns = ms * 1000000,
                                     .at_ns = 1000 + ms * 1000000 * (tid - 6),
                                     .pc = ms <= 1024 ? 0x1000 : 0x9000};
            assert_int_equal(windows_tick(w, 1, code, &tick), 0);
        }
    struct profile *p;
    size_t n;
    struct profile_time_window *list = store(w, &n, &p);
    assert_int_equal(n, 2 * 2048 * UINT64_C(1000000) / COLLECT_WINDOW_NS);
    uint64_t cpu_ns = 0, end_ns[2] = {0, 1000000};
    for (size_t i = 0; i < n; i++) {
        const struct profile_time_window *x = &list[i];
        cpu_ns += x->cpu_ns;
        assert_int_equal(x->start_ns, end_ns[x->tid - 7]);
        end_ns[x->tid - 7] = x->end_ns;
        assert_int_equal(x->ticks, COLLECT_WINDOW_NS / 1000000);
        assert_int_equal(x->phase, x->end_ns <= 1024 * UINT64_C(1000000) * (x->tid - 6) ? 1 : 2);
    }
    assert_int_equal(cpu_ns, 2 * 2048 * UINT64_C(1000000));
    free(list);
    profile_abandon(p);
    windows_code_free(code);
    windows_free(w);
}

/* Between the steps to which distances are rounded, such as at 768 lines. */
static void test_any_size(void **state)
{
    (void)state;
    enum { LARGEST = 100000 };
    struct error err;
    struct windows *w = windows_new(64, 0, &err);
    struct hist *h = calloc(1, sizeof *h);
    for (uint64_t distance = 0; distance < LARGEST; distance++)
        hist_add(h, distance, 3);
    hist_add(h, UINT64_MAX, 5);
    struct wire_desc desc = {.tid = 3, .start_ns = 0, .end_ns = 900, .cpu_end_ns = 900};
    const struct windows_distances distances = {h, HIST_BINS, 0};
    assert_int_equal(windows_buffer(w, 1, NULL, &desc, h->total, &distances, NULL, NULL, NULL), 0);
    struct profile *p;
    size_t n;
    struct profile_time_window *list = store(w, &n, &p);
    uint64_t total = h->total;
    assert_int_equal(n, 1);
    assert_int_equal(analysis_window_stack(p, list[0].id, 0, h, &err), 0);
    assert_int_equal(h->total, total);
    for (uint64_t lines = 1; lines < LARGEST - LARGEST / 10; lines += 1 + lines / 7) {
        double exact = 3. * (double)(LARGEST - lines) + 5;
        assert_true(fabs(hist_at_least(h, (double)lines) - exact) < 1);
    }
    free(list);
    free(h);
    profile_abandon(p);
    windows_free(w);
}

/* More windows than there may be: they become longer, and nothing is lost. */
static void test_joined(void **state)
{
    (void)state;
    struct error err;
    enum { BUFFERS = 9000 };
    struct windows *w = windows_new(64, 0, &err);
    struct hist *h = calloc(1, sizeof *h), *own_stack = calloc(1, sizeof *h);
    uint64_t refs = 0, cold = 0, own_cold = 0;
    hist_add(own_stack, 30, 299999);
    for (uint64_t i = 0; i < BUFFERS; i++) {
        struct wire_desc desc = {
            .tid = 3 + i % 2, .start_ns = i * 1000, .end_ns = i * 1000 + 900, .cpu_end_ns = 900};
        uint64_t distance = i < BUFFERS / 2 ? 20 : 2000;
        hist_add(h, distance, 300000);
        /* No code is known, hence no phase. */
        /* The second half of each thread's buffers is farther in the shared cache than in its own. */
        const struct windows_distances shared = {h, HIST_BINS, 10}, own = {own_stack, 64, 11};
        assert_int_equal(
            windows_buffer(w, 1, NULL, &desc, 300010, &shared, i < BUFFERS / 2 ? NULL : &own, NULL, NULL), 0);
        h->count[hist_bin(distance)] = h->total = 0;
        refs += 300010;
        cold += 10;
    }
    struct profile *p;
    size_t n;
    struct profile_time_window *list = store(w, &n, &p);
    assert_in_range(n, COLLECT_WINDOWS / 2, COLLECT_WINDOWS);
    uint64_t misses = 0, own_misses = 0;
    for (size_t i = 0; i < n; i++) {
        refs -= list[i].references;
        cold -= list[i].cold;
        assert_int_equal(list[i].phase, 0);
        assert_int_equal(profile_time_window_stack(p, list[i].id, 0, h, &err), 0);
        assert_int_equal(h->total, list[i].references - list[i].cold);
        misses += (uint64_t)hist_at_least(h, 1024);
        assert_true(hist_at_least(h, 16) == (double)h->total && hist_at_least(h, 2048) == 0);
        assert_int_equal(profile_time_window_stack(p, list[i].id, 1, h, &err), 0);
        assert_int_equal(h->total, list[i].references - list[i].own_cold);
        assert_true(hist_at_least(h, 16) == (double)h->total && hist_at_least(h, 64) == 0);
        own_misses += (uint64_t)hist_at_least(h, 22);
        own_cold += list[i].own_cold;
    }
    assert_int_equal(refs, 0);
    assert_int_equal(cold, 0);
    assert_int_equal(misses, (uint64_t)BUFFERS / 2 * 300000);
    assert_int_equal(own_misses, (uint64_t)BUFFERS / 2 * 299999);
    assert_int_equal(own_cold, (uint64_t)BUFFERS / 2 * (10 + 11));
    free(own_stack);
    free(list);
    free(h);
    profile_abandon(p);
    windows_free(w);
}

static size_t stored(struct windows *w, int last, struct profile *p)
{
    struct error err;
    struct profile_time_window *list;
    size_t n;
    assert_int_equal(windows_store(w, last, p, &err), 0);
    assert_int_equal(profile_time_windows(p, &list, &n, &err), 0);
    free(list);
    return n;
}

/* With many phases, clustering would delay the recorder: it is only done at the end. */
static void test_store_while_running(void **state)
{
    (void)state;
    struct error err;
    struct windows *w = windows_new(64, 0, &err);
    struct windows_code *code = windows_code_new(NULL, NULL, &err);
    struct profile *p;
    char name[] = "/tmp/test_phases-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(profile_create(name, &p, &err), 0);
    unlink(name);
    size_t now = 0;
    uint64_t ms = 0;
    for (uint64_t i = 1; i <= 16; i++) { /* one place of code, then 16 */
        for (uint64_t k = 0; k < 32 * 40; k++) {
            struct wire_tick tick = {
                .tid = 7, .cpu_ns = ++ms * 1000000, .at_ns = ms * 1000000, .pc = (i * 7 % 61) << 20};
            assert_int_equal(windows_tick(w, 1, code, &tick), 0);
        }
        now = stored(w, 0, p);
        assert_true(i > 4 || now == i * 40);
    }
    assert_in_range(now, 4 * 40, 15 * 40);
    assert_int_equal(stored(w, 1, p), 16 * 40);
    profile_abandon(p);
    windows_code_free(code);
    windows_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_code_and_data),
        cmocka_unit_test(test_transition),
        cmocka_unit_test(test_mixture_that_lasts),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_without_code),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_data_of_bursts),
        cmocka_unit_test(test_data_without_noise),
        cmocka_unit_test(test_exact_before_bursts),
        cmocka_unit_test(test_transition_with_few_bursts),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_any_size),
        cmocka_unit_test(test_store_while_running),
        cmocka_unit_test(test_similar_code),
        cmocka_unit_test(test_short_ones),
        cmocka_unit_test(test_shrink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
