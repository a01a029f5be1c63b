/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a burst: survivors and their choice, distances within sets; against brute force. */
#include <errno.h>
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
#include "collect/watch/watch.h"
#include "sim/setdist-internal.h"
#include "not_here.h"

#define TOUCHES 4000u

/* A random walk over some lines, with far jumps: near and far reuses, lines with large numbers. */
static void make_lines(uint64_t *lines, size_t n, uint64_t seed)
{
    struct random_state r;
    uint64_t at = UINT64_C(1) << 40;
    random_seed(&r, seed);
    for (size_t i = 0; i < n; i++) {
        if (random_below(&r, 50) == 0)
            at = (UINT64_C(1) << 40) + random_below(&r, 20) * 64;
        else
            at += random_below(&r, 5) - 2;
        lines[i] = at;
    }
}

static uint64_t distinct(const uint64_t *lines, size_t from, size_t to, uint64_t mask, uint64_t like)
{
    uint64_t count = 0;
    for (size_t i = from; i < to; i++) {
        int last = ((lines[i] ^ like) & mask) == 0;
        for (size_t k = i + 1; k < to && last; k++)
            last = lines[k] != lines[i];
        count += (uint64_t)last;
    }
    return count;
}

static size_t last_touch(const uint64_t *lines, size_t n, uint64_t line)
{
    size_t i = n;
    while (i-- > 0)
        if (lines[i] == line)
            return i;
    fail_msg("line %llx was never touched", (unsigned long long)line);
    return 0;
}

static void test_survivors(void **state)
{
    (void)state;
    static uint64_t lines[TOUCHES];
    static struct stackdist_survivor out[TOUCHES];
    struct stackdist *sd = stackdist_new(NULL);
    for (uint64_t seed = 1; seed < 4; seed++) { /* the second time there is a past to forget */
        make_lines(lines, TOUCHES, seed);
        stackdist_reset(sd);
        assert_int_equal(stackdist_touch_many(sd, lines, TOUCHES, NULL, NULL, NULL, NULL, NULL), 0);
        size_t n = (size_t)stackdist_lines(sd);
        assert_int_equal(n, distinct(lines, 0, TOUCHES, 0, 0));
        assert_true(n > 300); /* some are behind the front */
        stackdist_survivors(sd, out);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(out[i].age, TOUCHES - 1 - last_touch(lines, TOUCHES, out[i].line));
            for (size_t k = 0; k < i; k++)
                assert_true(out[k].line != out[i].line);
        }
    }
    stackdist_free(sd);
}

static void sets_agree_with_twin(setdist_touch_fn *touch)
{
    static uint64_t lines[TOUCHES], count[SETDIST_LEVELS + 1][SETDIST_WAYS];
    struct setdist *s = setdist_new(NULL);
    s->touch = touch;
    for (uint64_t seed = 1; seed < 4; seed++) {
        if (seed == 3)
            s->next = (uint32_t)INT32_MAX + 1; /* numbers begin anew */
        make_lines(lines, TOUCHES, seed);
        memset(count, 0, sizeof count);
        for (size_t j = 0; j < TOUCHES; j++) {
            size_t i = j;
            while (i > 0 && lines[i - 1] != lines[j])
                i--;
            if (i == 0)
                continue;
            for (unsigned level = 1; level <= SETDIST_LEVELS; level++) {
                uint64_t d = distinct(lines, i, j, (UINT64_C(1) << level) - 1, lines[j]);
                if (d < SETDIST_WAYS)
                    count[level][d]++;
            }
        }
        setdist_reset(s);
        /* Others before, once each: they fill the table, and make no difference to what comes after them. */
        for (uint64_t other = 1 << 20; other < (1 << 20) + 6000; other++)
            assert_int_equal(setdist_touch_many(s, &other, 1), 0);
        assert_int_equal(setdist_touch_many(s, lines, 1000), 0);
        assert_int_equal(setdist_touch_many(s, lines + 1000, TOUCHES - 1000), 0);
        for (unsigned level = 1; level <= SETDIST_LEVELS; level++)
            for (unsigned d = 0; d < SETDIST_WAYS; d++)
                assert_int_equal(setdist_count(s, level, d), count[level][d]);
    }
    setdist_free(s);
}

static void test_sets(void **state)
{
    (void)state;
    sets_agree_with_twin(setdist_touch_any);
}

static void test_sets_avx512(void **state)
{
    (void)state;
    if (!setdist_has_avx512()) {
        not_tested_here(__func__, "the processor has no AVX-512");
        return;
    }
    sets_agree_with_twin(setdist_touch_avx512);
}

/* Ends the burst, stores it, chooses: the number of requests. */
static size_t choose(struct burst *b, struct profile *p, struct profile_burst *row, struct watches *w,
                     size_t followed, int unwatched, const struct watch_request **requests)
{
    struct burst_summary s;
    struct error err;
    assert_int_equal(burst_end(b, &s), 0);
    assert_int_equal(burst_store(&s, p, row, &err), 0);
    const struct watch_burst burst = {.burst = row->id,
                                      .survivors = s.survivors,
                                      .n = s.lines,
                                      .followed = followed,
                                      .unwatched = unwatched};
    long n = watches_choose(w, &burst, requests, &err);
    assert_true(n >= 0);
    return (size_t)n;
}

static void test_choice(void **state)
{
    (void)state;
    static uint64_t lines[TOUCHES];
    char path[] = "/tmp/cachegram-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    const struct watch_request *requests;
    struct error err;
    struct profile *p;
    assert_int_equal(profile_create(path, &p, &err), 0);
    struct watches *w = watches_new(p, 5, 64, 1, &err);
    struct burst *b = burst_new(&err);
    /* Lines 0 .. 9 once each, then 9, 8, .. 0: positions are 0 .. 9 with line = position. */
    uint64_t chosen[10] = {0}, first[10] = {0};
    for (uint64_t line = 0; line < 10; line++)
        lines[line] = line, lines[19 - line] = line;
    for (int round = 0; round < 2000; round++) {
        struct profile_burst row = {.process = 3, .tid = 4, .references = 20};
        assert_int_equal(burst_begin(b, round == 0, &err), 0);
        assert_int_equal(burst_touch(b, lines, 20), 0);
        assert_int_equal(choose(b, p, &row, w, 0, 0, &requests), 5);
        for (size_t i = 0; i < 5; i++) {
            const struct watch_request *r = &requests[i];
            assert_true(r->address == 64 * r->position && r->age == r->position && r->position < 10);
            for (size_t k = 0; k < i; k++)
                assert_true(requests[k].position != r->position);
            chosen[r->position]++;
        }
        first[requests[0].position]++;
    }
    /* 1000 +- 22 and 200 +- 13: five standard deviations. */
    for (int i = 0; i < 10; i++)
        assert_true(chosen[i] > 888 && chosen[i] < 1112 && first[i] > 133 && first[i] < 267);
    assert_int_equal(watches_outcome(w,
                                     &(struct profile_watch){.id = requests[0].id,
                                                             .outcome = PROFILE_REUSED,
                                                             .refs = 7,
                                                             .cpu_ns = 50,
                                                             .translated_refs = 3,
                                                             .clock_error = 0.5},
                                     &err),
                     0);
    /* No more than there are. */
    watches_set_per_burst(w, 40);
    struct profile_burst row = {.references = 20};
    assert_int_equal(burst_begin(b, 0, &err), 0);
    assert_int_equal(burst_touch(b, lines, 20), 0);
    assert_int_equal(choose(b, p, &row, w, 0, 0, &requests), 10);
    /* Those to be followed in the tail come after those to be watched, and are drawn alike. */
    uint64_t followed[10] = {0};
    watches_set_per_burst(w, 2);
    for (int round = 0; round < 1000; round++) {
        row = (struct profile_burst){.references = 20};
        assert_int_equal(burst_begin(b, 0, &err), 0);
        assert_int_equal(burst_touch(b, lines, 20), 0);
        assert_int_equal(choose(b, p, &row, w, 3, round % 2, &requests), round % 2 ? 3 : 5);
        for (int i = round % 2 ? 0 : 2, k = 0; k < 3; k++) {
            assert_true(requests[i + k].in_tail);
            followed[requests[i + k].position]++;
        }
        assert_true(round % 2 || (!requests[0].in_tail && !requests[1].in_tail));
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(followed[i], 220, 380);
    row = (struct profile_burst){.references = 20};
    assert_int_equal(burst_begin(b, 0, &err), 0);
    assert_int_equal(burst_touch(b, lines, 20), 0);
    assert_int_equal(choose(b, p, &row, w, 16, 0, &requests), 10); /* no more than there are */
    /* All sets have the same ten reuses. */
    struct hist *h = malloc(sizeof *h);
    assert_int_equal(profile_get_sets(p, 1, 2, h, &err), 0);
    assert_true(h->total == 10 && h->count[0] == 2 && h->count[4] == 2 && h->count[5] == 0);
    assert_int_equal(profile_get_sets(p, 2, 2, h, &err), -ENOENT);
    free(h);
    burst_free(b);
    watches_free(w);
    assert_int_equal(profile_close(p, 1, &err), 0);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_survivors),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_sets_avx512),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
