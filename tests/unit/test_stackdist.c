/* SPDX-License-Identifier: Apache-2.0 */
/* stackdist against a list that is walked, and against traces whose distances are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hist.h"
#include "sim/stackdist-internal.h"
#include "not_here.h"

#define TWIN_LINES 6000u

static uint64_t random_state;

static uint64_t random_next(void)
{
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The brute-force twin: an array in order of recency. */
struct twin {
    uint64_t line[TWIN_LINES], last[TWIN_LINES], lines, now;
};

struct distances {
    uint64_t stack, reuse; /* STACKDIST_COLD: first touch */
};

static struct distances twin_touch(struct twin *t, uint64_t line)
{
    struct distances r = {STACKDIST_COLD, STACKDIST_COLD};
    uint64_t i = 0;

    while (i < t->lines && t->line[i] != line)
        i++;
    t->now++;
    if (i < t->lines) {
        r.stack = i;
        r.reuse = t->now - t->last[i] - 1;
    } else {
        assert_true(t->lines < TWIN_LINES);
        t->lines++;
    }
    memmove(t->line + 1, t->line, i * sizeof t->line[0]);
    memmove(t->last + 1, t->last, i * sizeof t->last[0]);
    t->line[0] = line;
    t->last[0] = t->now;
    return r;
}

static struct stackdist *new_stackdist(void)
{
    struct error err;
    struct stackdist *sd = stackdist_new(&err);

    assert_non_null(sd);
    return sd;
}

/* Touches a line; returns its stack distance. reuse (may be NULL) gets its reuse distance. */
static uint64_t touch_one(struct stackdist *sd, uint64_t line, struct hist *reuse)
{
    uint32_t at[1 + STACKDIST_FAR_EXTRA];
    uint64_t stack[1 + STACKDIST_FAR_EXTRA];
    struct stackdist_far far = {.least = 1, .at = at, .stack = stack};

    assert_int_equal(stackdist_touch_many(sd, &line, 1, NULL, reuse, NULL, NULL, &far), 0);
    return far.n ? stack[0] : 0;
}

/* A trace with a hot part, a warm part and a scan; lines use all 58 bits. */
static uint64_t mixed_line(uint64_t footprint, uint64_t i)
{
    uint64_t r = random_next(), pick = r >> 56, n;

    if (pick < 150)
        n = r % 12;
    else if (pick < 220)
        n = r % 90;
    else if (pick < 240)
        n = r % footprint;
    else
        n = i / 16 % footprint;
    return (n * UINT64_C(0x0123456789abcdf) + 5) & ((UINT64_C(1) << 58) - 1);
}

static void check_ages(const struct stackdist *sd, const struct twin *t, struct hist *got, struct hist *want)
{
    memset(got, 0, sizeof *got);
    memset(want, 0, sizeof *want);
    stackdist_ages(sd, got);
    for (uint64_t i = 0; i < t->lines; i++)
        hist_add(want, t->now - t->last[i], 1);
    assert_memory_equal(got, want, sizeof *got);
}

static void agree_with_twin(stackdist_touch_fn *touch)
{
    static const uint64_t footprints[] = {1,   2,   63,  64,  65,   66,   130, 255,
                                          256, 257, 258, 700, 1024, 1025, 5000};
    const int nfootprints = sizeof footprints / sizeof footprints[0];
    struct twin *t = calloc(1, sizeof *t);
    struct hist *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    struct stackdist *sd = new_stackdist();

    sd->touch = touch;
    random_state = 1;
    /* Downwards too: a reset then leaves a table much larger than what follows. */
    for (int pass = 0; pass < 2 * nfootprints; pass++) {
        uint64_t footprint = footprints[pass < nfootprints ? pass : 2 * nfootprints - 1 - pass];
        memset(t, 0, sizeof *t);
        memset(a, 0, sizeof *a);
        memset(b, 0, sizeof *b);
        stackdist_reset(sd);
        assert_int_equal(stackdist_lines(sd), 0);
        assert_int_equal(stackdist_references(sd), 0);
        for (uint64_t i = 0; i < 60000; i++) {
            uint64_t line = mixed_line(footprint, i);
            struct distances want = twin_touch(t, line);
            assert_int_equal(touch_one(sd, line, a), want.stack);
            if (want.reuse != STACKDIST_COLD)
                hist_add(b, want.reuse, 1);
        }
        assert_memory_equal(a, b, sizeof *a);
        assert_int_equal(stackdist_lines(sd), t->lines);
        assert_int_equal(stackdist_references(sd), 60000);
        check_ages(sd, t, a, b);
    }
    stackdist_free(sd);
    free(t);
    free(a);
    free(b);
}

static void agrees_with_twin(void **state)
{
    (void)state;
    agree_with_twin(stackdist_touch_any);
}

static void agrees_with_twin_avx2(void **state)
{
    (void)state;
    if (!stackdist_has_avx2()) {
        not_tested_here(__func__, "the processor has no AVX2");
        return;
    }
    agree_with_twin(stackdist_touch_avx2);
}

static void many_is_many_single_touches(void **state)
{
    enum { N = 50000 };
    uint64_t *lines = malloc(N * sizeof *lines);
    struct hist *h = calloc(6, sizeof *h);
    struct stackdist *one = new_stackdist(), *many = new_stackdist();
    uint64_t *distances = malloc(N * sizeof *distances), cold_one = 0, cold_many = 0;
    struct stackdist_far far = {.least = 20,
                                .at = malloc((300 + STACKDIST_FAR_EXTRA) * sizeof *far.at),
                                .stack = malloc((300 + STACKDIST_FAR_EXTRA) * sizeof *far.stack)};

    (void)state;
    one->touch = stackdist_touch_any; /* many: the best there is */
    random_state = 2;
    for (uint64_t i = 0; i < N; i++) {
        lines[i] = mixed_line(20000, i);
        distances[i] = touch_one(one, lines[i], &h[1]);
        if (distances[i] == STACKDIST_COLD)
            hist_add(&h[2], cold_one++, 1);
        else
            hist_add(&h[0], distances[i], 1);
    }
    for (size_t at = 0, n; at < N; at += n) {
        n = random_next() % 300;
        if (n > N - at)
            n = N - at;
        assert_int_equal(stackdist_touch_many(many, lines + at, n, &h[3], &h[4], &h[5], &cold_many, &far), 0);
        size_t listed = 0;
        for (size_t i = 0; i < n; i++) {
            if (distances[at + i] < far.least)
                continue;
            assert_true(listed < far.n);
            assert_int_equal(far.at[listed], i);
            assert_int_equal(far.stack[listed++], distances[at + i]);
        }
        assert_int_equal(listed, far.n);
    }
    free(far.at);
    free(far.stack);
    free(distances);
    assert_int_equal(cold_one, cold_many);
    assert_memory_equal(&h[0], &h[3], 3 * sizeof *h);
    assert_int_equal(stackdist_touch_many(many, lines, N, NULL, NULL, NULL, &cold_many, NULL), 0);
    assert_int_equal(cold_one, cold_many);
    stackdist_free(one);
    stackdist_free(many);
    free(lines);
    free(h);
}

/* That stackdist_oldest_first tells the order. */
static void check_order(struct stackdist *sd)
{
    uint64_t n = stackdist_lines(sd);
    uint64_t *order = malloc(n * sizeof *order);

    stackdist_oldest_first(sd, order);
    /* The oldest is the deepest; touched, it becomes the latest, and the next one is the deepest. */
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(touch_one(sd, order[i], NULL), n - 1);
    free(order);
}

/*
 * Streams of near and of scattered lines take turns: many touches at once, against one at a time (for which
 * nothing is prefetched).
 */
static void near_and_scattered(stackdist_touch_fn *touch)
{
    enum { N = 400000 };
    uint64_t *lines = malloc(N * sizeof *lines);
    struct hist *h = calloc(6, sizeof *h);
    struct stackdist *one = new_stackdist(), *many = new_stackdist();
    const struct stackdist_sums sums = {.stack = &h[3], .reuse = &h[4], .first = &h[5]};
    unsigned changes = 0;

    many->touch = touch;
    random_state = 3;
    for (int pass = 0; pass < 3; pass++) {
        memset(h, 0, 6 * sizeof *h);
        stackdist_reset(one);
        stackdist_reset(many);
        uint64_t cold = 0;
        for (uint64_t i = 0; i < N; i++) {
            /* The footprint grows meanwhile, in both kinds of stream. */
            uint64_t near = random_next() % 200, far = random_next() % (i / 4 + 1);
            lines[i] = i / 5000 % 3 == 0 || (pass == 1 && i < N / 2) ? near : far * 11;
            uint64_t stack = touch_one(one, lines[i], &h[1]);
            if (stack == STACKDIST_COLD)
                hist_add(&h[2], cold++, 1);
            else
                hist_add(&h[0], stack, 1);
        }
        for (size_t at = 0, n; at < N; at += n) {
            bool before = many->scattered;
            n = random_next() % 2000;
            n = n < N - at ? n : N - at;
            assert_int_equal(touch(many, lines + at, n, &sums), 0);
            changes += many->scattered != before;
        }
        assert_memory_equal(&h[0], &h[3], 3 * sizeof *h);
        assert_false(one->scattered);
        uint64_t n = stackdist_lines(one);
        assert_int_equal(n, stackdist_lines(many));
        memset(h, 0, 2 * sizeof *h);
        stackdist_ages(one, &h[0]);
        stackdist_ages(many, &h[1]);
        assert_memory_equal(&h[0], &h[1], sizeof *h);
        check_order(one);
        check_order(many);
    }
    assert_true(changes >= 100);
    stackdist_free(one);
    stackdist_free(many);
    free(lines);
    free(h);
}

static void near_and_scattered_without_avx2(void **state)
{
    (void)state;
    near_and_scattered(stackdist_touch_any);
}

static void near_and_scattered_avx2(void **state)
{
    (void)state;
    if (!stackdist_has_avx2()) {
        not_tested_here(__func__, "the processor has no AVX2");
        return;
    }
    near_and_scattered(stackdist_touch_avx2);
}

/* Round and round over K lines: every touch but the first K has s = d = K - 1. */
static void cyclic_scan(void **state)
{
    static const uint64_t sizes[] = {1, 2, 64, 65, 512, 513, 1000, 100000};
    struct stackdist *sd = new_stackdist();
    struct hist *reuse = calloc(1, sizeof *reuse);

    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        memset(reuse, 0, sizeof *reuse);
        stackdist_reset(sd);
        for (uint64_t i = 0; i < 5 * sizes[k]; i++) {
            uint64_t want = i < sizes[k] ? STACKDIST_COLD : sizes[k] - 1;
            assert_int_equal(touch_one(sd, i % sizes[k], reuse), want);
        }
        assert_int_equal(reuse->total, 4 * sizes[k]);
        assert_int_equal(reuse->count[hist_bin(sizes[k] - 1)], 4 * sizes[k]);
    }
    stackdist_free(sd);
    free(reuse);
}

static void memory_per_line(void **state)
{
    struct stackdist *sd = new_stackdist();

    (void)state;
    for (uint64_t i = 0; i < 1000000; i++) {
        assert_int_equal(touch_one(sd, i * 7, NULL), STACKDIST_COLD);
        if (i >= 10000 && i % 1000 == 0)
            assert_true(stackdist_memory_bytes(sd) < 65536 + 42 * i);
    }
    /* Nothing was lost when the table grew. */
    for (uint64_t i = 0; i < 1000000; i++)
        assert_int_equal(touch_one(sd, i * 7, NULL), 999999);
    stackdist_free(sd);
}

/* stackdist_repeat, between other touches, against the same touches one by one. */
static void repeats_are_touches(void **state)
{
    (void)state;
    static struct hist stack[2], reuse[2], age[2];
    struct stackdist *sd[2] = {new_stackdist(), new_stackdist()};
    random_state = 11;
    for (int round = 0; round < 3000; round++) {
        uint64_t lines[40];
        size_t n = 2 + random_next() % 38;
        for (size_t i = 0; i < n; i++)
            lines[i] = random_next() % (random_next() % 4 == 0 ? 5000 : 50);
        const struct stackdist_repeat r = {.lines = lines[n - 1] == lines[n - 2] ? 1 : 1 + random_next() % 2,
                                           .times = random_next() % 70};
        for (int i = 0; i < 2; i++)
            assert_int_equal(stackdist_touch_many(sd[i], lines, n, &stack[i], &reuse[i], NULL, NULL, NULL),
                             0);
        stackdist_repeat(sd[0], lines + n - r.lines, &r, &stack[0], &reuse[0]);
        for (uint64_t k = 0; k < r.times; k++)
            assert_int_equal(stackdist_touch_many(sd[1], lines + n - r.lines, r.lines, &stack[1], &reuse[1],
                                                  NULL, NULL, NULL),
                             0);
    }
    assert_int_equal(stackdist_references(sd[0]), stackdist_references(sd[1]));
    assert_memory_equal(&stack[0], &stack[1], sizeof(stack[0]));
    assert_memory_equal(&reuse[0], &reuse[1], sizeof(reuse[0]));
    for (int i = 0; i < 2; i++)
        stackdist_ages(sd[i], &age[i]);
    assert_memory_equal(&age[0], &age[1], sizeof(age[0]));
    for (int i = 0; i < 2; i++)
        stackdist_free(sd[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_twin),
        cmocka_unit_test(agrees_with_twin_avx2),
        cmocka_unit_test(many_is_many_single_touches),
        cmocka_unit_test(near_and_scattered_without_avx2),
        cmocka_unit_test(near_and_scattered_avx2),
        cmocka_unit_test(repeats_are_touches),
        cmocka_unit_test(cyclic_scan),
        cmocka_unit_test(memory_per_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
