/* SPDX-License-Identifier: Apache-2.0 */
/* Curves of watched bursts against brute-force twins and closed forms. */
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
#include "model/growth.h"
#include "model/watched-internal.h"
#include "model/watched.h"
#include "packed_help.h"

#define LINE 64u

static void near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance))
        fail_msg("%.12g is not within %g of %.12g", a, tolerance, b);
}

static struct curve_point at_lines(double lines)
{
    return (struct curve_point){.size_bytes = lines * LINE};
}

/* A burst of these touches, by looking back from each; *survivors: unwatched, in order of position. */
static void make_burst(struct curve_burst *b, const uint64_t *line, size_t n, struct curve_watch *survivors)
{
    struct hist stack = {.total = 0}, reuse = stack, first = stack, age = stack;
    size_t left = 0;
    *b = (struct curve_burst){.references = n, .weight = 1, .start_refs = NAN};
    for (size_t j = 0; j < n; j++) {
        uint64_t distinct = 0;
        size_t i = j;
        int found = 0;
        while (i > 0 && !found) {
            i--;
            found = line[i] == line[j];
            int last = !found;
            for (size_t k = i + 1; k < j && last; k++)
                last = line[k] != line[i];
            distinct += (uint64_t)last;
        }
        hist_add(found ? &stack : &first, distinct, 1);
        if (found)
            hist_add(&reuse, j - i - 1, 1);
    }
    for (size_t j = n; j-- > 0;) {
        size_t next = j + 1;
        while (next < n && line[next] != line[j])
            next++;
        if (next < n)
            continue;
        hist_add(&age, n - 1 - j, 1);
        survivors[left] = (struct curve_watch){.position = (double)left, .age = (double)(n - 1 - j)};
        left++;
    }
    assert_int_equal(packed_hist_set(&b->stack, &stack), 0);
    assert_int_equal(packed_hist_set(&b->reuse, &reuse), 0);
    assert_int_equal(packed_hist_set(&b->first, &first), 0);
    assert_int_equal(packed_hist_set(&b->age, &age), 0);
}

/* --- growth --- */

static void bins_fit(void **state)
{
    (void)state;
    for (uint32_t bin = 0; bin < GROWTH_BINS; bin++) {
        assert_true(growth_edge(bin) < growth_edge(bin + 1));
        assert_int_equal(growth_bin(growth_edge(bin)), bin);
        assert_int_equal(growth_bin(growth_edge(bin + 1) - 1), bin);
        if (growth_edge(bin) >= 64)
            assert_true(growth_edge(bin + 1) < 1.07 * growth_edge(bin));
    }
    assert_true(growth_edge(0) == 0 && growth_edge(GROWTH_BINS) == 0x1p48);
    struct hist *h = calloc(1, sizeof *h);
    struct growth_counts counts = {.endless = 0};
    struct random_state r;
    random_seed(&r, 1);
    for (int i = 0; i < 5000; i++)
        hist_add(h, random_next(&r) >> (16 + random_below(&r, 40)), 1);
    struct packed_hist packed = {.total = 0};
    assert_int_equal(packed_hist_set(&packed, h), 0);
    growth_add_hist(&counts, GROWTH_EVENT, &packed);
    packed_hist_clear(&packed);
    for (uint32_t bin = 0; bin <= GROWTH_BINS; bin++) {
        double above = 0;
        for (uint32_t k = bin; k < GROWTH_BINS; k++)
            above += counts.event[k];
        near(above, (double)hist_at_least(h, growth_edge(bin)), 1e-6);
    }
    free(h);
}

/* The example at the head of growth.c, and a splice. */
static void growth_by_hand(void **state)
{
    (void)state;
    struct growth_counts counts = {.endless = 1};
    static struct growth g, tail;
    counts.event[1] = 2;
    counts.event[3] = 1;
    assert_int_equal(growth_estimate(&counts, 0, &g), GROWTH_BINS);
    near(growth_lines(&g, 0), 0, 0);
    near(growth_lines(&g, 1), 1, 1e-12);
    near(growth_lines(&g, 3), 2, 1e-12);
    near(growth_lines(&g, 7), 3, 1e-12);
    near(growth_lines(&g, 1e6 + 3), 2 + 1e6 / 4, 1e-3);
    /* From 2 on in proportion to one that falls to a third at 5: 1/2, then 1/6. */
    struct growth_counts other = {.endless = 1};
    other.event[4] = 2;
    growth_estimate(&other, 0, &tail);
    growth_splice(&g, &tail, 2);
    near(growth_lines(&g, 4), 1 + 3 * 0.5, 1e-12);
    near(growth_lines(&g, 10), 1 + 3 * 0.5 + 6 / 6., 1e-12);
    /* Nothing is known from 3 on. */
    struct growth_counts cut = {.endless = 0};
    cut.event[1] = 2;
    cut.censored[3] = 2;
    assert_int_equal(growth_estimate(&cut, 0, &g), 3);
    near(g.share[GROWTH_BINS], 0.5, 1e-12);
}

/* --- the twin: distances below 64, so that all bins are exact --- */

enum { BURSTS = 6, LENGTH = 40, WATCHES = 9, MOST_REFS = 20, DISTANCES = 64 };

struct twin {
    struct curve_burst *b;
    struct curve_watch watch[BURSTS][LENGTH];
    double share[BURSTS], total;
    double reach[DISTANCES + 1]; /* share of reuse distances that are at least so long */
    double lines[DISTANCES + 1]; /* expected among so many references */
};

static double watch_weight(const struct twin *t, size_t b)
{
    return t->share[b] * (double)t->b[b].first.total / (double)t->b[b].nwatches;
}

static void twin_growth(struct twin *t)
{
    t->reach[0] = 1;
    t->lines[0] = 0;
    for (int v = 0; v < DISTANCES; v++) {
        double events = 0, risk = 0;
        for (size_t b = 0; b < BURSTS; b++) {
            events += t->share[b] * (double)packed_count(&t->b[b].reuse, (uint32_t)v);
            for (int d = v; d < DISTANCES; d++)
                risk += t->share[b] * (double)packed_count(&t->b[b].reuse, (uint32_t)d);
            for (size_t i = 0; i < t->b[b].nwatches; i++) {
                const struct curve_watch *w = &t->b[b].watches[i];
                double distance = w->outcome == CURVE_ENDLESS ? INFINITY : w->age + w->refs;
                if (w->outcome == CURVE_REUSED && distance == v)
                    events += watch_weight(t, b);
                risk +=
                    distance > v || (w->outcome == CURVE_REUSED && distance == v) ? watch_weight(t, b) : 0;
            }
        }
        t->reach[v + 1] = risk > 0 ? t->reach[v] * (1 - events / risk) : t->reach[v];
        t->lines[v + 1] = t->lines[v] + t->reach[v + 1];
    }
}

static struct twin *twin_new(uint64_t seed)
{
    struct twin *t = calloc(1, sizeof *t);
    struct random_state r;
    random_seed(&r, seed);
    t->b = calloc(BURSTS, sizeof *t->b);
    for (size_t b = 0; b < BURSTS; b++) {
        uint64_t line[LENGTH];
        for (size_t i = 0; i < LENGTH; i++)
            line[i] = random_below(&r, 15 + 3 * b);
        make_burst(&t->b[b], line, LENGTH, t->watch[b]);
        for (size_t i = 0; i < WATCHES; i++) {
            size_t other = i + (size_t)random_below(&r, t->b[b].first.total - i);
            struct curve_watch w = t->watch[b][other];
            t->watch[b][other] = t->watch[b][i];
            w.outcome = (enum curve_outcome)random_below(&r, 3);
            w.refs = (double)random_below(&r, MOST_REFS);
            t->watch[b][i] = w;
        }
        t->b[b].watches = t->watch[b];
        t->b[b].nwatches = WATCHES;
        t->b[b].weight = (double)(b + 1);
        t->share[b] = t->b[b].weight / LENGTH;
        t->total += t->b[b].weight;
    }
    twin_growth(t);
    return t;
}

static void twin_free(struct twin *t)
{
    free_bursts(t->b, BURSTS);
    free(t);
}

static double twin_distance(const struct twin *t, const struct curve_watch *w)
{
    if (w->outcome == CURVE_ENDLESS)
        return INFINITY;
    return w->position + t->lines[(int)(w->age + w->refs)] - t->lines[(int)w->age];
}

/* Miss ratio at that many lines; NaN where the watches do not tell. */
static double twin_miss_ratio(const struct twin *t, double lines)
{
    double misses = 0, shallow = 0, far = 1, done = -1, last = -1, all = 0;
    int followed = 0, last_censored = 0, other_code = 0;
    for (size_t b = 0; b < BURSTS; b++) {
        double survivors = (double)t->b[b].first.total;
        misses += t->share[b] * (packed_hist_at_least(&t->b[b].stack, lines) + fmax(0, survivors - lines));
        shallow += t->share[b] * fmin(survivors, lines);
        for (size_t i = 0; i < WATCHES; i++) {
            const struct curve_watch *w = &t->watch[b][i];
            double x = twin_distance(t, w);
            if (w->position >= lines)
                continue;
            followed += w->outcome != CURVE_CENSORED || x > w->position;
            all += watch_weight(t, b);
            if (x > last || (x == last && w->outcome == CURVE_CENSORED)) {
                last = x;
                last_censored = w->outcome == CURVE_CENSORED;
            }
        }
    }
    for (;;) { /* the next larger distance, all of it at once */
        double next = INFINITY, events = 0, risk = 0;
        int at_risk[BURSTS] = {0}, bursts = 0;
        for (int pass = 0; pass < 2; pass++)
            for (size_t b = 0; b < BURSTS; b++)
                for (size_t i = 0; i < WATCHES; i++) {
                    const struct curve_watch *w = &t->watch[b][i];
                    double x = twin_distance(t, w);
                    if (w->position >= lines)
                        continue;
                    if (pass == 0 && w->outcome == CURVE_REUSED && x > done && x < next)
                        next = x;
                    if (pass == 1 && x >= fmin(next, lines)) {
                        risk += watch_weight(t, b);
                        bursts += at_risk[b]++ == 0;
                    }
                    if (pass == 1 && x == next && w->outcome == CURVE_REUSED)
                        events += watch_weight(t, b);
                }
        other_code = bursts < 5 && 2 * risk < far * all;
        if (next >= lines || other_code)
            break;
        far *= 1 - events / risk;
        done = next;
    }
    int lost = other_code || (last < lines && last_censored && far > 1e-12);
    if (followed < 10 || (lost && shallow * far > 0.01 * t->total))
        return NAN;
    return (misses + shallow * far * (lost ? 0.5 : 1)) / t->total;
}

static void lru_is_its_definition(void **state)
{
    (void)state;
    int reported = 0;
    for (uint64_t seed = 1; seed < 30; seed++) {
        struct twin *t = twin_new(seed);
        for (double lines = 1; lines < 50; lines++) {
            double want = twin_miss_ratio(t, lines);
            struct curve_point p = at_lines(lines), again = p;
            assert_int_equal(curve_watched(t->b, BURSTS, LINE, seed, &p, 1, NULL), 0);
            if (isnan(want))
                continue;
            reported++;
            near(p.miss_ratio, want, 1e-9);
            assert_true(p.low <= want - 0.001 * 0.99 + 1e-9 && want + 0.001 * 0.99 <= p.high + 1e-9);
            assert_int_equal(curve_watched(t->b, BURSTS, LINE, seed, &again, 1, NULL), 0);
            assert_memory_equal(&p, &again, sizeof p);
        }
        twin_free(t);
    }
    assert_true(reported > 900);
}

/* Largest root of StatCache's equation, by trying from above and halving. */
static double twin_statcache(const struct twin *t, double lines, double endless)
{
    double low = 0, high = 1;
    for (int step = 0; step < 60; step++) {
        double ratio = (low + high) / 2, misses = endless;
        for (int d = 0; d < DISTANCES; d++)
            misses += (t->reach[d] - t->reach[d + 1]) * (1 - pow(1 - 1 / lines, ratio * d));
        if (misses > ratio)
            low = ratio;
        else
            high = ratio;
    }
    return high;
}

static void statcache_is_its_definition(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 10; seed++) {
        struct twin *t = twin_new(seed);
        for (double lines = 2; lines < 60; lines += 7) {
            /* Endless ones are among the watches, so all that is left beyond the last reuse has no end. */
            double want = twin_statcache(t, lines, t->reach[DISTANCES]);
            struct curve_point p = at_lines(lines);
            assert_int_equal(curve_watched_statcache(t->b, BURSTS, LINE, seed, &p, 1, NULL), 0);
            near(p.miss_ratio, want, 1e-6);
            assert_true(p.low < want && want < p.high);
        }
        twin_free(t);
    }
}

/* No one was followed to the end, but what hangs on that is less than a thousandth of all: the middle of it.
 */
static void few_censored_lines(void **state)
{
    (void)state;
    struct twin *t = twin_new(3);
    for (size_t b = 0; b < BURSTS; b++) {
        for (size_t i = 0; i < WATCHES; i++) {
            t->watch[b][i].outcome = CURVE_CENSORED;
            t->watch[b][i].refs = 10;
        }
        packed_add(&t->b[b].stack, 0, 100000); /* hits anywhere */
        t->b[b].references += 100000;
    }
    struct curve_point p = at_lines(1000);
    assert_int_equal(curve_watched(t->b, BURSTS, LINE, 1, &p, 1, NULL), 0);
    assert_true(p.miss_ratio > 0 && p.miss_ratio < 0.0005 && p.low == 0 && p.high >= 2 * p.miss_ratio);
    twin_free(t);
}

/* No one was followed to the end: bounds, or a centre between them. */
static void statcache_of_censored_lines_only(void **state)
{
    (void)state;
    struct twin *t = twin_new(3);
    for (size_t b = 0; b < BURSTS; b++)
        for (size_t i = 0; i < WATCHES; i++)
            t->watch[b][i].outcome = CURVE_CENSORED;
    twin_growth(t);
    struct curve_point p[2] = {at_lines(4), at_lines(1000)};
    assert_int_equal(curve_watched_statcache(t->b, BURSTS, LINE, 1, p, 2, NULL), 0);
    assert_true(p[0].low < p[0].miss_ratio && p[0].miss_ratio < p[0].high);
    assert_true(isnan(p[1].miss_ratio) && p[1].low < 1e-9 && p[1].high > 0.05);
    assert_int_equal(curve_watched(t->b, BURSTS, LINE, 1, p, 2, NULL), 0);
    assert_true(isnan(p[1].miss_ratio) && p[1].low == 0 && p[1].high > 0.05);
    twin_free(t);
}

/* --- closed forms --- */

/* One burst is the whole run and all its lines dangle: the exact curve. */
static void whole_run(void **state)
{
    (void)state;
    enum { N = 1500 };
    static uint64_t line[N];
    static struct curve_watch watch[N];
    struct curve_burst *b = malloc(sizeof *b);
    struct random_state r;
    random_seed(&r, 5);
    for (size_t i = 0; i < N; i++)
        line[i] = random_below(&r, 10 + i / 8);
    make_burst(b, line, N, watch);
    b->watches = watch;
    b->nwatches = (size_t)b->first.total;
    b->start_refs = 0;
    struct hist stack, reuse;
    packed_hist_unpack(&b->stack, &stack);
    packed_hist_unpack(&b->reuse, &reuse);
    for (size_t i = 0; i < b->nwatches; i++)
        watch[i].outcome = CURVE_ENDLESS;
    for (double lines = 10; lines < 300; lines += 13) {
        struct curve_point p = at_lines(lines), q = p;
        assert_int_equal(curve_watched(b, 1, LINE, 1, &p, 1, NULL), 0);
        assert_int_equal(curve_exact(&stack, b->first.total, LINE, &q, 1, NULL), 0);
        near(p.miss_ratio, q.miss_ratio, 1e-12);
        double part = p.size_bytes < 32768 ? 0.05 : 0.1;
        near(p.high - p.miss_ratio, 0.0005 + part * p.miss_ratio, 1e-9); /* no noise */
        assert_int_equal(curve_watched_statcache(b, 1, LINE, 1, &p, 1, NULL), 0);
        assert_int_equal(curve_statcache(&reuse, b->first.total, LINE, &q, 1, NULL), 0);
        near(p.miss_ratio, q.miss_ratio, 0.002); /* coarser bins */
    }
    free_bursts(b, 1);
}

/* A scan over and over K lines: nothing is reused in a burst, all of it after K - 1 others. */
static void cyclic_scan(void **state)
{
    (void)state;
    enum { K = 5000, W = 400, B = 5 };
    static uint64_t line[W];
    static struct curve_watch watch[W];
    struct curve_burst *b = calloc(B, sizeof *b);
    for (size_t i = 0; i < W; i++)
        line[i] = i;
    make_burst(b, line, W, watch);
    for (size_t i = 0; i < W; i++) {
        watch[i].outcome = CURVE_REUSED;
        watch[i].refs = K - 1 - watch[i].age;
    }
    for (size_t i = 0; i < B; i++) {
        b[i] = b[0];
        b[i].watches = watch + 50 * i;
        b[i].nwatches = 50;
    }
    for (int clock = 0; clock < 2; clock++) {
        for (size_t i = 0; i < B; i++)
            b[i].start_refs = clock ? 1300. * (double)(B - i) : NAN;
        struct curve_point p[3] = {at_lines(K / 2), at_lines(K - 130), at_lines(K + 1)}; /* bins: 4% */
        assert_int_equal(curve_watched(b, B, LINE, 1, p, 3, NULL), 0);
        near(p[0].miss_ratio, 1, 1e-9);
        near(p[1].miss_ratio, 1, 1e-9);
        near(p[2].miss_ratio, 0, 1e-9);
    }
    curve_burst_clear(&b[0]); /* of all */
    free(b);
}

/* Two bursts of so many references, one that touches few lines and one that only touches new ones; 20 lines
 * of each are watched. The caller frees them. */
#define PAIR_REFS 1000
static struct curve_burst *make_pair(struct curve_watch *first, struct curve_watch *second)
{
    static uint64_t line[PAIR_REFS];
    struct curve_burst *b = calloc(2, sizeof *b);
    for (size_t i = 0; i < PAIR_REFS; i++)
        line[i] = i < 980 ? 0 : i;
    make_burst(&b[0], line, PAIR_REFS, first);
    for (size_t i = 0; i < PAIR_REFS; i++)
        line[i] = i;
    make_burst(&b[1], line, PAIR_REFS, second);
    b[0].watches = first;
    b[1].watches = second;
    b[0].nwatches = b[1].nwatches = 20;
    return b;
}

/* The path leads from a burst that touches few lines into one that only touches new ones. */
static void path_through_two_bursts(void **state)
{
    (void)state;
    static struct curve_watch first[PAIR_REFS], second[PAIR_REFS];
    struct curve_burst *b = make_pair(first, second);
    b[0].start_refs = 0;
    b[1].start_refs = 3000; /* their parts meet at 2000 */
    for (size_t i = 0; i < 20; i++) {
        first[i].outcome = CURVE_REUSED;
        first[i].refs = 3000; /* 1000 of them in the first part, 2000 in the second */
        second[i].outcome = CURVE_ENDLESS;
    }
    b[1].weight = 1e-9;           /* it lends its growth, not its misses */
    double own = 21. / PAIR_REFS; /* survivors of the first burst */
    struct curve_point p[2] = {at_lines(1950), at_lines(2100)};
    assert_int_equal(curve_watched(b, 2, LINE, 1, p, 2, NULL), 0);
    near(p[0].miss_ratio, own, 1e-6);
    near(p[1].miss_ratio, 0, 1e-6);
    /* Without a clock the two are mixed, that is, it is as if all were like the first. */
    b[0].start_refs = b[1].start_refs = NAN;
    assert_int_equal(curve_watched(b, 2, LINE, 1, p, 1, NULL), 0);
    near(p[0].miss_ratio, 0, 1e-6);
    /* Nor does the path lead into another thread. */
    b[0].start_refs = 0;
    b[1].start_refs = 3000;
    b[1].thread = 1;
    assert_int_equal(curve_watched(b, 2, LINE, 1, p, 1, NULL), 0);
    near(p[0].miss_ratio, 0, 1e-6);
    free_bursts(b, 2);
}

/* Far from its burst a line meets what lines meet anywhere, though the burst that is nearest touched few
 * lines. */
static void path_fades(void **state)
{
    (void)state;
    enum { POINTS = 100 };
    static struct curve_watch first[PAIR_REFS], second[PAIR_REFS];
    struct curve_burst *b = make_pair(first, second);
    for (size_t i = 0; i < 20; i++) {
        first[i].outcome = CURVE_REUSED;
        first[i].refs = 200e6;
        second[i].outcome = CURVE_ENDLESS;
    }
    struct curve_point known[POINTS], unknown[POINTS];
    for (size_t i = 0; i < POINTS; i++)
        known[i] = unknown[i] = at_lines(2e6 * (double)(i + 1));
    b[0].start_refs = b[1].start_refs = NAN;
    assert_int_equal(curve_watched(b, 2, LINE, 1, unknown, POINTS, NULL), 0);
    b[0].start_refs = 0;
    b[1].start_refs = 1e9;
    assert_int_equal(curve_watched(b, 2, LINE, 1, known, POINTS, NULL), 0);
    int differ = 0;
    for (size_t i = 0; i < POINTS; i++)
        differ += fabs(known[i].miss_ratio - unknown[i].miss_ratio) > 1e-9;
    assert_true(differ <= 1 && known[0].miss_ratio > known[POINTS - 1].miss_ratio + 0.005);
    free_bursts(b, 2);
}

static void intervals_cover_and_shrink(void **state)
{
    (void)state;
    enum { MANY = 400 };
    struct curve_burst *b = calloc(MANY, sizeof *b);
    static struct curve_watch watch[MANY];
    struct random_state r;
    int covered = 0;
    double width[2] = {0, 0};
    random_seed(&r, 4);
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < MANY; i++) { /* a quarter of the references of a burst of two parts misses */
            uint64_t misses = random_below(&r, 51);
            curve_burst_clear(&b[i]);
            packed_add(&b[i].stack, 1000, misses);
            packed_add(&b[i].stack, 0, 99 - misses);
            packed_add(&b[i].first, 0, 1);
            b[i].references = 100;
            b[i].weight = 1;
            b[i].start_refs = NAN;
            watch[i] = (struct curve_watch){.outcome = CURVE_REUSED, .refs = 0};
            b[i].watches = &watch[i];
            b[i].nwatches = 1;
        }
        struct curve_point p = at_lines(200); /* a small cache: its floor is 0.05 points and a twentieth */
        size_t n = round % 2 ? MANY : 40;
        assert_int_equal(curve_watched(b, n, LINE, (uint64_t)round, &p, 1, NULL), 0);
        covered += p.low <= 0.25 && 0.25 <= p.high;
        width[round % 2] += (p.high - p.low) / 50;
    }
    /* 95% of 100: 88 is three standard deviations less. */
    assert_true(covered >= 88);
    /* The standard deviation of a burst is 0.147: two of them over the root of n, and the floor. */
    double floor = 0.0005 + 0.05 * 0.25;
    near(width[0], 2 * hypot(2 * 0.147 / sqrt(40), floor), 0.012);
    near(width[1], 2 * hypot(2 * 0.147 / sqrt(MANY), floor), 0.004);
    free_bursts(b, MANY);
}

/* All of a few watches are touched again at once. In n equal bursts that says no more than that the share of
 * survivors which reach any size is below 4 / (n + 4), by Wilson's interval. */
static void few_watched_lines_give_wide_intervals(void **state)
{
    (void)state;
    enum { MANY = 400 };
    struct curve_burst *b = calloc(MANY, sizeof *b);
    static struct curve_watch watch[MANY];
    for (size_t i = 0; i < MANY; i++) {
        packed_add(&b[i].stack, 0, 90);
        packed_add(&b[i].reuse, 1, 90);
        packed_add(&b[i].first, 0, 10);
        b[i].references = 100;
        b[i].weight = 1;
        b[i].start_refs = NAN;
        watch[i] = (struct curve_watch){.outcome = CURVE_REUSED, .refs = 3};
        b[i].watches = &watch[i];
        b[i].nwatches = 1;
    }
    for (double n = 10; n <= MANY; n *= 40) {
        struct curve_point p = at_lines(1e6), random = at_lines(1e6);
        assert_int_equal(curve_watched(b, (size_t)n, LINE, 1, &p, 1, NULL), 0);
        near(p.miss_ratio, 0, 1e-9);
        assert_true(p.low == 0);
        near(p.high, fmax(0.0005, 0.1 * 4 / (n + 4)), 1e-9);
        assert_int_equal(curve_watched_statcache(b, (size_t)n, LINE, 1, &random, 1, NULL), 0);
        assert_true(random.miss_ratio < 1e-6 && random.low == 0);
        near(random.high, fmax(0.0005, 0.1 * 4 / (n + 4)), 1e-4);
    }
    /* Too few for an answer, but not for a bound: of the 10% that are survivors, not all miss. */
    struct curve_point few = at_lines(1e6), none = at_lines(1e6);
    assert_int_equal(curve_watched(b, 5, LINE, 1, &few, 1, NULL), 0);
    for (size_t i = 0; i < 5; i++)
        b[i].nwatches = 0;
    assert_int_equal(curve_watched(b, 5, LINE, 1, &none, 1, NULL), 0);
    for (size_t i = 0; i < 5; i++)
        b[i].nwatches = 1;
    assert_true(isnan(few.miss_ratio) && isnan(none.miss_ratio));
    near(none.high, 0.1, 1e-9);
    near(few.high, 0.1 * 4 / (5 + 4), 1e-9);
    assert_true(few.low == 0);
    /* A burst that represents nearly all of the run counts as one burst, however many others there are. */
    struct curve_point p = at_lines(1e6);
    b[0].weight = 1e9;
    assert_int_equal(curve_watched(b, MANY, LINE, 1, &p, 1, NULL), 0);
    near(p.high, 0.1 * 4 / 5, 1e-3);
    free_bursts(b, MANY);
}

static void ways_by_hand(void **state)
{
    (void)state;
    struct curve_burst *b = calloc(2, sizeof *b);
    struct curve_sets *sets = calloc(1, sizeof *sets);
    static struct curve_watch watch[12];
    for (size_t i = 0; i < 12; i++)
        watch[i] = (struct curve_watch){.position = 4, .age = 20, .outcome = CURVE_REUSED};
    for (int i = 0; i < 2; i++) {
        packed_add(&b[i].first, 0, 8);
        packed_add(&b[i].stack, 0, 60);
        packed_add(&b[i].stack, 7, 32);
        b[i].watches = watch + 6 * i;
        b[i].nwatches = 6;
        b[i].references = 100;
        b[i].weight = 1;
        b[i].start_refs = NAN;
    }
    b[0].sets = sets; /* four sets: of the 32, 10 have two or more of their own set between, 3 have five */
    sets->count[1][0] = 60;
    sets->count[1][1] = 22;
    sets->count[1][2] = 7;
    sets->count[1][5] = 3;
    struct curve_point p = at_lines(8), one = at_lines(1), odd = at_lines(12);
    assert_int_equal(curve_ways(b, 2, LINE, 2, 1, &p, 1, NULL), 0);
    near(p.miss_ratio, 0.10 + 0.08 * (1 - 2 * exp(-1)), 1e-12); /* 4 / 4 are in the own set */
    assert_true(p.low < p.miss_ratio && p.miss_ratio < p.high);
    /* Four ways, two sets: none was counted there, so all 88 reuses but none miss; 8 / 2 = 4 in the own set.
     */
    assert_int_equal(curve_ways(b, 2, LINE, 4, 1, &p, 1, NULL), 0);
    near(p.miss_ratio, 0.08 * (1 - (1 + 2 + 2 + 4 / 3.) * exp(-2)), 1e-12);
    /* One set is fully associative. */
    struct curve_point full = at_lines(8);
    assert_int_equal(curve_watched(b, 2, LINE, 1, &full, 1, NULL), 0);
    assert_int_equal(curve_ways(b, 2, LINE, 8, 1, &p, 1, NULL), 0);
    near(p.miss_ratio, full.miss_ratio, 0);
    assert_int_equal(curve_ways(b, 2, LINE, 2, 1, &one, 1, NULL), -EINVAL); /* half a set */
    assert_int_equal(curve_ways(b, 2, LINE, 4, 1, &odd, 1, NULL), -EINVAL); /* three */
    assert_int_equal(curve_ways(b, 2, LINE, 33, 1, &p, 1, NULL), -EINVAL);
    b[0].sets = NULL;
    assert_int_equal(curve_ways(b, 2, LINE, 2, 1, &p, 1, NULL), 0);
    assert_true(isnan(p.miss_ratio) && isnan(p.low) && isnan(p.high));
    free(sets);
    free_bursts(b, 2);
}

/* The example at the head of time-weights.c. */
static void placed_by_time(void **state)
{
    (void)state;
    struct curve_burst *b = calloc(3, sizeof *b);
    struct curve_time times[3] = {{3e9, 3, 0, 0, 0}, {1e9, 1, 0, 0, 0}, {1e6, 2, 0, 0, 0}};
    for (int i = 0; i < 3; i++) {
        b[i].start_refs = NAN;
        b[i].references = 10;
        b[i].weight = 10;
    }
    b[2].thread = 1;
    b[2].start_refs = 7; /* known: nothing is to be done */
    assert_int_equal(curve_weight_by_time(b, times, 3, 0), 0);
    assert_true(b[0].weight == 10 && isnan(b[0].start_refs));
    b[2].start_refs = NAN;
    times[0].refs_per_ns = times[1].refs_per_ns = NAN; /* two of three: too few are left */
    assert_int_equal(curve_weight_by_time(b, times, 3, 0), 0);
    times[0].refs_per_ns = 3;
    times[1].refs_per_ns = 1;
    assert_int_equal(curve_weight_by_time(b, times, 3, 0), 1);
    near(b[1].weight, 2e9, 1);
    near(b[0].weight, 6e9, 1);
    near(b[1].start_refs, 1e9, 1);
    near(b[0].start_refs, 5e9, 1);
    near(b[2].weight, 4e6, 1e-3);
    near(b[2].start_refs, 2e6, 1e-3);
    near(b[0].log_rate, log(1.5), 1e-12); /* of 3 over the average of 3, 1 and 2 */
    near(b[1].log_rate, log(0.5), 1e-12);
    /* The second was planned to represent three times as much as the first: 3e9 and 3e9 references. */
    b[0].start_refs = b[1].start_refs = b[2].start_refs = NAN;
    times[0].planned_ns = 1;
    times[1].planned_ns = 3;
    assert_int_equal(curve_weight_by_time(b, times, 3, 0), 1);
    near(b[1].weight, 3e9, 1);
    near(b[0].weight, 3e9, 1);
    near(curve_unseen_share(300), 0.01, 1e-12);
    near(curve_unseen_share(2), 1, 0);
    free(b);
}

/* After bursts in a counted part, which keep their weights, the thread's position goes on from the last one.
 */
static void places_after_counted(void **state)
{
    (void)state;
    struct curve_burst *b = calloc(4, sizeof *b);
    const struct curve_time times[4] = {
        {1e9, NAN, 0, 0, 1}, {2e9, NAN, 0, 0, 1}, {3e9, 2, 1, 0, 0}, {5e9, 4, 3, 0, 0}};
    for (int i = 0; i < 4; i++)
        b[i] = (struct curve_burst){.references = 10, .weight = 7, .start_refs = i < 2 ? 1e9 * (8 + i) : NAN};
    assert_int_equal(curve_weight_by_time(b, times, 4, 8e9), 1);
    assert_true(b[0].weight == 7 && b[0].start_refs == 8e9 && b[0].log_rate == 0);
    assert_true(b[1].weight == 7 && b[1].start_refs == 9e9);
    near(b[2].weight, 2 * 2e9, 1); /* a quarter of 8 s, at 2 */
    near(b[3].weight, 4 * 6e9, 1);
    near(b[2].start_refs, 9e9 + 2 * 1e9, 1);
    near(b[3].start_refs, 11e9 + 3 * 2e9, 1);
    assert_int_equal(curve_weight_by_time(b, times, 2, 0), 0);
    free(b);
}

/* Bursts without a rate take that of their neighbours in time; a thread without any the mean. */
static void places_without_rates(void **state)
{
    (void)state;
    const double seconds[] = {4, 1, 2, 5, 3, 6}, rates[] = {4, 1, NAN, NAN, NAN, NAN},
                 expected[] = {4, 1, 2, 4, 3};
    struct curve_burst *b = calloc(6, sizeof *b);
    struct curve_time times[6];
    for (int i = 0; i < 6; i++) {
        b[i].start_refs = NAN;
        times[i] = (struct curve_time){1e9 * seconds[i], rates[i], 0, 0, 0};
    }
    b[5].thread = 1;
    assert_int_equal(curve_weight_by_time(b, times, 6, 0), 0); /* four of six */
    times[4].refs_per_ns = 3;
    assert_int_equal(curve_weight_by_time(b, times, 6, 0), 1);
    /* Five bursts in 4 s of 5; the other thread has one burst, after 6 s: 12 s, at the mean of 1, 3 and 4. */
    for (int i = 0; i < 5; i++)
        near(b[i].weight, expected[i] * 1e9, 1);
    near(b[5].weight, 12e9 * 8 / 3, 1);
    near(b[5].start_refs, 6e9 * 8 / 3, 1);
    near(b[2].start_refs, 1e9 + 1.5e9, 1);
    free(b);
}

/* Width of the interval at 64 lines, of n bursts of which the share of misses varies, and others without
 * weight (as of other phases). */
static double width_of(size_t n, size_t others)
{
    size_t all = n + others;
    struct curve_burst *b = calloc(all, sizeof *b);
    struct curve_watch *watches = calloc(all, 4 * sizeof *watches);
    for (size_t i = 0; i < all; i++) { /* the share of misses has the same variance, whatever n is */
        packed_add(&b[i].stack, 100, i % 3 == 0 ? 500 : 300);
        packed_add(&b[i].stack, 1, i % 3 == 0 ? 500 : 700);
        packed_same(&b[i].reuse, &b[i].stack);
        packed_add(&b[i].first, 0, 4);
        packed_add(&b[i].age, 0, 4);
        for (size_t k = 0; k < 4; k++)
            watches[4 * i + k] = (struct curve_watch){.refs = 5, .outcome = CURVE_REUSED};
        b[i].references = 1004;
        b[i].weight = i < n ? 1004 : 0;
        b[i].start_refs = NAN;
        b[i].watches = &watches[4 * i];
        b[i].nwatches = 4;
    }
    struct curve_point p = at_lines(64);
    assert_int_equal(curve_watched(b, all, LINE, 1, &p, 1, NULL), 0);
    free_bursts(b, all);
    free(watches);
    return p.high - p.low;
}

/* The bootstrap's standard deviation is too small with few bursts: the interval is wider than it says. */
static void few_bursts_widen(void **state)
{
    (void)state;
    double few = width_of(3, 0), many = width_of(30, 0);
    /* sqrt(10) from their number, 4.30 / 2.05 * sqrt(3 / 2 * 29 / 30) from Student's distribution; model's
     * errors less. */
    assert_true(few > 5 * many);
    /* Bursts of other phases say nothing about this one. Standard deviations from 100 resamples are known to
     * 7%.
     */
    near(width_of(3, 30) / few, 1, 0.25);
    near(width_of(30, 300) / many, 1, 0.25);
}

/* A part of the run of which every reference was recorded, and bursts that are a sample of the rest. */
static void certain_part(void **state)
{
    (void)state;
    enum { REUSES = 1000, BURSTS = 40 };
    struct curve_burst *b = calloc(BURSTS + 1, sizeof *b), *part = &b[BURSTS];
    struct curve_watch *watches = calloc(BURSTS, sizeof *watches);
    struct curve_point alone = at_lines(64), both = at_lines(64), sampled = at_lines(64);
    struct error err;
    for (size_t i = 0; i < BURSTS; i++) { /* every second burst misses with half of its reuses */
        packed_add(&b[i].stack, i % 2 ? 100 : 1, REUSES / 2);
        packed_add(&b[i].stack, 1, REUSES / 2);
        packed_same(&b[i].reuse, &b[i].stack);
        packed_add(&b[i].first, 0, 1);
        packed_add(&b[i].age, 0, 1);
        watches[i] = (struct curve_watch){.refs = 5, .outcome = CURVE_REUSED};
        b[i].references = REUSES + 1;
        b[i].weight = REUSES + 1;
        b[i].start_refs = NAN;
        b[i].watches = &watches[i];
        b[i].nwatches = 1;
    }
    /* The part: as many references as all bursts represent, all of which miss. */
    packed_add(&part->stack, 100, BURSTS * (REUSES + 1));
    packed_same(&part->reuse, &part->stack);
    part->references = BURSTS * (REUSES + 1);
    part->weight = (double)part->references;
    part->start_refs = NAN;
    part->certain = 1;

    assert_int_equal(curve_watched(part, 1, LINE, 1, &alone, 1, &err), 0);
    near(alone.miss_ratio, 1, 1e-9);
    near(alone.low, 1, 1e-9);
    assert_int_equal(curve_watched(b, BURSTS, LINE, 1, &sampled, 1, &err), 0);
    near(sampled.miss_ratio, 0.25, 0.01);
    assert_int_equal(curve_watched(b, BURSTS + 1, LINE, 1, &both, 1, &err), 0);
    near(both.miss_ratio, (1 + sampled.miss_ratio) / 2, 1e-9);
    /* Half of the references have no sampling error. What is added for the model's own is in proportion. */
    double width = both.high - both.low;
    assert_true(width > 0.4 * (sampled.high - sampled.low));
    assert_true(width < (sampled.high - sampled.low));
    /* The part weighs more or less than assumed, by a factor whose logarithm has this standard deviation: the
     * estimate is the same, and the interval holds those of twice and half the weight. */
    part->scale_doubt = 0.6;
    assert_int_equal(curve_watched(b, BURSTS + 1, LINE, 1, &both, 1, &err), 0);
    near(both.miss_ratio, (1 + sampled.miss_ratio) / 2, 1e-9);
    assert_true(both.low < (1 + 2 * sampled.miss_ratio) / 3 && both.high > (2 + sampled.miss_ratio) / 3);
    part->scale_doubt = 0;

    assert_int_equal(curve_watched_statcache(b, BURSTS + 1, LINE, 1, &both, 1, &err), 0);
    assert_true(both.miss_ratio > 0.1 && both.miss_ratio <= 1);
    free_bursts(b, BURSTS + 1);
    free(watches);
}

/* Where the growth of a line's depth was measured, the distance is that, whatever the bursts' reuses say. */
static void measured_growth(void **state)
{
    (void)state;
    static struct curve_burst b[2];
    static struct curve_watch watch[2];
    double distance[2];
    struct error err;
    for (int i = 0; i < 2; i++) { /* each reference is to a new line */
        watch[i] = (struct curve_watch){.position = 4,
                                        .age = 20,
                                        .refs = 1000,
                                        .outcome = CURVE_CENSORED,
                                        .tail_refs = 1000,
                                        .tail_lines = 60};
        b[i] = (struct curve_burst){.references = 100, .weight = 1, .start_refs = 10000.0 * i};
        packed_add(&b[i].first, 0, 100);
        packed_add(&b[i].age, 50, 100);
        b[i].watches = &watch[i];
        b[i].nwatches = 1;
    }
    assert_int_equal(watched_distances(b, 2, distance, &err), 0);
    assert_true(distance[0] == 64 && distance[1] == 64);
    /* Beyond the measured part the depth grows by one line with each reference. */
    watch[0].refs = 1500;
    assert_int_equal(watched_distances(b, 2, distance, &err), 0);
    assert_true(fabs(distance[0] - 564) < 1e-6 && distance[1] == 64);
    watch[0].tail_refs = watch[0].tail_lines = 0;
    assert_int_equal(watched_distances(b, 2, distance, &err), 0);
    assert_true(fabs(distance[0] - 1504) < 1e-6);
}

/* Two of ten bursts are of other code. Their lines are observed for so many references, with that outcome;
 * those of the others for ten. */
/* Single bursts of two groups: a cyclic scan of 20 lines; all lines of the second group were lost at once. */
static void each_burst_by_its_group(void **state)
{
    (void)state;
    enum { BURSTS = 10, LINES = 20, TOUCHES = 400 };
    struct curve_burst *b = calloc(BURSTS, sizeof *b);
    static struct curve_watch watch[BURSTS][LINES];
    const struct curve_point points[] = {at_lines(10), at_lines(64)};
    double ratio[BURSTS][2];
    uint64_t line[TOUCHES];
    uint32_t group[BURSTS];
    for (size_t i = 0; i < TOUCHES; i++)
        line[i] = i % LINES;
    for (size_t i = 0; i < BURSTS; i++) {
        make_burst(&b[i], line, TOUCHES, watch[i]);
        group[i] = i >= BURSTS / 2;
        b[i].start_refs = 1e6 * (double)i;
        b[i].watches = watch[i];
        b[i].nwatches = LINES;
        for (size_t k = 0; k < LINES; k++) {
            watch[i][k].outcome = group[i] ? CURVE_CENSORED : CURVE_REUSED;
            watch[i][k].refs = group[i] ? 1 : LINES - 1 - watch[i][k].age;
        }
    }
    assert_int_equal(curve_watched_each(b, group, BURSTS, LINE, 1, points, 2, ratio[0], NULL), 0);
    for (size_t i = 0; i < BURSTS; i++) {
        near(ratio[i][0], 1, 1e-9);
        if (group[i])
            assert_true(isnan(ratio[i][1]));
        else
            near(ratio[i][1], 0, 1e-9);
    }
    free_bursts(b, BURSTS);
}

static struct curve_point with_other_code(double refs, enum curve_outcome outcome)
{
    static struct curve_burst b[10];
    static struct curve_watch watch[10][2];
    for (int i = 0; i < 10; i++) {
        curve_burst_clear(&b[i]);
        double observed = i < 8 ? 10 : refs;
        for (int k = 0; k < 2; k++)
            watch[i][k] = (struct curve_watch){.position = k,
                                               .age = k,
                                               .refs = observed,
                                               .outcome = i < 8 ? CURVE_CENSORED : outcome,
                                               .tail_refs = observed,
                                               .tail_lines = observed};
        b[i].references = 100;
        b[i].weight = 1;
        b[i].start_refs = NAN;
        packed_add(&b[i].stack, 0, 98);
        packed_add(&b[i].reuse, 0, 98);
        packed_add(&b[i].first, 0, 2);
        packed_add(&b[i].age, 0, 2);
        b[i].watches = watch[i];
        b[i].nwatches = 2;
    }
    struct curve_point p = at_lines(100);
    assert_int_equal(curve_watched(b, 10, LINE, 1, &p, 1, NULL), 0);
    return p;
}

/* They do not decide about the others: neither if they are touched again, nor if they are known not to be. */
static void few_bursts_at_risk(void **state)
{
    (void)state;
    const struct curve_point points[] = {with_other_code(20, CURVE_REUSED),
                                         with_other_code(200, CURVE_CENSORED)};
    for (int i = 0; i < 2; i++) {
        assert_true(isnan(points[i].miss_ratio) && points[i].low == 0);
        assert_true(points[i].high >= 0.02 - 1e-9 && points[i].high < 0.03);
    }
}

static void refuses_nonsense(void **state)
{
    (void)state;
    struct curve_burst *b = calloc(1, sizeof *b);
    struct curve_watch watch[2] = {{.age = 0}, {.age = 0}};
    struct curve_point p = {64, 5, 5, 5};
    struct error err;
    packed_add(&b->first, 0, 1);
    b->references = 1;
    b->weight = 1;
    b->start_refs = NAN;
    b->watches = watch;
    b->nwatches = 2;
    assert_int_equal(curve_watched(b, 1, LINE, 1, &p, 1, &err), -EINVAL);
    assert_int_equal(curve_watched_statcache(b, 1, LINE, 1, &p, 1, &err), -EINVAL);
    b->nwatches = 1;
    const struct curve_watch bad[] = {{.position = 1, .age = 1, .outcome = CURVE_REUSED},
                                      {.refs = -1, .outcome = CURVE_REUSED},
                                      {.refs = NAN, .outcome = CURVE_CENSORED},
                                      {.age = INFINITY, .outcome = CURVE_REUSED},
                                      {.position = -1, .outcome = CURVE_ENDLESS}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        watch[0] = bad[i];
        assert_int_equal(curve_watched(b, 1, LINE, 1, &p, 1, &err), -EINVAL);
    }
    assert_true(p.miss_ratio == 5 && p.low == 5 && p.high == 5);
    watch[0] = (struct curve_watch){.refs = NAN, .outcome = CURVE_ENDLESS};
    assert_int_equal(curve_watched(b, 1, LINE, 1, &p, 1, &err), 0);
    free_bursts(b, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_fit),
        cmocka_unit_test(growth_by_hand),
        cmocka_unit_test(lru_is_its_definition),
        cmocka_unit_test(statcache_is_its_definition),
        cmocka_unit_test(statcache_of_censored_lines_only),
        cmocka_unit_test(few_censored_lines),
        cmocka_unit_test(whole_run),
        cmocka_unit_test(cyclic_scan),
        cmocka_unit_test(path_through_two_bursts),
        cmocka_unit_test(path_fades),
        cmocka_unit_test(intervals_cover_and_shrink),
        cmocka_unit_test(few_watched_lines_give_wide_intervals),
        cmocka_unit_test(ways_by_hand),
        cmocka_unit_test(few_bursts_widen),
        cmocka_unit_test(certain_part),
        cmocka_unit_test(placed_by_time),
        cmocka_unit_test(places_after_counted),
        cmocka_unit_test(places_without_rates),
        cmocka_unit_test(measured_growth),
        cmocka_unit_test(few_bursts_at_risk),
        cmocka_unit_test(each_burst_by_its_group),
        cmocka_unit_test(refuses_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
