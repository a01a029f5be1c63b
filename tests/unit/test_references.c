/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole references from agents' buffers: random templates and records of every kind, decoded by
 * references.c and by decode.c, which share no code, must touch the same lines.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/random.h"
#include "collect/records/decode.h"
#include "collect/records/references.h"

#define AREA (1u << 18)
#define BLOCKS 200u
#define WORDS 60000u
#define LINE 64u

struct test {
    _Alignas(8) uint8_t area[AREA];
    uint32_t offsets[WIRE_MAX_BLOCKS];
    uint16_t nwords[BLOCKS];
    uint64_t words[WORDS];
    uint64_t lines[1 << 22], from_references[1 << 22];
    size_t nlines, nfrom_references;
    uint64_t loads, stores;
};

static struct wire_ref random_ref(struct random_state *random, uint16_t nwords, uint32_t i)
{
    struct wire_ref r = {.disp = (int64_t)random_below(random, 1u << 20),
                         .size = (uint16_t)(1u << random_below(random, 7)),
                         .rw = (uint8_t)(1 + random_below(random, 3)),
                         .slot = (uint8_t)random_below(random, nwords),
                         .flags = (uint8_t)random_below(random, 2),
                         .insn = (uint8_t)(i / 2),
                         .pc_offset = i};
    uint64_t kind = random_below(random, 20);
    if (kind < 16 || nwords < 8)
        return r;
    r.kind = (uint8_t)(kind - 15);
    r.elem_bytes = (uint8_t)(1u << random_below(random, 4));
    r.slot2 = (uint8_t)(1 + random_below(random, nwords - 1u));
    if (r.kind == WIRE_REF_REP) {
        r.slot = (uint8_t)(1 + random_below(random, nwords - 5u));
        unsigned flags = WIRE_REP_SRC << random_below(random, 2);
        flags |= random_below(random, 2) != 0 ? WIRE_REP_DST_RD : 0;
        r.flags = (uint8_t)(r.flags | flags);
    } else if (r.kind == WIRE_REF_GATHER) {
        r.slot3 = (uint8_t)(1 + random_below(random, nwords - 1u));
        r.index_bytes = (uint8_t)(4u << random_below(random, 2));
        r.scale = (uint8_t)(1u << random_below(random, 4));
    } else {
        r.size = (uint16_t)(r.elem_bytes * (1u << random_below(random, 4)));
        r.size = r.size > LINE ? LINE : r.size;
    }
    return r;
}

static void make_blocks(struct test *t, struct random_state *random)
{
    uint32_t used = 64;
    for (uint32_t id = 1; id < BLOCKS; id++) {
        struct wire_block head = {.pc = id * 0x1000,
                                  .nwords = (uint16_t)(1 + random_below(random, 12)),
                                  .nrefs = (uint16_t)random_below(random, 14),
                                  .ninsns = 7};
        memcpy(t->area + used, &head, sizeof(head));
        t->offsets[id] = used;
        t->nwords[id] = head.nwords;
        used += (uint32_t)sizeof(head);
        for (uint32_t i = 0; i < head.nrefs; i++) {
            struct wire_ref ref = random_ref(random, head.nwords, i);
            memcpy(t->area + used, &ref, sizeof(ref));
            used += (uint32_t)sizeof(ref);
        }
        used = (used + 7) / 8 * 8;
    }
}

/* Values that make sense for string instructions now and then: five words, see wire.h. */
static size_t make_record(struct test *t, struct random_state *random, size_t at)
{
    uint32_t id = 1 + (uint32_t)random_below(random, BLOCKS - 1);
    size_t n = t->nwords[id];
    if (at + n > WORDS)
        n = WORDS - at; /* the last one, cut off */
    t->words[at] = id | (uint64_t)t->nwords[id] << WIRE_ID_BITS;
    for (size_t i = 1; i < n; i++)
        t->words[at + i] = random_next(random) >> (20 + random_below(random, 44));
    return n;
}

/* Every string instruction of the record gets a count that fits its pointers. */
static void mend_reps(struct test *t, struct random_state *random, size_t at, size_t n)
{
    uint32_t id = (uint32_t)t->words[at] & WIRE_ID_MASK;
    struct wire_block head;
    memcpy(&head, t->area + t->offsets[id], sizeof(head));
    for (uint32_t i = 0; i < head.nrefs; i++) {
        struct wire_ref r;
        memcpy(&r, t->area + t->offsets[id] + sizeof(head) + i * sizeof(r), sizeof(r));
        if (r.kind != WIRE_REF_REP || r.slot + 5u > n || random_below(random, 8) == 0)
            continue;
        uint64_t *w = &t->words[at + r.slot], count = random_below(random, 30);
        uint64_t step = random_below(random, 2) ? r.elem_bytes : -(uint64_t)r.elem_bytes;
        w[3] = w[0] - count;
        w[4] = ((r.flags & WIRE_REP_DST) != 0 ? w[2] : w[1]) + count * step;
    }
}

static int keep_lines(void *ctx, const uint64_t *lines, size_t n)
{
    struct test *t = ctx;
    assert_true(t->nlines + n <= sizeof(t->lines) / sizeof(t->lines[0]));
    memcpy(t->lines + t->nlines, lines, n * sizeof(*lines));
    t->nlines += n;
    return 0;
}

static int keep_references(void *ctx, const struct trace_batch *batch)
{
    struct test *t = ctx;
    assert_in_range(batch->n, 1, TRACE_BATCH);
    for (size_t i = 0; i < batch->n; i++) {
        assert_true(batch->rw[i] == TRACE_LOAD || batch->rw[i] == TRACE_STORE);
        assert_in_range(batch->pc[i], 0x1000, BLOCKS * 0x1000);
        t->loads += batch->rw[i] == TRACE_LOAD;
        t->stores += batch->rw[i] == TRACE_STORE;
        for (uint64_t line = batch->address[i] / LINE;
             line <= (batch->address[i] + batch->size[i] - 1) / LINE; line++) {
            assert_true(t->nfrom_references < sizeof(t->from_references) / sizeof(t->from_references[0]));
            t->from_references[t->nfrom_references++] = line;
        }
    }
    return 0;
}

static void same_lines(void **state)
{
    (void)state;
    struct test *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct random_state random;
        struct decode_counts counts = {0};
        uint64_t instructions = 0;
        memset(t, 0, sizeof(*t));
        random_seed(&random, seed);
        make_blocks(t, &random);
        size_t at = 0;
        while (at < WORDS) {
            size_t n = make_record(t, &random, at);
            mend_reps(t, &random, at, n);
            at += n;
        }
        struct wire_desc desc = {.fs_base = 0x7000000,
                                 .last_insns = seed % 2 ? (uint32_t)random_below(&random, 8) : UINT32_MAX};
        struct decode_source source = {t->area, AREA, t->offsets};
        struct decoder *d = decoder_new(LINE, &source, NULL);
        struct references *r = references_new(&source, NULL);
        assert_true(d != NULL && r != NULL);
        assert_int_equal(decode_buffer(d, &desc, t->words, WORDS, keep_lines, t, &counts), 0);
        assert_int_equal(references_decode(r, &desc, t->words, WORDS, keep_references, t, &instructions), 0);
        assert_int_equal(t->loads, counts.loads);
        assert_int_equal(t->stores, counts.stores);
        assert_int_equal(instructions, counts.instructions);
        assert_true(t->loads + t->stores > 20000);
        assert_int_equal(t->nfrom_references, t->nlines);
        assert_memory_equal(t->from_references, t->lines, t->nlines * sizeof(t->lines[0]));
        decoder_free(d);
        references_free(r);
    }
    free(t);
}

static int refuse(void *ctx, const struct trace_batch *batch)
{
    (void)ctx, (void)batch;
    return -ENOSPC;
}

/* Addresses and program counters, sizes, order. */
static void by_hand(void **state)
{
    (void)state;
    struct test *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    struct wire_block head = {.pc = 0x1000, .nwords = 3, .nrefs = 2, .ninsns = 2};
    const struct wire_ref refs[] = {
        {.disp = 8, .size = 4, .rw = WIRE_LOAD | WIRE_STORE, .slot = 1, .pc_offset = 2},
        {.disp = -16,
         .size = 32,
         .rw = WIRE_STORE,
         .kind = WIRE_REF_MASKED,
         .slot = 1,
         .slot2 = 2,
         .insn = 1,
         .elem_bytes = 4,
         .pc_offset = 6}};
    memcpy(t->area + 64, &head, sizeof(head));
    memcpy(t->area + 64 + sizeof(head), refs, sizeof(refs));
    t->offsets[1] = 64;
    /* Elements 1 and 3; bit 40 is no element. */
    const uint64_t words[] = {1 | 3 << WIRE_ID_BITS, 0x5000, 0x10000000000 | 10,
                              1 | 3 << WIRE_ID_BITS, 0x6000, 0};
    struct decode_source source = {t->area, AREA, t->offsets};
    struct wire_desc desc = {.last_insns = UINT32_MAX};
    uint64_t instructions = 0;
    struct references *r = references_new(&source, NULL);
    assert_non_null(r);
    assert_int_equal(references_decode(r, &desc, words, 6, keep_references, t, &instructions), 0);
    assert_int_equal(instructions, 4);
    assert_int_equal(t->loads, 2);
    assert_int_equal(t->stores, 3); /* the second mask is empty */
    const uint64_t lines[] = {0x5008 / LINE, 0x5008 / LINE, (0x4ff0 + 4) / LINE, 0x6008 / LINE,
                              0x6008 / LINE};
    assert_int_equal(t->nfrom_references, 5);
    assert_memory_equal(t->from_references, lines, sizeof(lines));
    assert_int_equal(references_decode(r, &desc, words, 6, refuse, t, &instructions), -ENOSPC);
    references_free(r);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_lines), cmocka_unit_test(by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
