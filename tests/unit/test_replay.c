/* SPDX-License-Identifier: Apache-2.0 */
/* The burst method on a stream that is known in full: every burst and every outcome, looked up by hand. */
#include <errno.h>
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

#include "base/random.h"
#include "collect/replay/replay.h"

enum { N = 30000 };
static uint64_t address[N];
static uint16_t size[N];
static uint8_t rw[N];
static char folder[64];

static int setup(void **state)
{
    (void)state;
    struct random_state r;
    random_seed(&r, 3);
    for (size_t i = 0; i < N; i++) {
        /* Lines near and far, some references across two of them. */
        address[i] = random_below(&r, 3) ? random_below(&r, 4000) : random_below(&r, 400000);
        size[i] = random_below(&r, 10) ? 1 : 64;
        rw[i] = (uint8_t)(1 + random_below(&r, 2));
    }
    strcpy(folder, "/tmp/cachegram-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static int touches(size_t i, uint64_t line)
{
    return address[i] / 64 == line || (address[i] + size[i] - 1) / 64 == line;
}

/* Plays all into n samplers, in batches of odd sizes; their profiles, closed, are folder/0.db, 1.db, ... */
static void play(const struct replay_options *options, size_t n)
{
    struct error err;
    struct profile *p[8];
    struct replay *r = replay_new(&err);
    for (size_t i = 0; i < n; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%zu.db", folder, i);
        unlink(path);
        assert_int_equal(profile_create(path, &p[i], &err), 0);
        assert_int_equal(replay_add(r, &options[i], p[i], &err), 0);
    }
    for (size_t i = 0; i < N;) {
        size_t count = i % 7000 + 1 < N - i ? i % 7000 + 1 : N - i;
        assert_int_equal(replay_references(r, 0, address + i, size + i, rw + i, count, &err), 0);
        i += count;
    }
    assert_int_equal(replay_finish(r, &err), 0);
    replay_free(r);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(profile_close(p[i], 1, &err), 0);
}

/* Counts by outcome. Options without a clock error. */
static void check_profile(size_t number, const struct replay_options *o, uint64_t count[PROFILE_OUTCOMES])
{
    char path[128];
    struct error err;
    struct profile *p;
    struct profile_burst *bursts;
    struct profile_watch *watches;
    struct hist *h = malloc(sizeof *h);
    size_t nbursts, nwatches;
    memset(count, 0, PROFILE_OUTCOMES * sizeof *count);
    snprintf(path, sizeof path, "%s/%zu.db", folder, number);
    assert_int_equal(profile_open(path, &p, &err), 0);
    assert_int_equal(profile_bursts(p, &bursts, &nbursts, &err), 0);
    assert_int_equal(nbursts, o->bursts);
    for (size_t b = 0; b < nbursts; b++) {
        /* In its own part of the stream, in full. */
        size_t start = (size_t)bursts[b].start_refs, loads = 0, touched = 0;
        assert_true(start >= N * b / o->bursts && start + o->burst_refs <= N * (b + 1) / o->bursts);
        for (size_t i = start; i < start + o->burst_refs; i++) {
            loads += rw[i] & 1u;
            touched += address[i] / 64 == (address[i] + size[i] - 1) / 64 ? 1 : 2;
        }
        assert_true(bursts[b].references == o->burst_refs && bursts[b].loads == loads);
        assert_true(fabs(bursts[b].weight - (double)N / (double)o->bursts) < 1e-6);
        assert_int_equal(profile_get_hist(p, bursts[b].id, PROFILE_HIST_AGE, h, &err), 0);
        assert_int_equal(h->total, bursts[b].lines);
        uint64_t sum = 0;
        assert_int_equal(profile_get_hist(p, bursts[b].id, PROFILE_HIST_STACK, h, &err), 0);
        sum += h->total;
        assert_int_equal(profile_get_hist(p, bursts[b].id, PROFILE_HIST_FIRST, h, &err), 0);
        assert_int_equal(sum + h->total, touched);
    }
    assert_int_equal(profile_watches(p, &watches, &nwatches, &err), 0);
    assert_int_equal(nwatches, o->bursts * o->watch);
    for (size_t i = 0; i < nwatches; i++) {
        const struct profile_watch *w = &watches[i];
        size_t burst = (size_t)(w->burst - bursts[0].id);
        size_t end = (size_t)bursts[burst].start_refs + o->burst_refs, next = end;
        count[w->outcome]++;
        while (next < N && !touches(next, w->address / 64))
            next++;
        if (w->outcome == PROFILE_REUSED)
            assert_true(next < N && w->refs == (double)(next - end));
        else if (w->outcome == PROFILE_ENDED)
            assert_true(next == N && w->refs == (double)(N - end));
        else /* dropped at the beginning of a later burst, before the line was touched */
            assert_true(w->outcome == PROFILE_DROPPED && w->refs <= (double)(next - end));
        int at_burst = w->outcome != PROFILE_DROPPED;
        for (size_t b = burst + 1; b < nbursts && !at_burst; b++)
            at_burst = bursts[b].start_refs == (double)end + w->refs;
        assert_true(at_burst && w->clock_error == 0);
    }
    free(bursts);
    free(watches);
    free(h);
    assert_int_equal(profile_close(p, 0, &err), 0);
}

static const struct replay_options plain = {
    .references = N, .bursts = 20, .burst_refs = 500, .watch = 7, .line_bytes = 64, .seed = 1};

static void test_outcomes(void **state)
{
    (void)state;
    /* The last fills its parts to the reference, so that each burst begins where one ends. */
    struct replay_options o[3] = {plain, plain, plain};
    uint64_t count[PROFILE_OUTCOMES];
    o[1].drop_rate = 0.2;
    o[2].bursts = 30;
    o[2].burst_refs = N / 30;
    o[2].sets = 1;
    play(o, 3);
    check_profile(0, &o[0], count);
    assert_true(count[PROFILE_REUSED] > 60 && count[PROFILE_ENDED] > 10 && count[PROFILE_DROPPED] == 0);
    check_profile(1, &o[1], count);
    assert_true(count[PROFILE_REUSED] > 30 && count[PROFILE_ENDED] > 2 && count[PROFILE_DROPPED] > 30);
    check_profile(2, &o[2], count);
    assert_true(count[PROFILE_REUSED] > 60);
}

/* The same seed places bursts alike; the clock errs by no more than it may, and not always the same way. */
static void test_clock(void **state)
{
    (void)state;
    struct replay_options o[2] = {plain, plain};
    struct profile *p[2];
    struct profile_burst *b[2];
    struct profile_watch *w[2];
    struct error err;
    size_t nbursts, nwatches, faster = 0, slower = 0;
    o[1].clock_error = 0.2;
    play(o, 2);
    for (int i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%d.db", folder, i);
        assert_int_equal(profile_open(path, &p[i], &err), 0);
        assert_int_equal(profile_bursts(p[i], &b[i], &nbursts, &err), 0);
        assert_int_equal(profile_watches(p[i], &w[i], &nwatches, &err), 0);
    }
    for (size_t i = 1; i < nbursts; i++) {
        double right = b[0][i].start_refs - b[0][i - 1].start_refs;
        double wrong = b[1][i].start_refs - b[1][i - 1].start_refs;
        assert_true(fabs(wrong / right - 1) <= 0.2 + 1e-9);
        faster += wrong > 1.1 * right;
        slower += wrong < 0.9 * right;
    }
    assert_true(faster > 3 && slower > 3);
    for (size_t i = 0; i < nwatches; i++) {
        assert_true(w[0][i].address == w[1][i].address && w[0][i].outcome == w[1][i].outcome);
        assert_true(fabs(w[1][i].refs - w[0][i].refs) <= 0.2 * w[0][i].refs + 1e-6);
        assert_true(w[1][i].clock_error == 0.2);
    }
    for (int i = 0; i < 2; i++) {
        free(b[i]);
        free(w[i]);
        assert_int_equal(profile_close(p[i], 0, &err), 0);
    }
}

static void test_wrong_options(void **state)
{
    (void)state;
    char path[128];
    struct error err;
    struct profile *p;
    struct replay *r = replay_new(&err);
    struct replay_options o[6] = {plain, plain, plain, plain, plain, plain};
    snprintf(path, sizeof path, "%s/0.db", folder);
    unlink(path);
    assert_int_equal(profile_create(path, &p, &err), 0);
    o[0].burst_refs = N / 20 + 1;
    o[1].bursts = 0;
    o[2].drop_rate = 1.5;
    o[3].clock_error = 1;
    o[4].line_bytes = 48;
    o[5].references = 0;
    for (int i = 0; i < 6; i++)
        assert_int_equal(replay_add(r, &o[i], p, &err), -EINVAL);
    replay_free(r);
    assert_int_equal(profile_close(p, 1, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outcomes),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_wrong_options),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
