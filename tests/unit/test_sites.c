/* SPDX-License-Identifier: Apache-2.0 */
/* Sites: from touches to counts and back, their sums by a simple twin; shares of misses by hand-worked
 * bursts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/hist.h"
#include "base/leb128.h"
#include "base/octaves.h"
#include "base/random.h"
#include "collect/reduce/sites.h"
#include "collect/tunables.h"
#include "model/shares.h"
#include "profile/site-counts.h"

#define BLOCKS 300u
#define REFERENCES 5u

static void octaves_have_the_histograms_edges(void **state)
{
    (void)state;
    for (uint32_t bin = 0; bin < OCTAVES_BINS; bin++) {
        uint64_t edge = octaves_edge(bin);
        assert_int_equal(octaves_bin(edge), bin);
        if (bin > 0) {
            assert_int_equal(octaves_bin(edge - 1), bin - 1);
            assert_int_equal(hist_edge(hist_bin(edge)), edge); /* curves at these sizes agree with sites */
        }
    }
    assert_int_equal(octaves_bin(UINT64_MAX), OCTAVES_BINS - 1);
}

static void numbers_of_variable_length(void **state)
{
    const int64_t values[] = {0, 1, -1, 63, -64, 64, 1 << 20, INT64_MAX, INT64_MIN};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        uint8_t bytes[LEB128_MOST];
        uint64_t read = 0;
        size_t n = leb128_put(bytes, zigzag(values[i]));
        const uint8_t *at = bytes;
        assert_int_equal(leb128_take(&at, bytes + n, &read), 0);
        assert_ptr_equal(at, bytes + n);
        assert_true(unzigzag(read) == values[i]);
        at = bytes;
        assert_int_equal(leb128_take(&at, bytes + n - 1, &read), -1); /* cut off */
    }
    const uint8_t large[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, *at = large;
    uint64_t number = 0;
    assert_int_equal(leb128_take(&at, large + sizeof large, &number), -1);
}

/* What was counted, read back. */
struct read {
    uint64_t executions[BLOCKS];
    uint64_t count[BLOCKS][REFERENCES][SITE_COUNT_END];
};

static int take_block(void *ctx, uint32_t block, uint64_t executions)
{
    struct read *r = ctx;
    assert_in_range(block, 0, BLOCKS - 1);
    r->executions[block] += executions;
    return 0;
}

static int take_entry(void *ctx, uint32_t block, uint32_t reference, uint32_t what, uint32_t object,
                      uint64_t count)
{
    struct read *r = ctx;
    assert_int_equal(object, 0); /* none is looked for */
    assert_in_range(reference, 0, REFERENCES - 1);
    assert_true(count > 0);
    assert_int_equal(r->count[block][reference][what], 0); /* once each */
    r->count[block][reference][what] = count;
    return 0;
}

/* Lists a touch that is far in the thread's own stack. The code by which it is counted, if it is not so in
 * the process'. */
static uint32_t list_own(struct stackdist_far *own, uint32_t at, uint64_t distance)
{
    own->at[own->n] = at;
    own->stack[own->n++] = distance;
    return distance == STACKDIST_COLD ? SITE_COUNT_OWN_FIRST : SITE_COUNT_OWN + octaves_bin(distance);
}

/* Random executions and touches; all lines of a batch. threads: of a process that has several. */
static void count_some(struct sites *s, struct random_state *random, struct read *expected, uint64_t *lines,
                       int threads)
{
    struct decode_sites *noted = sites_noted(s);
    uint32_t sites[1000];
    static const uint64_t line_numbers[1000];
    const struct process_touches touches = {.lines = line_numbers, .n = 1000};
    for (unsigned i = 0; i < 500; i++) {
        uint32_t block = (uint32_t)random_below(random, BLOCKS);
        noted->executed[noted->nexecuted] = block;
        noted->nexecuted += noted->executions[block]++ == 0;
        expected->executions[block]++;
    }
    for (unsigned i = 0; i < 50; i++) {
        uint32_t block = (uint32_t)random_below(random, BLOCKS),
                 ref = (uint32_t)random_below(random, REFERENCES);
        uint64_t n = 1 + random_below(random, 1000);
        noted->more(noted->ctx, DECODE_SITE(block, ref), n);
        expected->count[block][ref][SITE_COUNT_MORE] += n;
    }
    struct stackdist_far *far = sites_far(s, 1000, 0), *own = sites_far(s, 1000, 1);
    assert_non_null(far);
    assert_non_null(own);
    far->n = own->n = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t block = (uint32_t)random_below(random, BLOCKS),
                 ref = (uint32_t)random_below(random, REFERENCES);
        sites[i] = DECODE_SITE(block, ref);
        if (random_below(random, 3) != 0) {
            if (threads && random_below(random, 5) == 0)
                expected->count[block][ref][list_own(own, i, 16 + random_below(random, 3000))]++;
            continue;
        }
        uint64_t distance = 16 + random_below(random, 3000), own_distance = distance;
        int first = random_below(random, 4) == 0;
        if (threads && !first && random_below(random, 2) != 0) /* 0: near */
            own_distance = random_below(random, 4) == 0   ? STACKDIST_COLD
                           : random_below(random, 3) == 0 ? 0
                                                          : 16 + random_below(random, 3000);
        far->at[far->n] = i;
        far->stack[far->n++] = first ? STACKDIST_COLD : distance;
        int differs = own_distance == STACKDIST_COLD || octaves_bin(own_distance) != octaves_bin(distance);
        uint32_t own_what = own_distance > 0 ? list_own(own, i, first ? STACKDIST_COLD : own_distance) : 0;
        if (differs && own_what != 0)
            expected->count[block][ref][own_what]++;
        uint32_t what = first     ? SITE_COUNT_FIRST + octaves_bin((*lines)++)
                        : differs ? SITE_COUNT_SHARED + octaves_bin(distance)
                                  : SITE_COUNT_STACK + octaves_bin(distance);
        expected->count[block][ref][what]++;
    }
    assert_int_equal(sites_take(s, &touches, sites, far, threads ? own : NULL, NULL, NULL), 0);
}

static void counts_survive_the_way_into_the_profile(void **state)
{
    struct sites *s = sites_new(1, NULL);
    struct random_state random;
    (void)state;
    random_seed(&random, 7);
    for (int burst = 0; burst < 4; burst++) {
        struct read *expected = calloc(1, sizeof *expected), *found = calloc(1, sizeof *found);
        uint8_t *used = calloc(1, WIRE_MAX_BLOCKS / 8);
        uint64_t lines = 0;
        const uint8_t *bytes;
        size_t size;
        for (int batch = 0; batch < 3; batch++) {
            count_some(s, &random, expected, &lines, burst >= 2);
            if (burst % 2 != 0) /* full mode: several buffers */
                sites_next_buffer(s);
        }
        assert_int_equal(sites_end(s, used, &bytes, &size), 0);
        const struct site_counts_reader reader = {take_block, take_entry, found};
        assert_int_equal(site_counts_read(bytes, size, &reader), 0);
        assert_memory_equal(found, expected, sizeof *found);
        for (uint32_t block = 0; block < BLOCKS; block++)
            if (expected->executions[block] > 0)
                assert_true(used[block / 8] >> block % 8 & 1);
        /* Damaged bytes: refused, or other numbers, but within bounds. */
        struct read *scratch = calloc(1, sizeof *scratch);
        for (size_t cut = 1; cut < size && cut < 200; cut++) {
            memset(scratch, 0, sizeof *scratch);
            (void)site_counts_read(bytes, size - cut,
                                   &(struct site_counts_reader){take_block, take_entry, scratch});
        }
        free(scratch);
        free(used);
        free(expected);
        free(found);
    }
    const uint8_t *bytes;
    size_t size;
    uint8_t *used = calloc(1, WIRE_MAX_BLOCKS / 8);
    assert_int_equal(sites_end(s, used, &bytes, &size), 0);
    assert_int_equal(size, 0); /* nothing is left over */
    free(used);
    sites_free(s);
}

struct sums {
    uint64_t near[2], far, first; /* near: by reference */
};

static int sum_block(void *ctx, uint32_t block, uint64_t executions)
{
    (void)ctx, (void)block, (void)executions;
    return 0;
}

static int sum_entry(void *ctx, uint32_t block, uint32_t reference, uint32_t what, uint32_t object,
                     uint64_t count)
{
    struct sums *sums = ctx;
    (void)block, (void)object;
    if (what >= SITE_COUNT_FIRST && what < SITE_COUNT_FIRST + OCTAVES_BINS)
        sums->first += count;
    else if (what < SITE_COUNT_STACK + octaves_bin(COLLECT_NEAR_LINES))
        sums->near[reference] += count;
    else
        sums->far += count;
    return 0;
}

/* Full mode counts a sample of the near reuses, and all others. */
static void near_reuses_are_sampled(void **state)
{
    enum { N = 1000, BATCHES = 100 };
    struct sites *s = sites_new(8, NULL);
    struct sums sums = {0};
    uint32_t sites[N];
    static const uint64_t lines[N];
    const struct process_touches touches = {.lines = lines, .n = N};
    uint8_t *used = calloc(1, WIRE_MAX_BLOCKS / 8);
    const uint8_t *bytes;
    size_t size;
    (void)state;
    for (int batch = 0; batch < BATCHES; batch++) {
        struct stackdist_far *far = sites_far(s, N, 0);
        assert_non_null(far);
        far->n = 0;
        for (uint32_t i = 0; i < N; i++) {
            sites[i] = DECODE_SITE(3, i % 4 == 0);
            far->at[far->n] = i;
            far->stack[far->n++] = i % 10 == 0   ? STACKDIST_COLD
                                   : i % 10 == 1 ? COLLECT_NEAR_LINES + i
                                                 : 16 + i % (COLLECT_NEAR_LINES - 16);
        }
        assert_int_equal(sites_take(s, &touches, sites, far, NULL, NULL, NULL), 0);
    }
    assert_int_equal(sites_end(s, used, &bytes, &size), 0);
    assert_int_equal(site_counts_read(bytes, size, &(struct site_counts_reader){sum_block, sum_entry, &sums}),
                     0);
    assert_int_equal(sums.first, BATCHES * N / 10);
    assert_int_equal(sums.far, BATCHES * N / 10);
    /* 10,000 counted events: five standard errors are 4%. A quarter of them are of reference 1. */
    double near = 0.8 * BATCHES * N;
    assert_true(fabs((double)(sums.near[0] + sums.near[1]) / near - 1) < 0.04);
    assert_true(fabs((double)sums.near[1] / (near * 0.25) - 1) < 0.1);
    free(used);
    sites_free(s);
}

/* The example of shares.c. */
/* The interval of a share, before it is extended by what one of n bursts represents. */
static void assert_share_interval(const struct shares_result *r, double low, double high, double n)
{
    assert_true(fabs(r->share_low - low * (1 - 1 / n)) < 1e-9);
    assert_true(fabs(r->share_high - (high + (1 - high) / n)) < 1e-9);
}

static void shares_by_hand(void **state)
{
    struct shares *s = shares_new(2, 0, 0, 0);
    struct shares_result r;
    (void)state;
    shares_add(s, 0, 100, 4, 0);
    shares_add(s, 1, 100, 6, 0);
    shares_burst(s, 1);
    shares_add(s, 0, 100, 6, 0);
    shares_add(s, 1, 100, 4, 0);
    shares_burst(s, 1);
    shares_result(s, 0, &r);
    assert_true(fabs(r.misses_share - (0.5)) < 1e-12);
    assert_true(fabs(r.references_share - (0.5)) < 1e-12);
    assert_true(fabs(r.miss_ratio - (0.05)) < 1e-12);
    assert_share_interval(&r, 0.5 - 1.96 * 0.1, 0.5 + 1.96 * 0.1, 2);
    assert_false(r.enough); /* two bursts */
    /* The same with the rate's error: 0.5 * 0.5 * 0.3 beside 0.1. Not of the ratio, nor of all. */
    double ratio = r.ratio_high;
    shares_set_rate_error(s, 0.3);
    shares_result(s, 0, &r);
    assert_share_interval(&r, 0.5 - 1.96 * 0.125, 0.5 + 1.96 * 0.125, 2);
    assert_true(r.ratio_high == ratio);
    shares_total(s, &r);
    assert_true(fabs(r.misses_share - (1)) < 1e-12);
    assert_true(fabs(r.share_high - r.share_low - (0)) < 1e-9);
    shares_free(s);
}

/* Nine slow bursts, in which one group has all misses, and one with most references: of the run, they say
 * little. */
static void shares_of_few_bursts(void **state)
{
    struct shares *s = shares_new(2, 0, 0, 0);
    struct shares_result r;
    (void)state;
    for (int i = 0; i < 9; i++) {
        shares_add(s, 0, 100, 50, 0);
        shares_burst(s, 1);
    }
    shares_result(s, 0, &r);
    assert_true(r.enough && r.misses_share == 1 && r.share_high == 1);
    assert_true(fabs(r.share_low - (1 - 1. / 9)) < 1e-9);
    shares_add(s, 1, 100, 1, 0);
    shares_burst(s, 15);
    shares_result(s, 0, &r);
    assert_false(r.enough); /* (9 + 15)^2 / (9 + 15^2) bursts */
    shares_free(s);
}

/* Undecided touches miss with the run's chance, and its error is theirs. */
static void shares_of_what_is_not_decided(void **state)
{
    struct shares *s = shares_new(2, 0.5, 0.25, 0.75);
    struct shares_result r;
    (void)state;
    for (int i = 0; i < 10; i++) {
        shares_add(s, 0, 100, 10, 20);
        shares_add(s, 1, 100, 20, 0);
        shares_burst(s, 3);
    }
    shares_result(s, 0, &r);
    assert_true(fabs(r.misses_share - (0.5)) < 1e-12);
    assert_true(fabs(r.miss_ratio - (0.2)) < 1e-12);
    /* With 0.25: 15 of 35, with 0.75: 25 of 45. Linear: 0.25 * (20 - 10) / 40. */
    assert_share_interval(&r, 0.5 - 0.0625, 0.5 + 0.0625, 10);
    assert_true(fabs(r.ratio_low - (0.15)) < 1e-9);
    assert_true(r.enough);
    shares_free(s);
}

/* The example of far-shares.c: two groups whose first touches are alike, and ten samples. */
static void far_shares_by_hand(void **state)
{
    struct far_shares *f = far_shares_new(2, 1024, 1);
    struct far_share share[2];
    double hits;
    (void)state;
    for (size_t group = 0; group < 2; group++) {
        far_shares_add(f, group, FAR_REUSE, octaves_bin(64), 30);
        far_shares_add(f, group, FAR_FIRST, octaves_bin(100), 70);
    }
    for (size_t burst = 0; burst < 10; burst++)
        assert_int_equal(far_shares_hit(f, burst == 3, burst, 0.02), 0);
    assert_int_equal(far_shares_find(f, NAN, share, &hits), 0);
    assert_true(fabs(hits - 10) < 1e-9);
    assert_true(fabs(share[0].share - 0.8673) < 1e-4 && fabs(share[1].share - 0.1327) < 1e-4);
    /* Wilson's interval for 0.8673 of 10 begins at 0.5526. */
    assert_true(fabs(share[0].error - (0.8673 - 0.5526) / 1.96) < 1e-3);
    far_shares_free(f);
}

/* Without samples: both groups made as many first touches. Group 0's were at the beginning of the burst and
 * its reuses are near, so that they are expected to be near, too. */
static void far_shares_by_depth(void **state)
{
    struct far_shares *f = far_shares_new(2, 1024, 1);
    struct far_share share[2];
    double hits;
    (void)state;
    far_shares_add(f, 0, FAR_FIRST, octaves_bin(16), 200);
    far_shares_add(f, 1, FAR_FIRST, octaves_bin(500), 200);
    far_shares_add(f, 0, FAR_REUSE, octaves_bin(32), 10000);
    far_shares_add(f, 1, FAR_REUSE, octaves_bin(2000), 10000);
    assert_int_equal(far_shares_find(f, NAN, share, &hits), 0);
    assert_true(hits == 0 && share[0].share < 0.01 && fabs(share[0].share + share[1].share - 1) < 1e-9);
    assert_true(share[1].error >= 0.25); /* nothing vouches for it */
    far_shares_free(f);
}

/* First touches of both groups are alike, but in tails those of group 0 are all reused soon. */
static void far_shares_by_tails(void **state)
{
    struct far_shares *f = far_shares_new(2, 1024, 1);
    struct far_share share[2];
    double hits, sum[2] = {0};
    (void)state;
    for (size_t group = 0; group < 2; group++) {
        far_shares_add(f, group, FAR_FIRST, octaves_bin(100), 2000);
        far_shares_add(f, group, FAR_REUSE, octaves_bin(64), 3000);
        far_shares_add(f, group, FAR_TAIL_ENTRY, octaves_bin(50), 10000);
    }
    far_shares_add(f, 0, FAR_TAIL_REUSE, octaves_bin(300), 10000);
    far_shares_add(f, 1, FAR_TAIL_REUSE, octaves_bin(300), 5000);
    far_shares_add(f, 1, FAR_TAIL_FIRST, octaves_bin(2000), 5000);
    assert_int_equal(far_shares_find(f, 0.25, share, &hits), 0);
    assert_true(share[0].share < 0.01 && share[1].share > 0.99 && share[1].by_model &&
                share[1].error < 0.001);
    /* What touches contribute adds up to the misses; reuses lessen them, and touches that are not reused add.
     */
    const struct {
        enum far_touch what;
        uint32_t lines;
        double touches[2];
    } touches[] = {{FAR_FIRST, 100, {2000, 2000}},
                   {FAR_REUSE, 64, {3000, 3000}},
                   {FAR_TAIL_ENTRY, 50, {10000, 10000}},
                   {FAR_TAIL_REUSE, 300, {10000, 5000}},
                   {FAR_TAIL_FIRST, 2000, {0, 5000}}};
    for (size_t i = 0; i < sizeof(touches) / sizeof(touches[0]); i++)
        for (size_t group = 0; group < 2; group++)
            sum[group] += touches[i].touches[group] *
                          far_shares_value(f, group, touches[i].what, octaves_bin(touches[i].lines));
    assert_true(fabs(sum[0] + sum[1] - 0.25 * 4000) < 20);
    assert_true(far_shares_value(f, 1, FAR_TAIL_REUSE, octaves_bin(300)) < -0.01);
    assert_true(far_shares_value(f, 1, FAR_TAIL_FIRST, octaves_bin(2000)) > 0.01);
    far_shares_free(f);
}

/* Few tails reach the size of the cache. Three touches enter just before it; two are reused there, and one of
 * group 2, which has few first touches, is not. That says nothing about the others. */
static void far_shares_by_short_tails(void **state)
{
    struct far_shares *f = far_shares_new(3, 1024, 1);
    struct far_share share[3];
    double hits;
    (void)state;
    for (size_t group = 0; group < 3; group++) {
        far_shares_add(f, group, FAR_FIRST, octaves_bin(100), group == 2 ? 10 : 1000);
        far_shares_add(f, group, FAR_TAIL_ENTRY, octaves_bin(900), 1);
    }
    far_shares_add(f, 0, FAR_TAIL_REUSE, octaves_bin(900), 1);
    far_shares_add(f, 1, FAR_TAIL_REUSE, octaves_bin(900), 1);
    far_shares_add(f, 2, FAR_TAIL_FIRST, octaves_bin(2000), 1);
    assert_int_equal(far_shares_find(f, 0.5, share, &hits), 0);
    assert_true(fabs(share[0].share - 0.4975) < 0.002 && fabs(share[1].share - 0.4975) < 0.002);
    assert_true(fabs(share[2].share - 0.005) < 0.002);
    far_shares_free(f);
}

/* The same bursts, once with a common probability for what they do not decide, and once with what each of
 * them saw: all misses in one burst of ten, or in all alike. */
static void spread_of_bursts(void **state)
{
    const struct far_share far[2] = {{.share = 0.5, .by_model = 1}, {.share = 0.5, .by_model = 1}};
    struct shares_result r[2];
    (void)state;
    for (int alike = 0; alike < 2; alike++) {
        struct shares *s = shares_new(2, 0.5, 0.5, 0.5), *spread = shares_new(2, 0, 0, 0);
        for (int i = 0; i < 10; i++) {
            for (size_t group = 0; group < 2; group++) {
                shares_add(s, group, 100, 0, 40);
                shares_add(spread, group, 100, alike || group == 1 ? 20 : i == 0 ? 209 : -1, 0);
            }
            shares_burst(s, 1);
            shares_burst(spread, 1);
        }
        shares_set_far(s, far, 0);
        shares_set_spread(s, spread);
        shares_result(s, 0, &r[alike]);
        assert_true(fabs(r[alike].misses_share - 0.5) < 1e-9);
        shares_free(s);
        shares_free(spread);
    }
    assert_false(r[0].enough);
    assert_true(r[1].enough);
    assert_share_interval(&r[1], 0.5, 0.5, 10);
    assert_true(r[0].share_high - r[0].share_low > 0.4);
}

/* Half of the samples are in group 2, which bursts never saw miss. */
static void far_shares_by_samples(void **state)
{
    struct far_shares *f = far_shares_new(3, 1024, 1);
    struct far_share share[3];
    double hits;
    (void)state;
    far_shares_add(f, 0, FAR_FIRST, octaves_bin(100), 90);
    far_shares_add(f, 1, FAR_FIRST, octaves_bin(100), 10);
    for (size_t i = 0; i < 200; i++)
        assert_int_equal(far_shares_hit(f, i % 2 ? 2 : i % 20 == 0, i, 0.001), 0);
    assert_int_equal(far_shares_hit(f, FAR_SHARES_UNKNOWN, 200, 0.2), 0); /* as much as all others */
    assert_int_equal(far_shares_find(f, NAN, share, &hits), 0);
    assert_true(fabs(hits - 200) < 1e-6);
    /* Half as the samples say, and half, which is no one's, as the first touches. */
    assert_true(fabs(share[0].share - (0.225 + 0.45)) < 0.01 && fabs(share[2].share - 0.25) < 0.01);
    assert_true(fabs(share[0].share + share[1].share + share[2].share - 1) < 1e-9);
    far_shares_free(f);
}

/* Group 1 made none of the undecided first touches, but half of what missed among them. */
static void far_misses_of_others(void **state)
{
    const struct far_share far[2] = {{.share = 0.5, .error = 0.1}, {.share = 0.5, .error = 0.1}};
    struct shares *s = shares_new(2, 0.5, 0.5, 0.5);
    struct shares_result r;
    (void)state;
    for (int i = 0; i < 10; i++) {
        shares_add(s, 0, 100, 10, 40);
        shares_burst(s, 1);
    }
    shares_set_far(s, far, 8);
    shares_result(s, 1, &r);
    assert_true(fabs(r.misses - 100) < 1e-9 && fabs(r.misses_share - 1. / 3) < 1e-9 && r.enough);
    assert_true(isnan(r.miss_ratio) && r.references == 0);
    /* 200 of the 300 misses are not decided. */
    assert_share_interval(&r, 1. / 3 - 1.96 * 0.1 * 2 / 3, 1. / 3 + 1.96 * 0.1 * 2 / 3, 10);
    shares_set_far(s, far, 7);
    shares_result(s, 1, &r);
    assert_false(r.enough);
    shares_result(s, 0, &r);
    assert_true(fabs(r.miss_ratio - 0.2) < 1e-9 && fabs(r.ratio_high - 0.2 - 1.96 * 0.1 * 0.2) < 1e-9);
    shares_free(s);
}

/* Of intervals from random bursts, about 95% hold the true share. */
static void intervals_hold_the_truth(void **state)
{
    struct random_state random;
    int held = 0;
    (void)state;
    random_seed(&random, 3);
    for (int run = 0; run < 400; run++) {
        struct shares *s = shares_new(2, 0, 0, 0);
        struct shares_result r;
        for (int burst = 0; burst < 100; burst++) {
            /* Three kinds of burst: in one of them group 0 has 30 of 40 misses, in the others 0 of 10. */
            int kind = (int)random_below(&random, 3);
            shares_add(s, 0, 1000, kind == 0 ? 30 : 0, 0);
            shares_add(s, 1, 1000, 10, 0);
            shares_burst(s, 1 + (double)random_below(&random, 3));
        }
        shares_result(s, 0, &r);
        held += r.share_low <= 0.5 && 0.5 <= r.share_high; /* 30 of 60 misses of three bursts */
        shares_free(s);
    }
    assert_in_range(held, 360, 396);
}

/* Two bursts as in the essay of shares.c, beside 80 misses that are no sample, of which the group has 50: M =
 * 100, q = (50 + 10) / 100; residuals 4 - 6 and 6 - 6, around their mean -1 and 1; variance 2 * 2 / 100^2. */
static void a_part_that_is_no_sample(void **state)
{
    struct shares *s = shares_new(2, 0, 0, 0);
    struct shares_result result;
    (void)state;
    assert_non_null(s);
    shares_add(s, 0, 100, 50, 0);
    shares_add(s, 1, 100, 30, 0);
    assert_true(shares_exact(s) == 200);
    shares_result(s, 0, &result); /* nothing is known of the rest */
    assert_true(result.misses_share == 0.625 && !result.enough);
    assert_true(result.share_low == 0 && result.share_high == 1 && result.ratio_low == 0 &&
                result.ratio_high == 1);
    for (int burst = 0; burst < 2; burst++) {
        shares_add(s, 0, 10, burst ? 6 : 4, 0);
        shares_add(s, 1, 10, burst ? 4 : 6, 0);
        shares_burst(s, 1);
    }
    shares_result(s, 0, &result);
    assert_true(fabs(result.misses_share - 0.6) < 1e-12);
    assert_true(fabs(result.references - 120) < 1e-9);
    assert_true(fabs(result.miss_ratio - 0.5) < 1e-12);
    /* Two bursts represent the fifth of the misses that is a sample. */
    assert_share_interval(&result, 0.6 - 1.96 * 2 / 100, 0.6 + 1.96 * 2 / 100, 2 / 0.2);
    shares_total(s, &result);
    assert_true(fabs(result.misses - 100) < 1e-9);
    shares_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(octaves_have_the_histograms_edges),
        cmocka_unit_test(a_part_that_is_no_sample),
        cmocka_unit_test(numbers_of_variable_length),
        cmocka_unit_test(counts_survive_the_way_into_the_profile),
        cmocka_unit_test(near_reuses_are_sampled),
        cmocka_unit_test(shares_by_hand),
        cmocka_unit_test(shares_of_few_bursts),
        cmocka_unit_test(shares_of_what_is_not_decided),
        cmocka_unit_test(far_shares_by_hand),
        cmocka_unit_test(far_shares_by_depth),
        cmocka_unit_test(far_shares_by_samples),
        cmocka_unit_test(far_shares_by_tails),
        cmocka_unit_test(far_shares_by_short_tails),
        cmocka_unit_test(spread_of_bursts),
        cmocka_unit_test(far_misses_of_others),
        cmocka_unit_test(intervals_hold_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
