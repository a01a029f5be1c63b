/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of an agent that filters lines: counts, lines in the sample, and what is estimated from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/random.h"
#include "collect/records/decode.h"
#include "collect/records/filter.h"

#define AREA (1u << 16)
#define BLOCKS 100u
#define WORDS 60000u
#define LINE 64u

struct test {
    _Alignas(8) uint8_t area[AREA];
    uint32_t offsets[WIRE_MAX_BLOCKS];
    struct wire_block *block[BLOCKS];
    uint64_t words[WORDS], lines[1 << 20];
    size_t n, nlines;
    struct filter filter;
    struct decoder *decoder;
    struct decode_counts counts;
};

static int keep_lines(void *ctx, const uint64_t *lines, size_t n)
{
    struct test *t = ctx;
    assert_true(t->nlines + n <= sizeof(t->lines) / sizeof(t->lines[0]));
    memcpy(t->lines + t->nlines, lines, n * sizeof(*lines));
    t->nlines += n;
    return 0;
}

/* Blocks of 1 to 9 instructions, each with a load, every third one a store, too. Every tenth block has words:
 * a string instruction that copies bytes. */
static int setup(void **state)
{
    static const struct wire_ref copy = {
        .kind = WIRE_REF_REP, .flags = WIRE_REP_SRC | WIRE_REP_DST, .slot = 1, .size = 1, .elem_bytes = 1};
    struct test *t = calloc(1, sizeof(*t));
    uint8_t passes[WIRE_FILTER_CLASSES];
    struct error err;
    uint32_t used = 64;
    for (uint32_t id = 1; id < BLOCKS; id++) {
        uint16_t n = (uint16_t)(1 + id % 9);
        struct wire_block head = {.pc = id * 4096ul, .nwords = 1, .nrefs = n, .ninsns = n, .loads = n};
        if (id % 10 == 0)
            head = (struct wire_block){.pc = id * 4096ul, .nwords = 6, .nrefs = 1, .ninsns = 1, .special = 1};
        struct wire_block *b = memcpy(t->area + used, &head, sizeof(head));
        t->block[id] = b;
        t->offsets[id] = used;
        for (uint32_t i = 0; i < b->nrefs; i++)
            b->refs[i] = (struct wire_ref){.rw = (uint8_t)(i % 3 == 2 ? WIRE_LOAD | WIRE_STORE : WIRE_LOAD),
                                           .size = 8,
                                           .insn = (uint8_t)i};
        if (b->special)
            b->refs[0] = copy;
        used += (uint32_t)(sizeof(head) + b->nrefs * sizeof(struct wire_ref));
    }
    assert_true(filter_choose(passes, 0.25, 3) == 0.25);
    filter_init(&t->filter, passes);
    const struct decode_source source = {t->area, sizeof(t->area), t->offsets};
    t->decoder = decoder_new(LINE, &source, &err);
    assert_non_null(t->decoder);
    assert_int_equal(decoder_filter(t->decoder, &t->filter), 0);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct test *t = *state;
    decoder_free(t->decoder);
    free(t);
    return 0;
}

static void put_header(struct test *t, uint32_t id)
{
    t->words[t->n++] = WIRE_FILTERED | id | (uint64_t)t->block[id]->nwords << WIRE_ID_BITS;
}

/* Bytes copied, from one address to another. */
static void put_copy(struct test *t, uint64_t from, uint64_t to, uint64_t bytes)
{
    const uint64_t words[] = {bytes, from, to, 0, to + bytes};
    put_header(t, 10);
    memcpy(t->words + t->n, words, sizeof(words));
    t->n += 5;
}

static void decode(struct test *t, uint32_t last_insns)
{
    const struct wire_desc desc = {.last_insns = last_insns};
    t->nlines = 0;
    t->counts = (struct decode_counts){0};
    assert_int_equal(decode_buffer(t->decoder, &desc, t->words, t->n, keep_lines, t, &t->counts), 0);
}

static void test_counts_and_lines(void **state)
{
    struct test *t = *state;
    static uint64_t expected[WORDS];
    struct random_state random;
    uint64_t loads = 0, stores = 0, instructions = 0, records = 0;
    size_t n = 0;
    random_seed(&random, 5);
    while (t->n < WORDS - 10) {
        uint32_t id = 1 + (uint32_t)random_below(&random, BLOCKS - 1);
        if (id % 10 == 0)
            continue;
        put_header(t, id);
        records++;
        loads += t->block[id]->nrefs;
        stores += t->block[id]->nrefs / 3;
        instructions += t->block[id]->ninsns;
        for (uint64_t addresses = random_below(&random, 3); addresses > 0; addresses--) {
            uint64_t address = random_next(&random) >> 17;
            t->words[t->n++] = address;
            expected[n++] = address / LINE;
        }
    }
    for (int repeat = 0; repeat < 2; repeat++) { /* templates are new, and known */
        decode(t, UINT32_MAX);
        assert_int_equal(t->nlines, n);
        assert_memory_equal(t->lines, expected, n * sizeof(*expected));
        assert_int_equal(t->counts.loads, loads);
        assert_int_equal(t->counts.stores, stores);
        assert_int_equal(t->counts.references, loads + stores);
        assert_int_equal(t->counts.touches, loads + stores);
        assert_int_equal(t->counts.instructions, instructions);
        assert_int_equal(t->counts.records, records);
        assert_int_equal(t->counts.bad_records, 0);
    }
}

/* A record of all references: the collector leaves out the lines that do not pass, however many there are. */
static void test_whole_records(void **state)
{
    struct test *t = *state;
    enum { BYTES = 1 << 20, FROM = 1 << 24, TO = 1 << 26 };
    put_header(t, 1);
    put_copy(t, FROM, TO, BYTES);
    put_header(t, 1);
    t->words[t->n++] = 77 * LINE;
    decode(t, UINT32_MAX);
    assert_int_equal(t->counts.references, 2 * BYTES + 4);
    assert_int_equal(t->counts.touches, 2 * BYTES + 4);
    size_t at = 0;
    for (uint64_t i = 0; i < BYTES; i++)
        for (int side = 0; side < 2; side++) {
            uint64_t line = ((side ? TO : FROM) + i) / LINE;
            if (filter_passes(&t->filter, line))
                assert_int_equal(t->lines[at++], line);
        }
    assert_int_equal(t->lines[at++], 77); /* as the agent chose it */
    assert_int_equal(t->nlines, at);
}

/* A quarter of the lines is in the sample, and one group in seven is examined. */
static void test_references_to_two_lines(void **state)
{
    struct test *t = *state;
    struct wire_ref *r = t->block[8]->refs;
    for (uint8_t i = 0; i < 9; i++)
        r[i].slot2 = i < 3 ? 5 : 6;
    r[0].disp = 0, r[0].size = 1;
    r[1].disp = 8, r[1].size = 8;
    r[2].disp = 16, r[2].size = 16; /* read and written */
    for (uint64_t offset = 0; offset < LINE; offset++) {
        uint64_t two = (offset + 8) % LINE + 8 > LINE ? 1 : 0;
        two += (offset + 16) % LINE + 16 > LINE ? 2 : 0;
        t->n = 0;
        for (int times = 0; times < 7; times++) {
            put_header(t, 8);
            t->words[t->n++] = (1000 * LINE + offset) | UINT64_C(5) << WIRE_FILTER_ADDRESS_BITS;
        }
        decode(t, UINT32_MAX);
        assert_int_equal(t->nlines, 7);
        assert_int_equal(t->lines[6], 1000);
        assert_int_equal(t->counts.references, 7 * 12);
        assert_int_equal(t->counts.touches, 7 * 12 + 4 * 7 * two);
    }
}

/* Of the last block, only some instructions were executed. */
static void test_last_block(void **state)
{
    struct test *t = *state;
    put_header(t, 8); /* nine loads, three stores */
    put_header(t, 8);
    t->words[t->n++] = 5 * LINE;
    decode(t, 4);
    assert_int_equal(t->counts.loads, 9 + 4);
    assert_int_equal(t->counts.stores, 3 + 1);
    assert_int_equal(t->counts.touches, 17);
    assert_int_equal(t->counts.instructions, 9 + 4);
    t->n = 0;
    put_header(t, 8);
    put_copy(t, 1 << 24, 1 << 26, 100);
    t->n -= 2; /* the words after the instruction are missing, as is the instruction */
    decode(t, 0);
    assert_int_equal(t->counts.references, 12);
}

/* The target may have written anything. */
static void test_corrupt_words(void **state)
{
    struct test *t = *state;
    struct random_state random;
    random_seed(&random, 9);
    for (int round = 0; round < 50; round++) {
        t->n = 1000;
        for (size_t i = 0; i < t->n; i++)
            t->words[i] = random_below(&random, 2) ? random_next(&random)
                                                   : WIRE_FILTERED | random_below(&random, 1u << 31);
        decode(t, (uint32_t)random_below(&random, 20));
    }
    t->n = 0;
    t->words[t->n++] = WIRE_FILTERED | 20 | 3u << WIRE_ID_BITS;          /* another length */
    t->words[t->n++] = WIRE_FILTERED | (BLOCKS + 1) | 1 << WIRE_ID_BITS; /* unknown */
    put_header(t, 1);
    decode(t, UINT32_MAX);
    assert_int_equal(t->counts.bad_records, 2);
    assert_int_equal(t->counts.references, 2);
}

/* Each share of the classes is a share of the lines, in blocks and at any stride. */
static void test_filter(void **state)
{
    struct test *t = *state;
    enum { LINES = 1 << 16 };
    for (uint64_t stride = 1; stride < 1 << 20; stride = stride * 3 + stride % 5) {
        uint64_t passing = 0;
        for (uint64_t i = 0; i < LINES; i++)
            passing += (uint64_t)filter_passes(&t->filter, (0x55000000000u + i * stride * LINE) / LINE);
        assert_in_range(passing, LINES / 4 - LINES / 50, LINES / 4 + LINES / 50);
    }
    uint8_t passes[WIRE_FILTER_CLASSES], others[WIRE_FILTER_CLASSES];
    assert_true(filter_choose(passes, 1.0 / 1000, 1) == 1.0 / 256);
    assert_true(filter_choose(passes, 1.0 / 3, 1) == 86.0 / 256);
    filter_choose(others, 1.0 / 3, 2);
    assert_memory_not_equal(passes, others, sizeof(passes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counts_and_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_whole_records, setup, teardown),
        cmocka_unit_test_setup_teardown(test_references_to_two_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_last_block, setup, teardown),
        cmocka_unit_test_setup_teardown(test_corrupt_words, setup, teardown),
        cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
