/* SPDX-License-Identifier: Apache-2.0 */
/* The curve models against brute-force twins on small random traces, and against closed forms. */
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
#include "model/curve.h"
#include "packed_help.h"

#define LINE 64u

/* Distances of a trace, found by looking back from each reference. */
struct trace {
    struct curve_burst b;
    struct hist stack, reuse, first; /* of b */
    uint64_t *line, n;
};

static void add_references(struct trace *t)
{
    struct hist age = {.total = 0};
    uint64_t *next = malloc(t->n * sizeof *next); /* touch of the same line; n if there is none */
    for (uint64_t i = 0; i < t->n; i++) {
        next[i] = i + 1;
        while (next[i] < t->n && t->line[next[i]] != t->line[i])
            next[i]++;
    }
    for (uint64_t j = 0; j < t->n; j++) {
        uint64_t distinct = 0, i = j;
        int found = 0;
        while (i > 0 && !found) {
            i--;
            found = next[i] == j;
            distinct += next[i] > j; /* the last touch of its line before j */
        }
        if (found) {
            hist_add(&t->stack, distinct, 1);
            hist_add(&t->reuse, j - i - 1, 1);
        } else {
            hist_add(&t->first, distinct, 1);
        }
        if (next[j] == t->n)
            hist_add(&age, t->n - 1 - j, 1);
    }
    free(next);
    assert_int_equal(packed_hist_set(&t->b.stack, &t->stack), 0);
    assert_int_equal(packed_hist_set(&t->b.reuse, &t->reuse), 0);
    assert_int_equal(packed_hist_set(&t->b.first, &t->first), 0);
    assert_int_equal(packed_hist_set(&t->b.age, &age), 0);
    t->b.references = t->n;
    t->b.weight = 1;
}

static struct trace *trace_new(uint64_t n, uint64_t lines, int cyclic, uint64_t seed)
{
    struct trace *t = calloc(1, sizeof *t);
    struct random_state r;

    random_seed(&r, seed);
    t->n = n;
    t->line = malloc(n * sizeof *t->line);
    for (uint64_t i = 0; i < n; i++)
        t->line[i] = cyclic ? i % lines : random_below(&r, lines);
    add_references(t);
    return t;
}

static void trace_free(struct trace *t)
{
    curve_burst_clear(&t->b);
    free(t->line);
    free(t);
}

static struct curve_point at_lines(double lines)
{
    return (struct curve_point){.size_bytes = lines * LINE};
}

static void near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance))
        fail_msg("%.12g is not within %g of %.12g", a, tolerance, b);
}

/* Misses of an LRU cache that is really kept. */
static double lru_miss_ratio(const struct trace *t, uint64_t lines)
{
    uint64_t *cache = malloc((lines + 1) * sizeof *cache), held = 0, misses = 0;

    for (uint64_t j = 0; j < t->n; j++) {
        uint64_t i = 0;
        while (i < held && cache[i] != t->line[j])
            i++;
        if (i == held) {
            misses++;
            held += held < lines;
            i = held - 1;
        }
        memmove(cache + 1, cache, i * sizeof *cache);
        cache[0] = t->line[j];
    }
    free(cache);
    return (double)misses / (double)t->n;
}

static void cyclic_scan(void **state)
{
    static const uint64_t lines[] = {1, 2, 3, 17, 250};

    (void)state;
    for (size_t k = 0; k < 5; k++) {
        uint64_t K = lines[k];
        struct trace *t = trace_new(3 * K, K, 1, 0);
        struct curve_point p[3] = {at_lines(K > 1 ? (double)K - 1 : 1), at_lines((double)K), at_lines(1e9)};
        double below = K > 1 ? 1 : 1.0 / 3;
        assert_int_equal(curve_exact(&t->stack, K, LINE, p, 3, NULL), 0);
        assert_true(p[0].miss_ratio == below && p[1].miss_ratio == 1.0 / 3 && p[2].miss_ratio == 1.0 / 3);
        memset(&p[0].miss_ratio, 0, 3 * sizeof(double));
        assert_int_equal(curve_statstack(&t->reuse, K, LINE, p, 3, NULL), 0);
        assert_true(p[0].miss_ratio == below && p[1].miss_ratio == 1.0 / 3 && p[2].miss_ratio == 1.0 / 3);
        assert_true(p[0].low == below && p[0].high == below);
        trace_free(t);
    }
}

static void exact_is_the_cache(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 6; seed++) {
        struct trace *t = trace_new(1500, 10 * seed * seed, 0, seed);
        for (uint64_t lines = 1; lines < 300; lines += seed) {
            struct curve_point p = {.size_bytes = (double)(lines * LINE + 17)}; /* rounded down */
            assert_int_equal(curve_exact(&t->stack, t->b.first.total, LINE, &p, 1, NULL), 0);
            near(p.miss_ratio, lru_miss_ratio(t, lines), 1e-12);
        }
        trace_free(t);
    }
}

static void statstack_is_its_definition(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 6; seed++) {
        struct trace *t =
            trace_new(1000, 7 * seed * seed, 0, seed); /* all distances have bins of their own */
        uint64_t dangling = t->b.first.total;
        struct hist *expected = calloc(1, sizeof *expected);
        curve_statstack_window(&t->reuse, dangling, expected);
        for (uint64_t lines = 1; lines < 220; lines += 3) {
            uint64_t misses = dangling, sum = 0; /* sum: N * ES(d) */
            for (uint64_t d = 0; d < t->n; d++) {
                uint64_t reach = dangling;
                for (uint64_t x = d; x < t->n; x++)
                    reach += t->reuse.count[x];
                if (d > 0)
                    sum += reach;
                if (sum >= lines * t->n)
                    misses += t->reuse.count[d];
            }
            struct curve_point p = at_lines((double)lines);
            assert_int_equal(curve_statstack(&t->reuse, dangling, LINE, &p, 1, NULL), 0);
            near(p.miss_ratio, (double)misses / (double)t->n, 1e-12);
            assert_int_equal(curve_exact(expected, dangling, LINE, &p, 1, NULL), 0);
            near(p.miss_ratio, (double)misses / (double)t->n, 1e-12);
        }
        trace_free(t);
        free(expected);
    }
}

/* Two windows, each with a distribution of its own: cyclic scans of 10 and of 100 lines. Taken together, the
 * long distances of the one would be diluted by the short ones of the other. */
static void statstack_windows(void **state)
{
    struct hist *expected = calloc(1, sizeof *expected);
    struct curve_point p[3] = {at_lines(9), at_lines(99), at_lines(100)};

    (void)state;
    for (uint64_t lines = 10; lines <= 100; lines += 90) {
        struct trace *t = trace_new(10 * lines, lines, 1, 0);
        curve_statstack_window(&t->reuse, t->b.first.total, expected);
        trace_free(t);
    }
    assert_int_equal(curve_exact(expected, 110, LINE, p, 3, NULL), 0);
    near(p[0].miss_ratio, 1, 0);
    near(p[1].miss_ratio, (900.0 + 110) / 1100, 1e-12);
    near(p[2].miss_ratio, 110.0 / 1100, 1e-12);
    free(expected);
}

/* Wide bins: all distances alike, in the middle of nowhere; only the bin's width may blur the step. */
static void statstack_wide_bins(void **state)
{
    struct hist *h = calloc(1, sizeof *h);
    struct curve_point p[2] = {at_lines(990000), at_lines(1010000)};

    (void)state;
    hist_add(h, 1000000, 1000);
    assert_int_equal(curve_statstack(h, 0, LINE, p, 2, NULL), 0);
    near(p[0].miss_ratio, 1, 0);
    near(p[1].miss_ratio, 0, 0);
    struct hist *expected = calloc(1, sizeof *expected);
    curve_statstack_window(h, 0, expected);
    assert_int_equal(curve_exact(expected, 0, LINE, p, 2, NULL), 0);
    near(p[0].miss_ratio, 1, 0);
    near(p[1].miss_ratio, 0, 0);
    free(expected);
    free(h);
}

/* Largest root of StatCache's equation, by trying from above and halving. */
static double statcache_twin(const struct hist *reuse, double dangling, double lines)
{
    double total = (double)reuse->total + dangling, low = 0, high = 1;

    for (int step = 0; step < 60; step++) {
        double ratio = (low + high) / 2, misses = dangling;
        for (uint32_t d = 0; d < 1024; d++)
            misses += (double)reuse->count[d] * (1 - pow(1 - 1 / lines, ratio * d));
        if (misses > ratio * total)
            low = ratio;
        else
            high = ratio;
    }
    return high;
}

static void statcache_solves_its_equation(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 6; seed++) {
        struct trace *t = trace_new(1000, 7 * seed * seed, 0, seed);
        for (double lines = 2; lines < 300; lines *= 1.7) {
            struct curve_point p = at_lines(floor(lines));
            assert_int_equal(curve_statcache(&t->reuse, t->b.first.total, LINE, &p, 1, NULL), 0);
            near(p.miss_ratio, statcache_twin(&t->reuse, (double)t->b.first.total, floor(lines)), 1e-9);
            assert_int_equal(curve_statcache(&t->reuse, 0, LINE, &p, 1, NULL), 0);
            near(p.miss_ratio, statcache_twin(&t->reuse, 0, floor(lines)), 1e-6);
        }
        trace_free(t);
    }
    /* The example at the head of statcache.c. */
    struct hist *h = calloc(1, sizeof *h);
    struct curve_point p = at_lines(1);
    hist_add(h, 0, 2);
    hist_add(h, 1, 2);
    assert_int_equal(curve_statcache(h, 0, LINE, &p, 1, NULL), 0);
    near(p.miss_ratio, 0.5, 1e-12);
    free(h);
}

/*
 * What StatCache has to answer for random touches of K lines, of which a share is cold: reuse distances are
 * geometric, so its sum has a closed form; the largest root, by iteration from above. Without cold ones this
 * is 1 - L/K. With L near K a few make a great difference: at L = K the root is the square root of their
 * share.
 */
static double statcache_of_random_touches(double K, double lines, double cold)
{
    double ratio = 1;

    for (int step = 0; step < 20000; step++) {
        double stays = pow(1 - 1 / lines, ratio); /* over one reference */
        ratio = cold + (1 - cold) * (1 - 1 / K / (1 - (1 - 1 / K) * stays));
    }
    return ratio;
}

/* Random touches of K lines: L of them are in an LRU or a random cache, so 1 - L/K miss. */
static void random_over_k_lines(void **state)
{
    enum { K = 40, B = 60 };
    struct curve_burst *bursts = calloc(B, sizeof *bursts);
    struct trace *t = trace_new(3000, K, 0, 9);

    (void)state;
    for (size_t b = 0; b < B; b++) {
        struct trace *short_one = trace_new(200, K, 0, 100 + b);
        bursts[b] = short_one->b;
        short_one->b = (struct curve_burst){.weight = 0};
        bursts[b].weight = 1 + (double)(b % 3);
        trace_free(short_one);
    }
    for (unsigned lines = 2; lines <= K; lines += lines < K - 6 ? 6 : 1) {
        struct curve_point p = at_lines(lines);
        double want = 1 - (double)lines / K;
        assert_int_equal(curve_exact(&t->stack, K, LINE, &p, 1, NULL), 0);
        near(p.miss_ratio, want, 0.04);
        assert_int_equal(curve_statstack(&t->reuse, K, LINE, &p, 1, NULL), 0);
        near(p.miss_ratio, want, 0.04);
        assert_int_equal(curve_statcache(&t->reuse, K, LINE, &p, 1, NULL), 0);
        near(p.miss_ratio, statcache_of_random_touches(K, lines, (double)K / 3000), 0.03);
        assert_int_equal(curve_bursts(bursts, B, LINE, 1, &p, 1, NULL), 0);
        near(p.miss_ratio, want, 0.04);
        assert_true(p.low <= want && want <= p.high);
        assert_int_equal(curve_bursts_statcache(bursts, B, LINE, &p, 1, NULL), 0);
        /* Near K what lies beyond the bursts decides, and there may be bounds only. */
        if (4 * lines < 3 * K || !isnan(p.miss_ratio)) {
            near(p.miss_ratio, want, 0.06);
            assert_true(p.low <= p.miss_ratio && p.miss_ratio <= p.high);
        }
        assert_true(p.low - 0.06 <= want && want <= p.high + 0.06);
    }
    trace_free(t);
    free_bursts(bursts, B);
}

static void bursts_are_their_definition(void **state)
{
    enum { B = 5 };
    struct curve_burst *bursts = calloc(B, sizeof *bursts);
    double total = 0;

    (void)state;
    for (size_t b = 0; b < B; b++) {
        struct trace *t = trace_new(300 + 50 * b, 60 + 30 * b, 0, b);
        bursts[b] = t->b;
        t->b = (struct curve_burst){.weight = 0};
        total += bursts[b].weight = (double)b * 1.5; /* one has weight 0 */
        trace_free(t);
    }
    double survival = 1;
    for (uint64_t lines = 1; lines < 200; lines++) {
        double low = 0, high = 0, events = 0, risk = 0, at_risk = 0;
        for (size_t b = 0; b < B; b++) {
            double share = bursts[b].weight / (double)bursts[b].references, count = 0;
            for (uint64_t s = lines; s < 200; s++) { /* no burst touches as many lines */
                low += share *
                       (double)(packed_count(&bursts[b].stack, (uint32_t)(s)) +
                                packed_count(&bursts[b].first, (uint32_t)(s))) /
                       total;
                high += share * (double)packed_count(&bursts[b].stack, (uint32_t)(s)) / total;
                count += (double)(packed_count(&bursts[b].stack, (uint32_t)(s)) +
                                  packed_count(&bursts[b].first, (uint32_t)(s)));
            }
            high += share * (double)bursts[b].first.total / total;
            events += share * (double)packed_count(&bursts[b].stack, (uint32_t)(lines - 1));
            count += (double)packed_count(&bursts[b].stack, (uint32_t)(lines - 1));
            risk += share * count;
            at_risk += b > 0 ? count : 0;
        }
        if (risk > 0)
            survival *= 1 - events / risk;
        struct curve_point p = at_lines((double)lines), again = p;
        assert_int_equal(curve_bursts(bursts, B, LINE, 7, &p, 1, NULL), 0);
        if (at_risk < 50)
            assert_true(isnan(p.miss_ratio));
        else
            near(p.miss_ratio, survival, 1e-9);
        assert_true(0 <= p.low && p.low <= low + 1e-12 && high - 1e-12 <= p.high && p.high <= 1);
        assert_true(isnan(p.miss_ratio) || (low <= p.miss_ratio + 1e-12 && p.miss_ratio <= high + 1e-12));
        assert_int_equal(curve_bursts(bursts, B, LINE, 7, &again, 1, NULL), 0);
        assert_memory_equal(&p, &again, sizeof p);
        /* A burst alone has no noise: the bounds are the hard ones. */
        struct curve_burst one = bursts[2];
        double known = packed_hist_at_least(&one.stack, (double)lines), n = (double)one.references;
        assert_int_equal(curve_bursts(&one, 1, LINE, 7, &p, 1, NULL), 0);
        near(p.low, (known + packed_hist_at_least(&one.first, (double)lines)) / n, 1e-12);
        near(p.high, (known + (double)one.first.total) / n, 1e-12);
    }
    free_bursts(bursts, B);
}

static void many_sizes_in_any_order(void **state)
{
    struct trace *t = trace_new(3000, 2000, 0, 3); /* distances beyond the exact bins */
    struct curve_point p[40], q;

    (void)state;
    for (size_t i = 0; i < 40; i++)
        p[i] = at_lines((double)(1 + i * 1237 % 2503));
    p[39] = p[0]; /* twice the same */
    assert_int_equal(curve_bursts(&t->b, 1, LINE, 1, p, 40, NULL), 0);
    for (size_t i = 0; i < 40; i++) {
        q.size_bytes = p[i].size_bytes;
        double known = packed_hist_at_least(&t->b.stack, floor(q.size_bytes / LINE));
        assert_int_equal(curve_bursts(&t->b, 1, LINE, 1, &q, 1, NULL), 0);
        near(p[i].low, q.low, 0);
        near(p[i].high, q.high, 0);
        near(p[i].high, (known + (double)t->b.first.total) / 3000, 1e-12);
    }
    trace_free(t);
}

static void refuses_and_leaves_untouched(void **state)
{
    struct curve_burst *b = calloc(2, sizeof *b);
    struct curve_point p[2] = {{64, 5, 5, 5}, {0, 5, 5, 5}};
    struct error err;

    (void)state;
    struct hist none = {.total = 0};
    packed_add(&b->first, 0, 1);
    b->references = 1;
    b->weight = 1;
    assert_int_equal(curve_exact(&none, 1, LINE, p, 2, &err), -EINVAL);
    assert_int_equal(curve_statstack(&none, 1, LINE, p, 2, &err), -EINVAL);
    assert_int_equal(curve_statcache(&none, 1, LINE, p, 2, &err), -EINVAL);
    assert_int_equal(curve_bursts(b, 1, LINE, 1, p, 2, &err), -EINVAL);
    assert_int_equal(curve_bursts_statcache(b, 1, LINE, p, 2, &err), -EINVAL);
    assert_int_equal(curve_exact(&none, 1, 0, p, 1, &err), -EINVAL);
    b->weight = -1;
    assert_int_equal(curve_bursts(b, 1, LINE, 1, p, 1, &err), -EINVAL);
    b->weight = 1;
    b->references = 2;
    assert_int_equal(curve_bursts(b, 1, LINE, 1, p, 1, &err), -EINVAL);
    assert_true(p[0].miss_ratio == 5 && p[1].high == 5);
    /* No data is no error; it is no answer. */
    assert_int_equal(curve_bursts(b + 1, 1, LINE, 1, p, 1, &err), 0);
    assert_true(isnan(p[0].miss_ratio) && isnan(p[0].low));
    assert_int_equal(curve_exact(&none, 0, LINE, p, 1, &err), 0);
    assert_true(isnan(p[0].miss_ratio));
    /* Smaller than a line is one line. */
    p[0].size_bytes = 1;
    assert_int_equal(curve_exact(&none, 1, LINE, p, 1, &err), 0);
    assert_true(p[0].miss_ratio == 1);
    free_bursts(b, 2);
}

/* The example of monotone.c; a NaN stays; bounds keep their order; nothing falling is nearer. */
static void monotone_is_the_nearest_falling_curve(void **state)
{
    struct random_state random;
    (void)state;
    struct curve_point example[] = {
        {1, 5, 5, 5}, {2, 3, 3, 3}, {3, NAN, NAN, NAN}, {4, 4, 4, 4}, {5, 1, 1, 1}};
    assert_int_equal(curve_make_monotone(example, 5), 0);
    const double expected[] = {5, 3.5, NAN, 3.5, 1};
    for (int i = 0; i < 5; i++)
        assert_true(i == 2 ? isnan(example[i].miss_ratio)
                           : fabs(example[i].miss_ratio - expected[i]) < 1e-12);
    random_seed(&random, 11);
    for (int round = 0; round < 200; round++) {
        enum { N = 12 };
        struct curve_point points[N];
        double before[N], sum = 0, square = 0;
        for (int i = 0; i < N; i++) {
            double value = before[i] = random_unit(&random);
            points[i] = (struct curve_point){i + 1, value, value - random_unit(&random) / 4,
                                             value + random_unit(&random) / 4};
        }
        assert_int_equal(curve_make_monotone(points, N), 0);
        for (int i = 0; i < N; i++) {
            assert_true(i == 0 || points[i].miss_ratio <= points[i - 1].miss_ratio + 1e-12);
            assert_true(points[i].low <= points[i].miss_ratio + 1e-12 &&
                        points[i].miss_ratio <= points[i].high + 1e-12);
            /* A projection on a convex cone: the residual is orthogonal to the result, ... */
            sum += (before[i] - points[i].miss_ratio) * points[i].miss_ratio;
            square += before[i] - points[i].miss_ratio;
            /* ... and no step at the front, which falls, too, is nearer. */
            assert_true(square < 1e-12);
        }
        assert_true(fabs(sum) < 1e-12 && fabs(square) < 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cyclic_scan),
        cmocka_unit_test(monotone_is_the_nearest_falling_curve),
        cmocka_unit_test(exact_is_the_cache),
        cmocka_unit_test(statstack_is_its_definition),
        cmocka_unit_test(statstack_windows),
        cmocka_unit_test(statstack_wide_bins),
        cmocka_unit_test(statcache_solves_its_equation),
        cmocka_unit_test(random_over_k_lines),
        cmocka_unit_test(bursts_are_their_definition),
        cmocka_unit_test(many_sizes_in_any_order),
        cmocka_unit_test(refuses_and_leaves_untouched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
