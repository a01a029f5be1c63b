/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-made templates and buffers of every kind of reference, decoded and compared with a list. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/random.h"
#include "collect/records/decode-internal.h"
#include "not_here.h"

#define AREA 65536u
#define HEADER(id, nwords) ((uint64_t)(id) | (uint64_t)(nwords) << WIRE_ID_BITS)
#define CHECK(...)                                                  \
    do {                                                            \
        const uint64_t wanted[] = {__VA_ARGS__};                    \
        check_lines(t, wanted, sizeof(wanted) / sizeof(wanted[0])); \
    } while (0)

struct test {
    _Alignas(8) uint8_t area[AREA];
    uint32_t used;
    uint32_t *offsets;
    struct decoder *decoder;
    uint64_t lines[1 << 20];
    size_t n;
    size_t batch_lines; /* of keep_repeats: those that were not repeated */
    struct decode_counts counts;
    int has_strings;         /* some block has a repeated string instruction */
    uint32_t sites[1 << 20]; /* of lines, in the decoding that notes them */
    struct decode_sites noted;
    int64_t touches[1 << 16]; /* by site; blocks of these tests are below 256 */
};

static int setup(void **state)
{
    struct test *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    t->offsets = calloc(WIRE_MAX_BLOCKS, sizeof(*t->offsets));
    assert_non_null(t->offsets);
    t->used = 64;
    struct decode_source source = {t->area, AREA, t->offsets};
    t->decoder = decoder_new(64, &source, NULL);
    assert_non_null(t->decoder);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct test *t = *state;
    decoder_free(t->decoder);
    free(t->offsets);
    free(t);
    return 0;
}

static void block(struct test *t, uint32_t id, uint16_t nwords, const struct wire_ref *refs, uint16_t nrefs)
{
    struct wire_block head = {.nwords = nwords, .nrefs = nrefs, .ninsns = 4};
    memcpy(t->area + t->used, &head, sizeof(head));
    memcpy(t->area + t->used + sizeof(head), refs, nrefs * sizeof(*refs));
    for (uint16_t i = 0; i < nrefs; i++)
        t->has_strings |= refs[i].kind == WIRE_REF_REP;
    t->offsets[id] = t->used;
    t->used += (uint32_t)((sizeof(head) + nrefs * sizeof(*refs) + 7) / 8 * 8);
}

static int keep(void *ctx, const uint64_t *lines, size_t n)
{
    struct test *t = ctx;
    assert_true(t->n + n <= sizeof(t->lines) / sizeof(t->lines[0]));
    memcpy(t->lines + t->n, lines, n * sizeof(*lines));
    t->n += n;
    return 0;
}

static int keep_sites(void *ctx, const uint64_t *lines, size_t n)
{
    struct test *t = ctx;
    assert_memory_equal(lines, t->lines + t->n, n * sizeof(*lines));
    memcpy(t->sites + t->n, decoder_touches(t->decoder), n * sizeof(*t->sites));
    t->n += n;
    return 0;
}

static void more_touches(void *ctx, uint32_t site, uint64_t touches)
{
    struct test *t = ctx;
    assert_in_range(site, 0, (1 << 16) - 1);
    t->touches[site] -= (int64_t)touches;
}

/* Once more, with sites: the same lines; each site's touches are those that were counted. */
static void decode_sites(struct test *t, const struct wire_desc *desc, const uint64_t *words, uint64_t n)
{
    struct decode_counts counts = {0};
    size_t all = t->n;
    t->noted.executions = calloc(WIRE_MAX_BLOCKS, sizeof(uint32_t));
    t->noted.executed = calloc(WIRE_MAX_BLOCKS + 1, sizeof(uint32_t));
    t->noted.nexecuted = t->n = 0;
    t->noted.more = more_touches;
    t->noted.ctx = t;
    memset(t->touches, 0, sizeof(t->touches));
    decoder_note_sites(t->decoder, &t->noted);
    assert_int_equal(decode_buffer(t->decoder, desc, words, n, keep_sites, t, &counts), 0);
    decoder_note_sites(t->decoder, NULL);
    assert_int_equal(t->n, all);
    assert_memory_equal(&counts, &t->counts, sizeof(counts));
    for (size_t i = 0; i < all; i++) {
        uint64_t pc;
        uint32_t module;
        assert_int_equal(decoder_site_code(t->decoder, decode_touch_site(t->sites[i]), &pc, &module), 0);
        t->touches[decode_touch_site(t->sites[i])]++;
    }
    for (size_t i = 0; i < t->noted.nexecuted; i++) {
        uint32_t id = t->noted.executed[i], site = DECODE_SITE(id, 0), module;
        uint64_t pc;
        assert_true(t->noted.executions[id] > 0);
        for (; decoder_site_code(t->decoder, site, &pc, &module) == 0; site++)
            t->touches[site] -= t->noted.executions[id];
    }
    /* Of strings, elements are counted that touch nothing, or two lines. */
    for (size_t i = 0; i < sizeof(t->touches) / sizeof(t->touches[0]) && !t->has_strings; i++)
        assert_int_equal(t->touches[i], 0);
    free(t->noted.executions);
    free(t->noted.executed);
}

static void decode(struct test *t, const uint64_t *words, uint64_t n, uint32_t last_insns)
{
    struct wire_desc desc = {.last_insns = last_insns, .fs_base = 0x700000};
    t->n = 0;
    t->counts = (struct decode_counts){0};
    assert_int_equal(decode_buffer(t->decoder, &desc, words, n, keep, t, &t->counts), 0);
    assert_int_equal(t->counts.touches, t->n);
    assert_int_equal(t->counts.references, t->counts.loads + t->counts.stores);
    decode_sites(t, &desc, words, n);
}

/* Writes repeated touches where they belong. */
static int keep_repeats(void *ctx, const uint64_t *lines, size_t n)
{
    struct test *t = ctx;
    size_t nrepeats, done = 0;
    const struct stackdist_repeat *r = decoder_repeats(t->decoder, &nrepeats);
    for (size_t i = 0; i < nrepeats; i++) {
        assert_in_range(r[i].at, done + r[i].lines, n);
        keep(ctx, lines + done, r[i].at - done);
        done = r[i].at;
        for (uint64_t k = 0; k < r[i].times; k++)
            keep(ctx, lines + done - r[i].lines, r[i].lines);
        if (r[i].lines == 2)
            assert_true(lines[done - 1] != lines[done - 2]);
    }
    keep(ctx, lines + done, n - done);
    t->batch_lines += n;
    return 0;
}

/* Decodes string instructions with DECODE_STRINGS_REPEAT. */
static void decode_repeats(struct test *t, const uint64_t *words, uint64_t n)
{
    struct wire_desc desc = {.last_insns = UINT32_MAX};
    struct decode_counts counts = {0};
    t->n = t->batch_lines = 0;
    assert_int_equal(decoder_strings(t->decoder, DECODE_STRINGS_REPEAT), 0);
    assert_int_equal(decode_buffer(t->decoder, &desc, words, n, keep_repeats, t, &counts), 0);
    assert_memory_equal(&counts, &t->counts, sizeof(counts));
}

static void check_lines(const struct test *t, const uint64_t *wanted, size_t n)
{
    assert_int_equal(t->n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(t->lines[i], wanted[i]);
}

/* Base register, none, fs, negative displacement, read-modify-write, straddling; in the middle of a
 * buffer (the fast way) and as its last record (the careful way): both must agree. */
static void test_plain(void **state)
{
    struct test *t = *state;
    const struct wire_ref refs[] = {
        {.disp = 8, .size = 8, .rw = WIRE_LOAD, .slot = 1, .insn = 0},
        {.disp = 0x4010, .size = 4, .rw = WIRE_STORE, .insn = 1},
        {.disp = 0x28, .size = 8, .rw = WIRE_LOAD, .flags = WIRE_FS, .insn = 2},
        {.disp = -8, .size = 8, .rw = WIRE_LOAD | WIRE_STORE, .slot = 2, .insn = 2},
        {.disp = 0x3c, .size = 8, .rw = WIRE_LOAD | WIRE_STORE, .slot = 1, .insn = 3},
        {.disp = 0x3c, .size = 200, .rw = WIRE_STORE, .slot = 1, .insn = 3},
    };
    block(t, 7, 3, refs, 6);
    const uint64_t words[] = {HEADER(7, 3), 0x5000, 0x9000, HEADER(7, 3), 0x5000, 0x9000};
#define ONCE \
    0x140, 0x100, 0x1c000, 0x23f, 0x23f, 0x140, 0x141, 0x140, 0x141, 0x140, 0x141, 0x142, 0x143, 0x144
    decode(t, words, 6, UINT32_MAX);
    CHECK(ONCE, ONCE);
    assert_int_equal(t->counts.loads, 8);
    assert_int_equal(t->counts.stores, 8);
    assert_int_equal(t->counts.instructions, 8);
    assert_int_equal(t->counts.bad_records, 0);

    /* Two instructions of the last record were executed, and its last word is not there. */
    decode(t, words, 5, 2);
    CHECK(ONCE, 0x140, 0x100);
    assert_int_equal(t->counts.instructions, 6);
    assert_int_equal(t->counts.bad_records, 0);
    /* The same with an instruction that needs the missing word: damage, but no more. */
    decode(t, words, 5, 3);
    assert_int_equal(t->counts.bad_records, 1);
    decode(t, words, 6, 0);
    CHECK(ONCE);
}

static void test_rep(void **state)
{
    struct test *t = *state;
    const struct wire_ref movs = {
        .kind = WIRE_REF_REP, .slot = 1, .elem_bytes = 8, .flags = WIRE_REP_SRC | WIRE_REP_DST};
    const struct wire_ref scas = {
        .kind = WIRE_REF_REP, .slot = 1, .elem_bytes = 1, .flags = WIRE_REP_DST | WIRE_REP_DST_RD};
    const struct wire_ref lods = {.kind = WIRE_REF_REP, .slot = 1, .elem_bytes = 4, .flags = WIRE_REP_SRC};
    block(t, 1, 6, &movs, 1);
    block(t, 2, 6, &scas, 1);
    block(t, 3, 6, &lods, 1);
    const uint64_t copy[] = {HEADER(1, 6), 3, 0x1030, 0x203c, 0, 0x2054};
    decode(t, copy, 6, UINT32_MAX);
    CHECK(0x40, 0x80, 0x81, 0x40, 0x81, 0x41, 0x81);
    assert_int_equal(t->counts.loads, 3);
    assert_int_equal(t->counts.stores, 3);

    /* Backwards, and stopped before rcx was used up. */
    const uint64_t scan[] = {HEADER(2, 6), 10, 0, 0x1041, 7, 0x103e};
    decode(t, scan, 6, UINT32_MAX);
    CHECK(0x41, 0x41, 0x40);
    assert_int_equal(t->counts.loads, 3);
    assert_int_equal(t->counts.stores, 0);

    const uint64_t read[] = {HEADER(3, 6), 2, 0x103c, 0x9999, 0, 0x1044};
    decode(t, read, 6, UINT32_MAX);
    CHECK(0x40, 0x41);

    const uint64_t none[] = {HEADER(1, 6), 0, 0x1000, 0x2000, 0, 0x2000};
    decode(t, none, 6, UINT32_MAX);
    assert_int_equal(t->n, 0);
    assert_int_equal(t->counts.bad_records, 0);

    /* Pointer and count do not fit together. */
    const uint64_t wrong[] = {HEADER(1, 6), 3, 0x1000, 0x2000, UINT64_MAX, 0x2018};
    decode(t, wrong, 6, UINT32_MAX);
    assert_int_equal(t->n, 0);
    assert_int_equal(t->counts.bad_records, 1);

    /* Longer than a batch. */
    const uint64_t large[] = {HEADER(3, 6), 500000, 0x10000, 0, 0, 0x10000 + 2000000};
    decode(t, large, 6, UINT32_MAX);
    assert_int_equal(t->n, 500000);
    for (size_t i = 0; i < t->n; i++)
        assert_int_equal(t->lines[i], (0x10000 + 4 * i) / 64);
}

/* Of what every element touches, the lines that its operand has not just touched. `lines`: element by
 * element, the source's before the target's; of each, `spans` says how many. */
static size_t without_hits(uint64_t *lines, const uint8_t *spans, size_t elements, unsigned operands)
{
    uint64_t last[2] = {UINT64_MAX, UINT64_MAX};
    size_t from = 0, to = 0;
    for (size_t i = 0; i < elements * operands; i++)
        for (unsigned k = 0; k < spans[i]; k++, from++)
            if (lines[from] != last[i % operands])
                lines[to++] = last[i % operands] = lines[from];
    return to;
}

/* Elements in the line that their operand touched last: repeated, or counted without touching anything. Any
 * size, any place, either direction, copies and fills. */
static void test_string_hits(void **state)
{
    struct test *t = *state;
    static uint64_t wanted[1 << 16];
    static uint8_t spans[1 << 16];
    struct random_state random;
    random_seed(&random, 5);
    for (uint32_t id = 1; id <= 8; id++) {
        const struct wire_ref ref = {.kind = WIRE_REF_REP,
                                     .slot = 1,
                                     .elem_bytes = (uint8_t)(1u << id % 4),
                                     .flags = id > 4 ? WIRE_REP_SRC | WIRE_REP_DST : WIRE_REP_DST};
        block(t, id, 6, &ref, 1);
    }
    for (int round = 0; round < 400; round++) {
        uint32_t id = 1 + (uint32_t)random_below(&random, 8);
        unsigned operands = id > 4 ? 2 : 1;
        uint64_t bytes = UINT64_C(1) << id % 4, elements = random_below(&random, 3000);
        uint64_t step = random_below(&random, 4) == 0 ? -bytes : bytes;
        uint64_t start[] = {0x100000 + random_below(&random, 4096), 0x800000 + random_below(&random, 4096)};
        const uint64_t words[] = {HEADER(id, 6), elements, start[0], start[1], 0, start[1] + elements * step};
        size_t n = 0;
        for (uint64_t i = 0; i < elements; i++)
            for (unsigned k = 0; k < operands; k++) {
                uint64_t at = start[operands == 2 ? k : 1] + i * step;
                uint64_t first = at / 64, last = (at + bytes - 1) / 64;
                spans[i * operands + k] = (uint8_t)(last - first + 1);
                wanted[n++] = first;
                if (last != first)
                    wanted[n++] = last;
            }
        assert_int_equal(decoder_strings(t->decoder, DECODE_STRINGS_ALL), 0);
        decode(t, words, 6, UINT32_MAX);
        check_lines(t, wanted, n);
        assert_int_equal(t->counts.steps, operands);
        decode_repeats(t, words, 6);
        check_lines(t, wanted, n);
        if (step == bytes && elements > 1000)
            assert_in_range(t->batch_lines, n * bytes / 64, n * bytes / 64 * 5);
        assert_int_equal(decoder_strings(t->decoder, DECODE_STRINGS_LINES), 0);
        decode(t, words, 6, UINT32_MAX);
        check_lines(t, wanted, without_hits(wanted, spans, elements, operands));
        assert_int_equal(t->counts.references, elements * operands);
        assert_int_equal(t->counts.steps, operands);
    }
}

static void test_vectors(void **state)
{
    struct test *t = *state;
    const struct wire_ref masked = {
        .kind = WIRE_REF_MASKED, .size = 64, .elem_bytes = 4, .rw = WIRE_STORE, .slot = 1, .slot2 = 2};
    const struct wire_ref packed = {.kind = WIRE_REF_PACKED,
                                    .size = 32,
                                    .elem_bytes = 4,
                                    .rw = WIRE_STORE,
                                    .disp = 0x30,
                                    .slot = 1,
                                    .slot2 = 2};
    const struct wire_ref gather32 = {.kind = WIRE_REF_GATHER,
                                      .size = 16,
                                      .elem_bytes = 4,
                                      .rw = WIRE_LOAD,
                                      .disp = 0x10,
                                      .slot = 1,
                                      .slot2 = 2,
                                      .slot3 = 3,
                                      .scale = 4,
                                      .index_bytes = 4};
    const struct wire_ref gather64 = {.kind = WIRE_REF_GATHER,
                                      .size = 16,
                                      .elem_bytes = 8,
                                      .rw = WIRE_LOAD,
                                      .disp = 0x1000,
                                      .slot2 = 1,
                                      .slot3 = 2,
                                      .scale = 1,
                                      .index_bytes = 8};
    block(t, 1, 3, &masked, 1);
    block(t, 2, 3, &packed, 1);
    block(t, 3, 5, &gather32, 1);
    block(t, 4, 4, &gather64, 1);

    const uint64_t low[] = {HEADER(1, 3), 0x1020, 0xff};
    decode(t, low, 3, UINT32_MAX);
    CHECK(0x40);
    const uint64_t both[] = {HEADER(1, 3), 0x1020, 0x8001, HEADER(1, 3), 0x1020, 0xff00,
                             HEADER(1, 3), 0x1020, 0};
    decode(t, both, 9, UINT32_MAX);
    CHECK(0x40, 0x41, 0x41);
    assert_int_equal(t->counts.stores, 2);

    /* 4 elements fit before the line's end; bits beyond the 8 elements do not count. */
    const uint64_t compress[] = {HEADER(2, 3), 0x1000, 0xff55, HEADER(2, 3), 0x1000, 0xd5};
    decode(t, compress, 6, UINT32_MAX);
    CHECK(0x40, 0x40, 0x41);

    const uint64_t indices[] = {HEADER(3, 5), 0x1000, 0xd, (uint64_t)0x77 << 32 | 1,
                                (uint64_t)UINT32_MAX << 32 | 16};
    decode(t, indices, 5, UINT32_MAX);
    CHECK(0x40, 0x41, 0x40); /* 0x1014, 0x1050, 0x100c */
    assert_int_equal(t->counts.loads, 3);

    const uint64_t wide[] = {HEADER(4, 4), 3, (uint64_t)-0x80, 0x3d};
    decode(t, wide, 4, UINT32_MAX);
    CHECK(0x3e, 0x40, 0x41);
    /* Bits beyond the elements do not count: vpgatherqd with 128-bit registers has a mask of 4 for 2. */
    const uint64_t more_bits[] = {HEADER(4, 4), 0xe, 0, 0x80};
    decode(t, more_bits, 4, UINT32_MAX);
    CHECK(0x42);
    assert_int_equal(t->counts.bad_records, 0);
    struct wire_ref beyond = gather64; /* more elements than its words have indices */
    beyond.size = 24;
    block(t, 5, 4, &beyond, 1);
    const uint64_t third[] = {HEADER(5, 4), 4, 0, 0};
    decode(t, third, 4, UINT32_MAX);
    assert_int_equal(t->counts.bad_records, 1);
}

/* Groups of references (AVX-512) against one reference after the other: random blocks of all sizes. */
static void test_groups(void **state)
{
    enum { BLOCKS = 60, WORDS = 40000, MOST_REFS = 40, MOST_WORDS = 24 };
    struct test *t = *state;
    uint64_t *words = malloc(WORDS * sizeof(*words)), n = 0;
    struct random_state r;
    uint16_t nwords[BLOCKS + 1];

    if (!decode_has_avx512()) {
        free(words);
        not_tested_here(__func__, "the processor has no AVX-512");
        return;
    }
    random_seed(&r, 1);
    for (uint32_t id = 1; id <= BLOCKS; id++) {
        struct wire_ref refs[MOST_REFS];
        uint16_t nrefs = (uint16_t)random_below(&r, id < 20 ? 9 : MOST_REFS + 1);
        nwords[id] = (uint16_t)(1 + random_below(&r, id < 20 ? 8 : MOST_WORDS));
        for (uint16_t i = 0; i < nrefs; i++) {
            static const uint16_t sizes[] = {1, 2, 4, 8, 8, 8, 16, 32, 64, 512};
            refs[i] = (struct wire_ref){.disp = (int64_t)random_below(&r, 1 << 20) - (1 << 19),
                                        .size = sizes[random_below(&r, 10)],
                                        .rw = (uint8_t)(1 + random_below(&r, 3)),
                                        .slot = (uint8_t)random_below(&r, nwords[id]),
                                        .flags = random_below(&r, 8) == 0 ? WIRE_FS : 0};
            if (refs[i].slot == 0) /* an address of its own */
                refs[i].disp = (int64_t)(UINT64_C(0x7f0000000000) + random_below(&r, 1 << 30));
        }
        block(t, id, nwords[id], refs, nrefs);
    }
    while (n < WORDS - MOST_WORDS) {
        uint32_t id = 1 + (uint32_t)random_below(&r, BLOCKS);
        words[n] = HEADER(id, nwords[id]);
        for (uint16_t i = 1; i < nwords[id]; i++)
            words[n + i] = random_below(&r, UINT64_MAX);
        n += nwords[id];
    }

    decode(t, words, n, UINT32_MAX);
    size_t count = t->n;
    struct decode_counts counts = t->counts;
    uint64_t *lines = malloc(count * sizeof(*lines));
    memcpy(lines, t->lines, count * sizeof(*lines));
    assert_int_equal(counts.bad_records, 0);
    struct group *first = t->decoder->first;
    t->decoder->first = NULL;
    decode(t, words, n, UINT32_MAX);
    assert_int_equal(t->n, count);
    assert_memory_equal(t->lines, lines, count * sizeof(*lines));
    assert_memory_equal(&t->counts, &counts, sizeof(counts));
    t->decoder->first = first;
    free(lines);
    free(words);
}

/* Whatever the target writes: no crash, and it is counted. */
static void test_damage(void **state)
{
    struct test *t = *state;
    const struct wire_ref plain = {.size = 8, .rw = WIRE_LOAD, .slot = 1};
    const struct wire_ref bad_slot = {.size = 8, .rw = WIRE_LOAD, .slot = 2};
    const struct wire_ref bad_kind = {.size = 8, .rw = WIRE_LOAD, .kind = 99};
    block(t, 1, 2, &plain, 1);
    block(t, 2, 2, &bad_slot, 1);
    block(t, 3, 2, &bad_kind, 1);
    t->offsets[4] = AREA - 8;
    t->offsets[5] = 3;
    t->offsets[6] = UINT32_MAX & ~7u;
    block(t, 8, 2, &plain, 1);
    ((struct wire_block *)(void *)(t->area + t->offsets[8]))->nrefs = UINT16_MAX;

    const uint64_t ids[] = {0, 2, 3, 4, 5, 6, 8, 9, WIRE_MAX_BLOCKS, WIRE_ID_MASK};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        const uint64_t words[] = {HEADER(1, 2), 0x1000, HEADER(ids[i], 2), 0x2000};
        decode(t, words, 4, UINT32_MAX);
        CHECK(0x40);
        assert_int_equal(t->counts.bad_records, 1);
    }
    const uint64_t lengths[] = {0, 1, 3, 100, UINT64_MAX >> WIRE_ID_BITS};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const uint64_t words[] = {HEADER(1, lengths[i]), 0x1000, 0, 0};
        decode(t, words, 4, UINT32_MAX);
        assert_int_equal(t->n, 0);
        assert_int_equal(t->counts.bad_records, 1);
    }
    unsigned seed = 1;
    for (int round = 0; round < 2000; round++) {
        uint64_t words[64];
        for (size_t i = 0; i < 64; i++) {
            seed = seed * 1103515245u + 12345u;
            words[i] = (seed >> 8) % 4 == 0 ? HEADER((seed >> 12) % 10, 2) : (uint64_t)seed << (seed % 32);
        }
        decode(t, words, 64, seed % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plain, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_string_hits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_vectors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
