/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three pieces of code tell from an agent's records what was touched, and share nothing: decode.c, the
 * collector's hot loop, references.c, for traces, and in the agent touched.c, which looks for a few lines. Of
 * random templates and records of every kind, all of them must say the same.
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
/* The agent is no library that could be linked, and has names of its own for numbers at random. */
#define random_next agent_random_next
#include "agent/watch/touched.c"
#undef random_next

#define AREA (1u << 18)
#define BLOCKS 200u
#define WORDS 60000u
#define MOST_WORDS 12u /* of a block */
#define LINE 64u

/* touched.c's */
struct wire_session *session;
struct wire_proc *proc;
uint8_t *slot;

uint64_t arch_thread_pointer(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

struct test {
    /* Records as the agent makes them: counts of string instructions fit their pointers. Else touched.c,
     * which trusts its own records, is not asked. */
    int sane;
    int exact; /* and there are no masks, of which touched.c takes all elements */
    _Alignas(8) uint8_t area[AREA];
    uint32_t offsets[WIRE_MAX_BLOCKS];
    uint16_t nwords[BLOCKS];
    uint64_t words[WORDS];
    uint64_t lines[1 << 22], from_references[1 << 22];
    uint8_t part_from_references[1 << 22]; /* of each line, see decode_touch_part */
    size_t nlines, nfrom_references;
    struct decoder *decoder;
    uint64_t loads, stores;
};

static struct wire_ref random_ref(struct random_state *random, uint16_t nwords, uint32_t i, int sane,
                                  int exact)
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
    if (exact && (r.kind == WIRE_REF_MASKED || r.kind == WIRE_REF_PACKED))
        r.kind = WIRE_REF_REP;
    if (sane && r.kind == WIRE_REF_REP && i > 0) { /* two could have words in common, which fit one only */
        r.kind = WIRE_REF_PLAIN;
        return r;
    }
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
        if (sane) /* as many elements as there are words of indices */
            r.size = (uint16_t)(r.elem_bytes * (nwords - r.slot3) * 8 / r.index_bytes);
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
                                  .nwords = (uint16_t)(1 + random_below(random, MOST_WORDS)),
                                  .nrefs = (uint16_t)random_below(random, 14),
                                  .ninsns = 7};
        memcpy(t->area + used, &head, sizeof(head));
        t->offsets[id] = used;
        t->nwords[id] = head.nwords;
        used += (uint32_t)sizeof(head);
        for (uint32_t i = 0; i < head.nrefs; i++) {
            struct wire_ref ref = random_ref(random, head.nwords, i, t->sane, t->exact);
            memcpy(t->area + used, &ref, sizeof(ref));
            used += (uint32_t)sizeof(ref);
        }
        used = (used + 7) / 8 * 8;
    }
}

/* Values that make sense for string instructions now and then: five words, see wire.h. Below 2^42, so that no
 * sum of a base, eight times an index and fs wraps around the 48 bits that the decoders keep of an address.
 */
static size_t make_record(struct test *t, struct random_state *random, size_t at)
{
    uint32_t id = 1 + (uint32_t)random_below(random, BLOCKS - 1);
    size_t n = t->nwords[id];
    if (at + n > WORDS)
        n = WORDS - at; /* the last one, cut off */
    t->words[at] = id | (uint64_t)t->nwords[id] << WIRE_ID_BITS;
    for (size_t i = 1; i < n; i++)
        t->words[at + i] = random_next(random) >> (22 + random_below(random, 42));
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
        if (r.kind != WIRE_REF_REP || r.slot + 5u > n || (!t->sane && random_below(random, 8) == 0))
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

static void ignore(void *ctx, uint32_t site, uint64_t touches)
{
    (void)ctx, (void)site, (void)touches;
}

/* The same lines once more, with the part of each that was touched. */
static int compare_parts(void *ctx, const uint64_t *lines, size_t n)
{
    struct test *t = ctx;
    const uint32_t *touches = decoder_touches(t->decoder);
    assert_true(t->nlines + n <= t->nfrom_references);
    assert_memory_equal(lines, t->from_references + t->nlines, n * sizeof(*lines));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(decode_touch_part(touches[i]), t->part_from_references[t->nlines++]);
        assert_in_range(decode_touch_site(touches[i]) >> DECODE_SITE_BITS, 1, BLOCKS - 1);
    }
    return 0;
}

static void same_parts(struct test *t, const struct wire_desc *desc, size_t nwords)
{
    struct decode_counts counts = {0};
    struct decode_sites sites = {.executions = calloc(WIRE_MAX_BLOCKS, sizeof(uint32_t)),
                                 .executed = calloc(WIRE_MAX_BLOCKS + 1, sizeof(uint32_t)),
                                 .more = ignore};
    assert_true(sites.executions != NULL && sites.executed != NULL);
    decoder_note_sites(t->decoder, &sites);
    t->nlines = 0;
    assert_int_equal(decode_buffer(t->decoder, desc, t->words, nwords, compare_parts, t, &counts), 0);
    assert_int_equal(t->nlines, t->nfrom_references);
    free(sites.executions);
    free(sites.executed);
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
            uint64_t from = line == batch->address[i] / LINE ? batch->address[i] % LINE : 0;
            t->part_from_references[t->nfrom_references] = (uint8_t)(from * 8 / LINE);
            t->from_references[t->nfrom_references++] = line;
        }
    }
    return 0;
}

#define HIGHEST \
    (UINT64_C(1) << 41) /* lines of addresses that programs have; others the decoders cut differently */
#define LOOKED_FOR 64u

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Lines that were touched, and neighbours of such, looked for by touched.c. Sorts t->lines. */
static void are_found(struct test *t, size_t nwords, struct random_state *random,
                      const struct wire_desc *desc)
{
    unsigned hits = 0, others = 0;
    session = calloc(1, sizeof(*session));
    proc = calloc(1, sizeof(*proc));
    assert_true(session != NULL && proc != NULL && t->nlines > 0);
    session->line_bytes = LINE;
    memcpy(proc->block_offset, t->offsets, sizeof(proc->block_offset));
    slot = t->area;
    qsort(t->lines, t->nlines, sizeof(t->lines[0]), compare);
    for (int round = 0; round < 8; round++) {
        uint64_t address[LOOKED_FOR];
        for (unsigned i = 0; i < LOOKED_FOR; i++)
            address[i] = LINE * (t->lines[random_below(random, t->nlines)] + (round % 2 ? i % 3 : 0));
        struct touched touched =
            records_touched(t->words, t->words + nwords, desc->last_insns, address, LOOKED_FOR);
        assert_true(touched.before <= touched.refs && touched.refs > 0);
        if (t->exact)
            assert_int_equal(touched.refs, t->loads + t->stores);
        if (touched.found)
            assert_in_range(touched.pc, 0x1000, BLOCKS * 0x1000);
        for (unsigned i = 0; i < LOOKED_FOR; i++) {
            uint64_t line = address[i] / LINE;
            int expected = bsearch(&line, t->lines, t->nlines, sizeof(t->lines[0]), compare) != NULL,
                found = touched.found >> i & 1;
            if (line >= HIGHEST)
                continue;
            if (expected || t->exact)
                assert_int_equal(found, expected);
            hits += (unsigned)expected;
            others += (unsigned)!expected;
        }
    }
    assert_true(hits > 100 && others > 10);
    free(session);
    free(proc);
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
        t->sane = seed % 4 >= 2;
        t->exact = seed % 4 == 3;
        random_seed(&random, seed);
        make_blocks(t, &random);
        size_t at = 0;
        while (at < WORDS &&
               !(t->sane &&
                 at > WORDS - MOST_WORDS)) { /* words are not in references' order here: none is cut off */
            size_t n = make_record(t, &random, at);
            mend_reps(t, &random, at, n);
            at += n;
        }
        struct wire_desc desc = {.fs_base = (uint64_t)__builtin_thread_pointer(),
                                 .last_insns = seed % 2 ? (uint32_t)random_below(&random, 8) : UINT32_MAX};
        struct decode_source source = {t->area, AREA, t->offsets};
        struct decoder *d = decoder_new(LINE, &source, NULL);
        struct references *r = references_new(&source, NULL);
        assert_true(d != NULL && r != NULL);
        assert_int_equal(decode_buffer(d, &desc, t->words, at, keep_lines, t, &counts), 0);
        assert_int_equal(references_decode(r, &desc, t->words, at, keep_references, t, &instructions), 0);
        assert_int_equal(t->loads, counts.loads);
        assert_int_equal(t->stores, counts.stores);
        assert_int_equal(instructions, counts.instructions);
        assert_true(t->loads + t->stores > 20000);
        assert_int_equal(t->nfrom_references, t->nlines);
        assert_memory_equal(t->from_references, t->lines, t->nlines * sizeof(t->lines[0]));
        t->decoder = d;
        if (t->exact) /* elements that a mask leaves out are in the references here */
            same_parts(t, &desc, at);
        if (t->sane)
            are_found(t, at, &random, &desc);
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
