/* SPDX-License-Identifier: Apache-2.0 */
/* Stack distances of whole traces: against a brute-force twin, against closed forms, and their sampled
 * variant. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/random.h"
#include "model/curve.h"
#include "sim/stackset.h"

#define REFERENCES 20000u
#define THREADS 3u

struct reference {
    uint32_t thread, space;
    uint64_t address;
    uint16_t size;
};

static struct error err;

/* The slowest way: a list in order of recency. */
struct twin {
    uint64_t line[REFERENCES * 4];
    size_t lines;
    struct hist hist;
    uint64_t cold, touches;
};

static void twin_touch(struct twin *t, uint64_t line)
{
    size_t depth = 0;
    while (depth < t->lines && t->line[depth] != line)
        depth++;
    t->touches++;
    if (depth == t->lines) {
        t->cold++;
        t->lines++;
        assert_true(t->lines <= sizeof(t->line) / sizeof(t->line[0]));
    } else {
        hist_add(&t->hist, depth, 1);
    }
    memmove(t->line + 1, t->line, depth * sizeof(t->line[0]));
    t->line[0] = line;
}

static void twin_run(struct twin *t, const struct reference *r, size_t n, unsigned line_bytes, int thread)
{
    memset(t, 0, sizeof(*t));
    for (size_t i = 0; i < n; i++) {
        if (thread >= 0 && r[i].thread != (uint32_t)thread)
            continue;
        for (uint64_t line = r[i].address / line_bytes; line <= (r[i].address + r[i].size - 1) / line_bytes;
             line++)
            twin_touch(t, line | (uint64_t)r[i].space << 61); /* not how stackset does it */
    }
}

static void make_up(struct reference *r, size_t n, struct random_state *random)
{
    struct reference now = {0};
    for (size_t i = 0; i < n; i++) {
        if (random_below(random, 50) == 0)
            now = (struct reference){.thread = (uint32_t)random_below(random, THREADS),
                                     .space = (uint32_t)random_below(random, 2)};
        /* Skewed, so that there are short and long distances. */
        uint64_t range = UINT64_C(1) << (6 + random_below(random, 9));
        now.address = random_below(random, range) + (random_below(random, 2) << 40);
        now.size = (uint16_t)(1 + random_below(random, random_below(random, 100) == 0 ? 2000 : 8));
        r[i] = now;
    }
}

/* Hands them over in runs of one thread and space. */
static void add_all(struct stackset *set, const struct reference *r, size_t n)
{
    static uint64_t address[STACKSET_BATCH];
    static uint16_t size[STACKSET_BATCH];
    for (size_t i = 0; i < n;) {
        size_t used = 0, first = i;
        for (;
             i < n && used < STACKSET_BATCH && r[i].thread == r[first].thread && r[i].space == r[first].space;
             i++) {
            address[used] = r[i].address;
            size[used++] = r[i].size;
        }
        assert_int_equal(stackset_add(set, r[first].thread, r[first].space, address, size, used, &err), 0);
    }
    assert_int_equal(stackset_wait(set, &err), 0);
}

static void brute_force(void **state)
{
    (void)state;
    static const unsigned line_bytes[] = {8, 64, 4096};
    struct reference *r = malloc(REFERENCES * sizeof(*r));
    struct twin *twin = malloc(sizeof(*twin));
    struct random_state random;
    random_seed(&random, 4);
    assert_true(r != NULL && twin != NULL);
    for (int round = 0; round < 6; round++) {
        size_t n = 1 + random_below(&random, REFERENCES / 4);
        make_up(r, n, &random);
        struct stackset_options options = {.line_bytes = line_bytes,
                                           .nlines = 3,
                                           .separate = round % 2,
                                           .rate = 1,
                                           .workers = 1 + (unsigned)round};
        struct stackset *set = stackset_new(&options, &err);
        assert_non_null(set);
        add_all(set, r, n);
        uint64_t touches = 0;
        for (size_t i = 0; i < stackset_results(set); i++) {
            struct stackset_result result = stackset_result(set, i);
            twin_run(twin, r, n, result.line_bytes, options.separate ? (int)result.thread : -1);
            assert_int_equal(result.line_bytes, line_bytes[i % 3]);
            assert_int_equal(result.touches, twin->touches);
            assert_int_equal(result.sampled, twin->touches);
            assert_int_equal(result.cold, twin->cold);
            assert_int_equal(result.lines, twin->lines);
            assert_memory_equal(result.stack, &twin->hist, sizeof(twin->hist));
            assert_null(result.group_stack[0]);
            touches += i % 3 == 1 ? result.touches : 0;
        }
        twin_run(twin, r, n, 64, -1);
        assert_int_equal(touches, twin->touches); /* no thread was forgotten */
        stackset_free(set);
    }
    free(r);
    free(twin);
}

/* One worker takes all as it comes; more take stretches, of few lines and of many. */
static void stretches(void **state)
{
    (void)state;
    static const unsigned line_bytes[] = {64, 256};
    static uint64_t address[STACKSET_BATCH];
    static uint16_t size[STACKSET_BATCH];
    struct stackset *set[4];
    struct random_state random;
    random_seed(&random, 9);
    for (unsigned i = 0; i < 4; i++) {
        struct stackset_options options = {
            .line_bytes = line_bytes, .nlines = 1 + i % 2, .rate = 1, .workers = i < 2 ? 1 : 2 + i};
        set[i] = stackset_new(&options, &err);
        assert_non_null(set[i]);
    }
    for (unsigned batch = 0; batch < 600; batch++) {
        size_t n = 1 + random_below(&random, 3000);
        /* Some hundred batches each: all near; near and far; all far. */
        unsigned far = batch / 150 % 3 * 50;
        for (size_t i = 0; i < n; i++) {
            uint64_t lines = random_below(&random, 100) < far ? 200000 : 300;
            address[i] = random_below(&random, lines) * 64 + random_below(&random, 64);
            size[i] = (uint16_t)(1 + random_below(&random, 16));
        }
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(stackset_add(set[i], 0, batch / 7 % 2, address, size, n, &err), 0);
            if (batch % 200 == 77)
                assert_int_equal(stackset_wait(set[i], &err), 0);
        }
    }
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(stackset_wait(set[i], &err), 0);
    for (unsigned i = 2; i < 4; i++)
        for (size_t k = 0; k < stackset_results(set[i]); k++) {
            struct stackset_result a = stackset_result(set[i - 2], k), b = stackset_result(set[i], k);
            assert_int_equal(a.touches, b.touches);
            assert_int_equal(a.sampled, b.sampled);
            assert_int_equal(a.cold, b.cold);
            assert_int_equal(a.lines, b.lines);
            assert_memory_equal(a.stack, b.stack, sizeof(*a.stack));
        }
    for (unsigned i = 0; i < 4; i++)
        stackset_free(set[i]);
}

static struct stackset *one_stack(double rate, unsigned workers)
{
    static const unsigned line = 64;
    struct stackset_options options = {.line_bytes = &line, .nlines = 1, .rate = rate, .workers = workers};
    struct stackset *set = stackset_new(&options, &err);
    assert_non_null(set);
    return set;
}

/* K lines over and over: every distance is K - 1. */
static void cyclic(void **state)
{
    (void)state;
    struct stackset *set = one_stack(1, 2);
    uint64_t address[1000];
    uint16_t size[1000];
    for (unsigned i = 0; i < 1000; i++) {
        address[i] = i * 64;
        size[i] = 64;
    }
    for (unsigned round = 0; round < 50; round++)
        assert_int_equal(stackset_add(set, 0, 0, address, size, 1000, &err), 0);
    assert_int_equal(stackset_wait(set, &err), 0);
    struct stackset_result result = stackset_result(set, 0);
    assert_int_equal(result.stack->count[hist_bin(999)], 49000);
    assert_int_equal(result.stack->total, 49000);
    assert_int_equal(result.cold, 1000);
    stackset_free(set);
}

/* All of K lines once, then uniform over them: of that a cache of L lines misses 1 - L/K. */
#define LINES 80000u
#define ROUNDS 150u

static struct stackset *uniform(double rate, uint64_t seed)
{
    struct stackset *set = one_stack(rate, 2);
    struct random_state random;
    uint64_t address[8000];
    uint16_t size[8000];
    random_seed(&random, seed);
    for (unsigned i = 0; i < 8000; i++)
        size[i] = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 8000; i++)
            address[i] = (round < LINES / 8000 ? round * 8000 + i : random_below(&random, LINES)) * 64;
        assert_int_equal(stackset_add(set, 0, 0, address, size, 8000, &err), 0);
    }
    assert_int_equal(stackset_wait(set, &err), 0);
    return set;
}

static void uniform_exact(void **state)
{
    (void)state;
    struct stackset *set = uniform(1, 1);
    struct stackset_result result = stackset_result(set, 0);
    double touches = 8000.0 * ROUNDS;
    assert_int_equal(result.touches, 8000 * ROUNDS);
    for (double share = 0.1; share < 1; share += 0.2) {
        double expected = 1 - share, warm = touches - (double)result.cold;
        double found = hist_at_least(result.stack, share * LINES) / warm;
        assert_true(fabs(found - expected) < 4 * 0.5 / sqrt(warm));
    }
    /* 40 bytes a line touched, and what does not grow. */
    assert_true(stackset_memory_bytes(set) < 40.0 * LINES + 8e6);
    stackset_free(set);
}

static void sampled(void **state)
{
    (void)state;
    unsigned inside = 0, points = 0;
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct stackset *set = uniform(0.05, 10 + seed), *exact = uniform(1, 10 + seed);
        struct stackset_result s = stackset_result(set, 0), e = stackset_result(exact, 0);
        assert_int_equal(s.touches, e.touches);
        /* The sample is 5% of the lines, and its groups are all of the sample. */
        assert_true(fabs((double)s.lines - 0.05 * (double)e.lines) < 5 * sqrt(0.05 * LINES));
        struct curve_sample sample = {.rate = 0.05, .touches = s.touches, .stack = s.stack, .cold = s.cold};
        uint64_t cold = 0, total = 0;
        for (unsigned g = 0; g < STACKSET_GROUPS; g++) {
            sample.group_stack[g] = s.group_stack[g];
            sample.group_cold[g] = s.group_cold[g];
            cold += s.group_cold[g];
            total += s.group_stack[g]->total;
            assert_true(s.group_cold[g] > s.lines / STACKSET_GROUPS / 2); /* evenly dealt */
        }
        assert_int_equal(cold, s.cold);
        assert_int_equal(total, s.stack->total - s.stack->count[0]);
        struct curve_point estimate[8], truth[8];
        for (unsigned i = 0; i < 8; i++)
            estimate[i].size_bytes = truth[i].size_bytes = 64.0 * LINES * (i + 1) / 9;
        assert_int_equal(curve_sampled(&sample, 64, estimate, 8, &err), 0);
        assert_int_equal(curve_exact(e.stack, e.cold, 64, truth, 8, &err), 0);
        for (unsigned i = 0; i < 8; i++, points++) {
            assert_true(fabs(estimate[i].miss_ratio - truth[i].miss_ratio) < 0.04);
            assert_true(estimate[i].low <= estimate[i].miss_ratio &&
                        estimate[i].miss_ratio <= estimate[i].high);
            inside += estimate[i].low <= truth[i].miss_ratio && truth[i].miss_ratio <= estimate[i].high;
        }
        stackset_free(set);
        stackset_free(exact);
    }
    assert_true(inside * 4 >= points * 3); /* a 95% band, 32 points that hang together */
}

/* Walks over `lines` lines each, eight times in turn, at 1/16: a cache of all lines of a walk misses 1 in 8.
 */
static void sampled_walk(unsigned walks, unsigned lines, uint64_t *at, unsigned *inside)
{
    struct stackset *set = one_stack(1. / 16, 2);
    uint64_t address[1024];
    uint16_t size[1024];
    for (unsigned i = 0; i < 1024; i++)
        size[i] = 1;
    for (unsigned w = 0; w < walks; w++, *at += lines)
        for (unsigned i = 0; i < 8 * lines; i += 1024) {
            for (unsigned k = 0; k < 1024; k++)
                address[k] = (*at + (i + k) % lines) * 64;
            assert_int_equal(stackset_add(set, 0, 0, address, size, 1024, &err), 0);
        }
    assert_int_equal(stackset_wait(set, &err), 0);
    struct stackset_result s = stackset_result(set, 0);
    struct curve_sample sample = {.rate = 1. / 16, .touches = s.touches, .stack = s.stack, .cold = s.cold};
    memcpy(sample.group_stack, s.group_stack, sizeof sample.group_stack);
    memcpy(sample.group_cold, s.group_cold, sizeof sample.group_cold);
    struct curve_point points[] = {{.size_bytes = 64. * lines - 64}, {.size_bytes = 64. * lines}};
    const double exact[] = {1, 1. / 8};
    assert_int_equal(curve_sampled(&sample, 64, points, 2, &err), 0);
    for (unsigned i = 0; i < 2; i++)
        *inside += points[i].low <= exact[i] && exact[i] <= points[i].high;
    stackset_free(set);
}

/* Whole walks become hits at one size, where the number of their lines in the sample decides. */
static void sampled_walks(void **state)
{
    (void)state;
    unsigned many = 0, one = 0;
    uint64_t at = 1 << 20;
    for (unsigned i = 0; i < 20; i++) {
        sampled_walk(64, 1024, &at, &many); /* each with its own number */
        sampled_walk(1, 16384, &at, &one);
    }
    assert_in_range(many, 36, 40);
    assert_in_range(one, 36, 40);
}

/* The example of sampled.c, and sizes too small for the sample. */
static void sample_by_hand(void **state)
{
    (void)state;
    struct hist all = {0}, group = {0}, empty = {0};
    hist_add(&all, 3, 25);
    hist_add(&all, 16, 10);
    hist_add(&group, 0, 4);
    hist_add(&group, 16, 1);
    struct curve_sample sample = {.rate = 0.5, .touches = 100, .stack = &all, .cold = 5};
    for (unsigned g = 0; g < CURVE_SAMPLE_GROUPS; g++)
        sample.group_stack[g] = g < 4 ? &group : &empty;
    struct curve_point points[] = {{.size_bytes = 32 * 64}, {.size_bytes = 15 * 64}};
    assert_int_equal(curve_sampled(&sample, 64, points, 2, &err), 0);
    assert_true(fabs(points[0].miss_ratio - 0.3) < 1e-12);
    /*
     * Four groups miss 1 in 6.25, four none: sd = 0.0855, half the interval 2.365 * sd / sqrt(8) *
     * sqrt(1 - rate) = 0.0506. The cache is one of (sqrt(16) +- 3 * sqrt(0.5) / 2)^2 lines to the sample:
     * with 8.6 it misses the same 30%, with 25.6 10%, in which the groups do not differ.
     */
    assert_true(fabs(points[0].high - 0.3506) < 1e-4 && fabs(points[0].low - 0.1) < 1e-4);
    assert_true(isnan(points[1].miss_ratio));
}

static void wrong_options(void **state)
{
    (void)state;
    static const unsigned lines[] = {64, 48, 4, 8192};
    struct stackset_options options = {.line_bytes = lines, .nlines = 1, .rate = 1, .workers = 1};
    for (unsigned i = 1; i < 4; i++) {
        options.line_bytes = &lines[i];
        assert_null(stackset_new(&options, &err));
    }
    options.line_bytes = lines;
    options.rate = 0;
    assert_null(stackset_new(&options, &err));
    options.rate = 1.5;
    assert_null(stackset_new(&options, &err));
    options.rate = 1;
    struct stackset *set = stackset_new(&options, &err);
    assert_non_null(set);
    assert_int_equal(stackset_add(set, 0, 0, NULL, NULL, 0, &err), -EINVAL);
    assert_int_equal(stackset_add(set, 0, 0, NULL, NULL, STACKSET_BATCH + 1, &err), -EINVAL);
    stackset_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brute_force),   cmocka_unit_test(cyclic),        cmocka_unit_test(uniform_exact),
        cmocka_unit_test(stretches),     cmocka_unit_test(sampled),       cmocka_unit_test(sample_by_hand),
        cmocka_unit_test(sampled_walks), cmocka_unit_test(wrong_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
