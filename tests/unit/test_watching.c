/* SPDX-License-Identifier: Apache-2.0 */
/* What watching is made of, outside the agent: tails of bursts, mappings, rates and the clock made of them.
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/random.h"
#include "collect/watch/burst-tail.h"
#include "collect/watch/distinct.h"
#include "collect/objects/vma.h"
#include "model/clock.h"
#include "model/rates.h"

static void looks_through_the_tail_of_a_burst(void **state)
{
    (void)state;
    enum { RECORDS = 1000, ID = 5 };
    static uint32_t offset[WIRE_MAX_BLOCKS];
    static uint64_t words[2 * RECORDS];
    _Alignas(16) char templates[4096] = {0};
    struct {
        struct wire_block head;
        struct wire_ref ref;
    } block = {.head = {.pc = 0x1000, .nwords = 2, .nrefs = 1, .ninsns = 1},
               .ref = {.size = 8, .rw = WIRE_LOAD, .slot = 1, .pc_offset = 6}};
    memcpy(templates + 64, &block, sizeof block);
    offset[ID] = 64;
    for (size_t i = 0; i < RECORDS; i++) { /* lines 100 to 199, again and again */
        words[2 * i] = ID | 2 << WIRE_ID_BITS;
        words[2 * i + 1] = UINT64_C(64) * (100 + i % 100);
    }
    assert_int_equal(decode_whole_records(words, 2 * RECORDS, 2 * RECORDS), 2 * RECORDS);
    assert_int_equal(decode_whole_records(words, 2 * RECORDS, 301), 300);
    assert_int_equal(decode_whole_records(words, 2 * RECORDS, 0), 0);

    struct decode_source source = {templates, sizeof templates, offset};
    struct wire_desc desc = {.last_insns = UINT32_MAX};
    struct decoder *d = decoder_new(64, &source, NULL);
    struct burst_tail *t = burst_tail_new();
    assert_true(d != NULL && t != NULL);
    for (int round = 0; round < 2; round++) { /* what it found once is forgotten */
        burst_tail_begin(t, NULL, 0);
        burst_tail_follow(t, 150);
        burst_tail_follow(t, 250);
        burst_tail_follow(t, 150 + (uint64_t)round);
        /* From line 120 on. */
        assert_int_equal(burst_tail_decode(t, d, &desc, words + 40, 2 * RECORDS - 40, UINT64_MAX), 0);
        assert_int_equal(burst_tail_touches(t), RECORDS - 20);
        assert_int_equal(burst_tail_steps(t), RECORDS - 20);
        assert_int_equal(burst_tail_find(t, 150)->before, 30);
        assert_int_equal(burst_tail_find(t, 150)->pc, 0x1006);
        assert_null(burst_tail_find(t, 250));
        assert_int_equal(burst_tail_find(t, 151) != NULL, round);
    }
    /* Before the tail touches line 150 of the burst (age 5) it touches lines 120 to 149, of which the burst
     * touched ten since then, and line 120 before that. */
    struct stackdist_survivor survivors[12] = {{150, 5}, {120, 9}};
    for (uint64_t i = 0; i < 10; i++)
        survivors[2 + i] = (struct stackdist_survivor){140 + i, 3};
    burst_tail_begin(t, survivors, 12);
    assert_int_equal(burst_tail_decode(t, d, &desc, words + 40, 2 * RECORDS - 40, UINT64_MAX), 0);
    assert_true(burst_tail_growth(t, 5, 30) == 20 && burst_tail_growth(t, 5, 61) == 50);
    assert_true(burst_tail_growth(t, 2, 30) == 30 && burst_tail_growth(t, 10, 30) == 19);
    /* More lines than there is room for are ignored; the tail ends after so many touches. */
    burst_tail_begin(t, NULL, 0);
    for (uint64_t line = 0; line < 2 * TAIL_MOST_LINES; line++)
        burst_tail_follow(t, 100 + line);
    assert_int_equal(burst_tail_decode(t, d, &desc, words, 2 * RECORDS, 10), 0);
    assert_true(burst_tail_touches(t) > 10);
    assert_int_equal(burst_tail_find(t, 100)->before, 0);
    burst_tail_free(t);
    decoder_free(d);
}

/* A sample of the lines, when there are many. */
/* Burst and tail touch lines at random, the tail others too. Distances are compared with those counted by
 * hand. */
static void finds_distances_in_the_tail(void **state)
{
    enum { BURST = 400, TAIL = 600 };
    static struct distinct_touched touched[DISTINCT_LISTED];
    struct distinct *d = distinct_new();
    uint64_t line[BURST + TAIL], represented;
    struct random_state random;
    unsigned n = 0, found;
    (void)state;
    assert_non_null(d);
    random_seed(&random, 3);
    for (unsigned i = 0; i < BURST + TAIL; i++)
        line[i] = (i < BURST ? 0 : 100) + random_below(&random, 300);
    for (unsigned i = 0; i < BURST; i++) {
        unsigned next = i + 1;
        while (next < BURST && line[next] != line[i])
            next++;
        if (next == BURST)
            distinct_survivor(d, line[i], BURST - 1 - i);
    }
    for (unsigned i = BURST; i < BURST + TAIL; i++)
        distinct_touch(d, line[i], i - BURST, i);
    found = distinct_touched(d, touched, &represented);
    assert_int_equal(represented, 1);
    for (unsigned i = BURST; i < BURST + TAIL; i++) {
        unsigned last = i, others = 0, entry = 0;
        while (last > 0 && line[last - 1] != line[i])
            last--;
        if (last > BURST)
            continue; /* not the first one */
        for (unsigned k = last; k < i; k++) {
            unsigned seen = last;
            while (line[seen] != line[k])
                seen++;
            others += seen == k;
            seen = BURST;
            while (seen < k && line[seen] != line[k])
                seen++;
            entry += k >= BURST && seen == k;
        }
        assert_true(n < found);
        assert_int_equal(touched[n].line, line[i]);
        assert_int_equal(touched[n].touch, i);
        assert_int_equal(touched[n].entry, entry);
        assert_int_equal(touched[n].in_burst, last > 0);
        assert_int_equal(touched[n++].distance, others);
    }
    assert_int_equal(n, found);
    distinct_reset(d); /* a sample: 20,000 lines, the first 10,000 of them again in the same order */
    for (uint64_t i = 0; i < 20000; i++)
        distinct_survivor(d, i, 19999 - i);
    for (uint64_t i = 0; i < 10000; i++)
        distinct_touch(d, i, i, 0);
    found = distinct_touched(d, touched, &represented);
    assert_int_equal(represented, 64);
    assert_in_range(found * represented, 7000, 13000);
    for (unsigned i = 0; i < found; i++)
        assert_in_range(touched[i].distance, 16000, 24000);
    distinct_free(d);
}

static void counts_distinct_lines(void **state)
{
    (void)state;
    struct distinct *d = distinct_new();
    assert_non_null(d);
    for (uint64_t i = 0; i < 6000; i++)
        distinct_survivor(d, 3 * i, 6000 - i);
    for (uint64_t i = 0; i < 200000; i++)
        distinct_touch(d, i / 2 * 3, i, 0);
    assert_in_range((uint64_t)distinct_growth(d, 0, 200000), 93000, 107000);
    assert_in_range((uint64_t)distinct_growth(d, 0, 100000), 46000, 54000);
    assert_in_range((uint64_t)distinct_growth(d, 6001, 100000), 40000, 48000);
    distinct_reset(d);
    distinct_touch(d, 7, 0, 0);
    assert_true(distinct_growth(d, 0, 1) == 1 && distinct_growth(d, 0, 0) == 0);
    distinct_free(d);
}

static void finds_mappings(void **state)
{
    (void)state;
    uint8_t *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    assert_int_equal(mprotect(p + 4096, 4096, PROT_READ), 0);
    struct vmas *v = vmas_new((uint32_t)getpid());
    struct vma found;
    char on_stack;
    assert_non_null(v);
    vmas_refresh(v);
    assert_int_equal(vmas_find(v, (uint64_t)(uintptr_t)p + 4100, &found), 0);
    assert_true(found.start == (uint64_t)(uintptr_t)p + 4096 && found.end == found.start + 4096);
    assert_true(found.protection == PROT_READ && !found.shared && found.name[0] == '\0');
    assert_int_equal(vmas_find(v, (uint64_t)(uintptr_t)&on_stack, &found), 0);
    assert_string_equal(found.name, "[stack]");
    assert_int_equal(vmas_find(v, (uint64_t)(uintptr_t)&finds_mappings, &found), 0);
    assert_true(found.protection == (PROT_READ | PROT_EXEC) && found.name[0] == '/');
    assert_true(vmas_find(v, 64, &found) < 0);
    assert_int_equal(vmas_asynchronous(v), 0);
    vmas_free(v);
    assert_null(vmas_new(UINT32_MAX));
    munmap(p, 3 * 4096);
}

static void sees_what_others_write_to(void **state)
{
    (void)state;
    struct vmas *v = vmas_new((uint32_t)getpid());
    assert_non_null(v);
    uint64_t before = vmas_pages(v);
    assert_true(before > 0);
    void *private = mmap(NULL, 64 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(private != MAP_FAILED && vmas_pages(v) == before);
    void *shared = mmap(NULL, 64 << 12, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED && vmas_pages(v) == before + 64); /* "/dev/zero (deleted)" */
    assert_int_equal(vmas_asynchronous(v), 0);
    before = vmas_pages(v); /* to read the list may have taken memory, of any kind under sanitizers */
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, 1, &context) == 0) { /* forbidden in some containers */
        assert_true(vmas_pages(v) > before);
        assert_int_equal(vmas_asynchronous(v), 1);
        assert_int_equal(syscall(SYS_io_destroy, context), 0);
        assert_int_equal(vmas_asynchronous(v), 0);
    }
    munmap(private, 64 << 12);
    before = vmas_pages(v);
    munmap(shared, 64 << 12);
    assert_true(vmas_pages(v) == before - 64);
    vmas_free(v);
}

static void clock_integrates_rates(void **state)
{
    (void)state;
    const struct clock_knot knots[] = {{0, 3000, 4}, {0, 1000, 2}, {1, 500, 1}, {0, 2000, NAN}, {1, NAN, 9}};
    struct clock *c = clock_new(knots, sizeof(knots) / sizeof(knots[0]));
    assert_non_null(c);
    assert_true(fabs(clock_refs(c, 0, 0, 1000) - 2000) < 1e-9);    /* before the first: its rate */
    assert_true(fabs(clock_refs(c, 0, 1000, 3000) - 6000) < 1e-9); /* between: linear, 3 on average */
    assert_true(fabs(clock_refs(c, 0, 1000, 2000) - 2500) < 1e-9);
    assert_true(fabs(clock_refs(c, 0, 3000, 3500) - 2000) < 1e-9); /* after the last */
    assert_true(fabs(clock_refs(c, 1, 100, 900) - 800) < 1e-9);
    assert_true(clock_refs(c, 7, 0, 100) == 100 * CLOCK_NOMINAL_RATE);
    assert_true(clock_refs(c, 0, 500, 400) == 0);
    clock_free(c);
}

static void no_burst_has_half_of_the_weight(void **state)
{
    (void)state;
    struct rates_pair near[101];
    for (size_t i = 0; i < 101; i++) /* slow code most of the time, but most references are in fast code */
        near[i] = i < 70 ? (struct rates_pair){0.1, 0.1, 0} : (struct rates_pair){4, 3, 0};
    assert_int_equal(rates_bound(near, 101), 0);
    for (size_t i = 0; i < 101; i++)
        assert_true(near[i].near_per_ns == (i < 70 ? 0.1 : 4));
    near[0].near_per_ns = 172; /* by its stretch */
    near[80] = (struct rates_pair){172, 100, 0};
    near[81].near_per_ns = 9.5; /* by the median, 4 */
    near[82] = (struct rates_pair){3, NAN, 0};
    near[83] = (struct rates_pair){NAN, 3, 0};
    assert_int_equal(rates_bound(near, 101), 0);
    assert_true(fabs(near[0].near_per_ns - 0.3) < 1e-9 && near[81].near_per_ns == 9);
    assert_true(near[80].near_per_ns == 10);
    assert_true(near[82].near_per_ns == 3 && isnan(near[83].near_per_ns));
    struct rates_pair one = {5, 4, 0};
    assert_int_equal(rates_bound(&one, 1), 0);
    assert_true(one.near_per_ns == 5);
    assert_int_equal(rates_bound(&one, 0), 0);
}

static void missing_rates_are_those_of_like_bursts(void **state)
{
    (void)state;
    struct rates_pair rates[] = {
        {4, 3, 0.01},         {0.05, 0.06, 0.9}, {NAN, NAN, 1}, /* as the one before */
        {NAN, 2, 0.001},      {NAN, NAN, 0.002},                /* likewise */
        {NAN, NAN, 0},        {7, 7, 0},                        /* not placed by time */
        {NAN, NAN, 0.000001},
    };
    assert_int_equal(rates_fill(rates, 8), 0);
    assert_true(isnan(rates[2].near_per_ns) && rates[2].refs_per_ns == 0.05);
    assert_true(rates[4].refs_per_ns == 2 && rates[7].refs_per_ns == 2);
    assert_true(isnan(rates[5].refs_per_ns) && rates[0].refs_per_ns == 3 && rates[3].refs_per_ns == 2);
    struct rates_pair none = {NAN, NAN, 0.1};
    assert_int_equal(rates_fill(&none, 1), 0);
    assert_true(isnan(none.refs_per_ns));
    /* The third is most like the second, but that has no rate of its own: the last one is next. */
    struct rates_pair chain[] = {{1, 1, 0.1}, {NAN, NAN, 0.2}, {NAN, NAN, 0.27}, {10, 10, 0.5}};
    assert_int_equal(rates_fill(chain, 4), 0);
    assert_true(chain[1].refs_per_ns == 1 && chain[2].refs_per_ns == 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_through_the_tail_of_a_burst),
        cmocka_unit_test(finds_distances_in_the_tail),
        cmocka_unit_test(counts_distinct_lines),
        cmocka_unit_test(finds_mappings),
        cmocka_unit_test(sees_what_others_write_to),
        cmocka_unit_test(clock_integrates_rates),
        cmocka_unit_test(no_burst_has_half_of_the_weight),
        cmocka_unit_test(missing_rates_are_those_of_like_bursts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
