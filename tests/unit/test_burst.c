/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the profile keeps of bursts, against the same counted touch by touch: each burst by itself, whatever
 * the one before it was like.
 */
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
#include "collect/reduce/burst.h"

enum { MOST = 400000, LINES = 1 << 16 };

static uint64_t lines[MOST];
static uint64_t last[LINES]; /* touch, from 1, of each line */

/* What programs do: a few lines again and again, sweeps, string instructions, references across two lines. */
static void make_touches(struct random_state *r, size_t n, uint64_t reach)
{
    for (size_t i = 0; i < n;) {
        uint64_t line = random_below(r, reach), count = 1 + random_below(r, 40);
        unsigned kind = (unsigned)random_below(r, 5);
        if (kind == 4 && random_below(r, 20) == 0)
            count *= 500;
        for (uint64_t k = 0; k < count && i < n; k++) {
            uint64_t next = kind == 0   ? line % 20 /* hot */
                            : kind == 1 ? line + k  /* sweep */
                            : kind == 2 ? line + k % 2
                            : kind == 3 ? random_below(r, reach)
                                        : line + k / 8; /* a string, by words */
            lines[i++] = next % LINES;
        }
    }
}

struct expected {
    struct hist hist[PROFILE_HIST_KINDS];
    uint64_t lines;
};

static void count_touches(struct expected *e, size_t n)
{
    struct stackdist *sd = stackdist_new(NULL);
    assert_non_null(sd);
    memset(e, 0, sizeof *e);
    memset(last, 0, sizeof last);
    assert_int_equal(stackdist_touch_many(sd, lines, n, &e->hist[PROFILE_HIST_STACK], NULL, NULL, NULL, NULL),
                     0);
    for (size_t i = 0; i < n; i++) {
        uint64_t before = last[lines[i]];
        last[lines[i]] = i + 1;
        if (before == 0)
            hist_add(&e->hist[PROFILE_HIST_FIRST], e->lines++, 1);
        else
            hist_add(&e->hist[PROFILE_HIST_REUSE], i - before, 1);
    }
    for (uint64_t line = 0; line < LINES; line++)
        if (last[line] != 0)
            hist_add(&e->hist[PROFILE_HIST_AGE], n - last[line], 1);
    stackdist_free(sd);
}

static void check_survivors(const struct burst_summary *summary, const struct expected *e, size_t n)
{
    static uint8_t seen[LINES];
    const struct stackdist_survivor *s = summary->survivors;
    size_t count = summary->lines;
    assert_int_equal(count, e->lines);
    assert_int_equal(summary->touches, n);
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(seen[s[i].line]++, 0);
        assert_int_equal(s[i].age, n - last[s[i].line]);
    }
}

static void bursts_are_counted_separately(void **state)
{
    (void)state;
    /* Large ones leave data behind that small ones must not show; the last has lines beyond the exact bins.
     */
    static const struct {
        size_t n;
        uint64_t reach;
    } bursts[] = {{300, 40},    {MOST, LINES}, {1, 9},       {5000, 3000}, {100000, 500},
                  {513, LINES}, {70000, 6000}, {1024, 1024}, {0, 1},       {100000, 20000}};
    enum { N = sizeof bursts / sizeof bursts[0] };
    static struct expected expected[N];
    static struct hist got;
    struct random_state random;
    struct error err;
    struct profile *p;
    char path[] = "/tmp/cachegram-test-XXXXXX", name[64];

    assert_non_null(mkdtemp(path));
    snprintf(name, sizeof name, "%s/b.db", path);
    assert_int_equal(profile_create(name, &p, &err), 0);
    struct burst *b = burst_new(&err);
    assert_non_null(b);
    random_seed(&random, 7);
    for (size_t i = 0; i < N; i++) {
        size_t n = bursts[i].n;
        struct profile_burst row = {.process = 1, .references = n};
        make_touches(&random, n, bursts[i].reach);
        count_touches(&expected[i], n);
        assert_int_equal(burst_begin(b, i % 3 == 0, &err), 0);
        for (size_t at = 0, step; at < n; at += step) {
            step = 1 + (size_t)random_below(&random, 9000);
            step = step < n - at ? step : n - at;
            assert_int_equal(burst_touch(b, lines + at, step), 0);
        }
        struct burst_summary summary;
        assert_int_equal(burst_end(b, &summary), 0);
        check_survivors(&summary, &expected[i], n);
        assert_int_equal(burst_store(&summary, p, &row, &err), 0);
        assert_int_equal(row.id, i + 1);
        assert_int_equal(row.lines, expected[i].lines);
    }
    burst_free(b);
    assert_int_equal(profile_close(p, 1, &err), 0);

    assert_int_equal(profile_open(name, &p, &err), 0);
    for (size_t i = 0; i < N; i++) {
        for (int kind = 0; kind < PROFILE_HIST_EXPECTED; kind++) {
            assert_int_equal(profile_get_hist(p, i + 1, (enum profile_hist)kind, &got, &err), 0);
            assert_memory_equal(&got, &expected[i].hist[kind], sizeof got);
        }
        /* Conflicts move reuses from bin to bin, and lose none. */
        if (i % 3 == 0) {
            assert_int_equal(profile_get_sets(p, i + 1, 64, &got, &err), 0);
            assert_int_equal(got.total, expected[i].hist[PROFILE_HIST_STACK].total);
        }
    }
    profile_close(p, 0, NULL);
    unlink(name);
    rmdir(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bursts_are_counted_separately)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
