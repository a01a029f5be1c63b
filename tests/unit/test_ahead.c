/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that other threads decode and measure, compared with the same buffers in this thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/octaves.h"
#include "base/random.h"
#include "collect/reduce/ahead.h"
#include "not_here.h"

#define HEADER(id, nwords) ((uint64_t)(id) | (uint64_t)(nwords) << WIRE_ID_BITS)
#define BUFFERS 40u
#define RECORDS 9000u
#define WORDS (4u * RECORDS)
#define COPY 3u /* block of a string instruction */

/* Everything that is known of the touches. */
struct seen {
    uint64_t *lines;
    uint32_t *sites;
    size_t n, nfar;
    uint64_t far_at, far_stack; /* sums, of positions in all touches and of distances */
    uint64_t repeats;           /* likewise, by touches */
    uint64_t executions[8], more;
    uint64_t cold;
    struct hist stack;
    struct hist run[PROFILE_HIST_KINDS];
    struct decode_counts counts;
};

struct test {
    _Alignas(8) uint8_t area[4096];
    uint32_t used;
    uint32_t *offsets;
    struct decoder *decoder;
    struct process_stack *stack;
    struct thread_stacks *threads;
    uint64_t words[BUFFERS][WORDS];
    uint64_t nwords[BUFFERS];
    uint32_t executions[WIRE_MAX_BLOCKS], executed[WIRE_MAX_BLOCKS + 1];
    struct decode_sites noted;
    struct seen *seen;
    uint32_t far_at[1 << 15];
    uint64_t far_stack[1 << 15];
};

static void block(struct test *t, uint32_t id, uint16_t nwords, const struct wire_ref *refs, uint16_t nrefs)
{
    struct wire_block head = {.nwords = nwords, .nrefs = nrefs, .ninsns = 4};
    memcpy(t->area + t->used, &head, sizeof(head));
    memcpy(t->area + t->used + sizeof(head), refs, nrefs * sizeof(*refs));
    t->offsets[id] = t->used;
    t->used += (uint32_t)((sizeof(head) + nrefs * sizeof(*refs) + 7) / 8 * 8);
}

static void count_more(void *ctx, uint32_t site, uint64_t touches)
{
    struct test *t = ctx;
    t->seen->more += touches * (site + 1);
}

/* Two blocks of plain references, some of which touch two lines, and sometimes a copy. */
static void fill(struct test *t)
{
    struct random_state random;
    random_seed(&random, 7);
    for (unsigned b = 0; b < BUFFERS; b++)
        for (unsigned i = 0; i < RECORDS; i++) {
            uint64_t id = 1 + random_below(&random, 2), *at = t->words[b] + t->nwords[b];
            at[0] = HEADER(id, id + 1);
            for (uint64_t k = 1; k <= id; k++)
                at[k] = 0x10000 + random_below(&random, random_below(&random, 8) == 0 ? 1 << 22 : 1 << 12);
            t->nwords[b] += id + 1;
            if (i % 1000 != 500)
                continue;
            at += id + 1;
            const uint64_t copy[] = {HEADER(COPY, 6), 300, 0x10008, 0x14000, 0, 0x14000 + 2400};
            memcpy(at, copy, sizeof(copy));
            t->nwords[b] += 6;
        }
}

static int setup(void **state)
{
    const struct wire_ref refs[] = {{.slot = 1, .rw = WIRE_LOAD, .size = 8},
                                    {.slot = 2, .rw = WIRE_LOAD | WIRE_STORE, .size = 4}};
    const struct wire_ref copy = {
        .kind = WIRE_REF_REP, .slot = 1, .elem_bytes = 8, .flags = WIRE_REP_SRC | WIRE_REP_DST};
    struct test *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    t->offsets = calloc(WIRE_MAX_BLOCKS, sizeof(*t->offsets));
    assert_non_null(t->offsets);
    t->used = 64;
    block(t, 1, 2, refs, 1);
    block(t, 2, 3, refs, 2);
    block(t, COPY, 6, &copy, 1);
    struct decode_source source = {t->area, sizeof(t->area), t->offsets};
    t->decoder = decoder_new(64, &source, NULL);
    t->stack = process_stack_new(NULL);
    t->threads = thread_stacks_new(0, NULL);
    assert_non_null(t->decoder);
    assert_non_null(t->stack);
    assert_non_null(t->threads);
    assert_int_equal(decoder_strings(t->decoder, DECODE_STRINGS_REPEAT), 0);
    t->noted = (struct decode_sites){
        .executions = t->executions, .executed = t->executed, .more = count_more, .ctx = t};
    fill(t);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct test *t = *state;
    process_stack_free(t->stack);
    thread_stacks_free(t->threads);
    decoder_free(t->decoder);
    free(t->offsets);
    free(t);
    return 0;
}

static struct seen *seen_new(void)
{
    struct seen *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->lines = calloc((size_t)BUFFERS * RECORDS * 4, sizeof(*s->lines));
    s->sites = calloc((size_t)BUFFERS * RECORDS * 4, sizeof(*s->sites));
    assert_non_null(s->lines);
    assert_non_null(s->sites);
    return s;
}

static void seen_free(struct seen *s)
{
    free(s->lines);
    free(s->sites);
    free(s);
}

static void see(struct seen *s, const struct process_touches *touches, const uint32_t *sites,
                const struct stackdist_far *far)
{
    size_t n = touches->n;
    for (size_t i = 0; i < far->n; i++) {
        s->far_at += s->n + far->at[i];
        s->far_stack += far->stack[i];
    }
    s->nfar += far->n;
    for (size_t i = 0; i < touches->nrepeats; i++) {
        const struct stackdist_repeat *r = &touches->repeats[i];
        assert_in_range(r->at, 1, n);
        s->repeats += (s->n + r->at) * r->lines * r->times;
    }
    memcpy(s->lines + s->n, touches->lines, n * sizeof(*s->lines));
    memcpy(s->sites + s->n, sites, n * sizeof(*sites));
    s->n += n;
}

static void see_executed(struct test *t)
{
    for (size_t i = 0; i < t->noted.nexecuted; i++) {
        assert_in_range(t->executed[i], 1, 7);
        t->seen->executions[t->executed[i]] += t->executions[t->executed[i]];
        t->executions[t->executed[i]] = 0;
    }
    t->noted.nexecuted = 0;
}

static int take(void *ctx, const uint64_t *lines, size_t n)
{
    struct test *t = ctx;
    struct seen *s = t->seen;
    struct process_touches touches = {.lines = lines, .n = n};
    touches.repeats = decoder_repeats(t->decoder, &touches.nrepeats);
    struct stackdist_far far = {.least = OCTAVES_LEAST, .at = t->far_at, .stack = t->far_stack};
    assert_in_range(n, 1, sizeof(t->far_at) / sizeof(t->far_at[0]) - STACKDIST_FAR_EXTRA);
    assert_int_equal(process_stack_touch(t->stack, &touches, &s->stack, s->run, &s->cold, &far), 0);
    see(s, &touches, decoder_touches(t->decoder), &far);
    return 0;
}

static void decode_here(struct test *t, unsigned b)
{
    const struct wire_desc desc = {.last_insns = UINT32_MAX};
    decoder_note_sites(t->decoder, &t->noted);
    assert_int_equal(decode_buffer(t->decoder, &desc, t->words[b], t->nwords[b], take, t, &t->seen->counts),
                     0);
    decoder_note_sites(t->decoder, NULL);
    see_executed(t);
}

static int begin(struct test *t, struct ahead *a, const struct wire_desc *desc, const uint64_t *words,
                 uint64_t n)
{
    const struct ahead_source source = {.process = 5,
                                        .decoder = t->decoder,
                                        .stack = t->stack,
                                        .threads = t->threads,
                                        .run = t->seen->run,
                                        .desc = desc,
                                        .words = words,
                                        .n = n};
    return ahead_begin(a, &source);
}

static void add_counts(struct decode_counts *to, const struct decode_counts *from)
{
    to->references += from->references;
    to->loads += from->loads;
    to->stores += from->stores;
    to->touches += from->touches;
    to->steps += from->steps;
    to->instructions += from->instructions;
    to->records += from->records;
    to->bad_records += from->bad_records;
}

/* Takes the first one that waits, which must be buffer number b. */
static void take_first(struct test *t, struct ahead *a, unsigned b)
{
    struct seen *s = t->seen;
    const struct ahead_buffer *first = ahead_first(a);
    assert_non_null(first);
    assert_int_equal(first->status, 0);
    assert_int_equal(first->process, 5);
    assert_int_equal(first->seq, b);
    for (size_t i = 0; i < first->nbatches; i++)
        see(s, &first->batches[i].touches, first->batches[i].sites, &first->batches[i].far);
    for (uint32_t bin = 0; bin < first->bins; bin++)
        s->stack.count[bin] += first->stack.count[bin];
    s->stack.total += first->stack.total;
    s->cold += first->cold;
    add_counts(&s->counts, &first->counts);
    ahead_note_sites(a, &t->noted);
    see_executed(t);
    ahead_take(a);
}

static struct ahead *make_ahead(const char *test)
{
    struct ahead *a = ahead_new();
    if (a == NULL)
        not_tested_here(test, "one processor");
    return a;
}

static void same_results(void **state)
{
    struct test *t = *state;
    struct ahead *a = make_ahead("same_results");
    if (a == NULL)
        return;
    struct seen *here = t->seen = seen_new();
    for (unsigned b = 0; b < BUFFERS; b++)
        decode_here(t, b);
    process_stack_end(t->stack, here->run);

    struct seen *there = t->seen = seen_new();
    process_stack_free(t->stack);
    t->stack = process_stack_new(NULL);
    assert_non_null(t->stack);
    unsigned begun = 0, most = 0;
    for (unsigned b = 0; b < BUFFERS; b++) {
        int status = 1;
        while (begun < BUFFERS && status == 1) {
            const struct wire_desc desc = {.last_insns = UINT32_MAX, .seq = begun};
            status = begin(t, a, &desc, t->words[begun], t->nwords[begun]);
            begun += status == 1;
        }
        assert_int_equal(ahead_waiting(a), begun - b);
        most = begun - b > most ? begun - b : most;
        take_first(t, a, b);
    }
    assert_in_range(most, 2, BUFFERS - 1); /* there is a limit */
    assert_null(ahead_first(a));
    ahead_wait(a);
    process_stack_end(t->stack, there->run);

    assert_in_range(here->n, (uint64_t)BUFFERS * RECORDS, (uint64_t)BUFFERS * RECORDS * 4);
    assert_in_range(here->nfar, 1000, here->n);
    assert_int_equal(there->n, here->n);
    assert_memory_equal(there->lines, here->lines, here->n * sizeof(*here->lines));
    assert_memory_equal(there->sites, here->sites, here->n * sizeof(*here->sites));
    assert_int_equal(there->nfar, here->nfar);
    assert_int_equal(there->far_at, here->far_at);
    assert_int_equal(there->far_stack, here->far_stack);
    assert_true(here->repeats > 0);
    assert_int_equal(there->repeats, here->repeats);
    assert_memory_equal(there->executions, here->executions, sizeof(here->executions));
    assert_true(here->more > 0);
    assert_int_equal(there->more, here->more);
    assert_int_equal(there->cold, here->cold);
    assert_memory_equal(&there->counts, &here->counts, sizeof(here->counts));
    assert_memory_equal(&there->stack, &here->stack, sizeof(here->stack));
    assert_memory_equal(there->run, here->run, sizeof(here->run));
    seen_free(here);
    seen_free(there);
    ahead_free(a);
}

/* A buffer of too many touches, between others, and what follows. */
static void too_many_touches(void **state)
{
    struct test *t = *state;
    struct ahead *a = make_ahead("too_many_touches");
    const uint64_t copy[] = {HEADER(COPY, 6), 1 << 22, 0x100000, 0x8000000, 0, 0x8000000 + (8 << 22)};
    if (a == NULL)
        return;
    t->seen = seen_new();
    for (uint64_t seq = 0; seq < 3; seq++) {
        const struct wire_desc desc = {.last_insns = UINT32_MAX, .seq = seq};
        int long_one = seq == 1;
        assert_int_equal(begin(t, a, &desc, long_one ? copy : t->words[0], long_one ? 6 : t->nwords[0]), 1);
    }
    take_first(t, a, 0);
    uint64_t lines = stackdist_lines(process_stack_distances(t->stack));
    assert_null(ahead_first(a)); /* the caller decodes it */
    assert_int_equal(ahead_waiting(a), 0);
    /* Neither it nor its successor has touched anything. */
    assert_int_equal(stackdist_lines(process_stack_distances(t->stack)), lines);
    const struct wire_desc desc = {.last_insns = UINT32_MAX, .seq = 2};
    assert_int_equal(begin(t, a, &desc, t->words[1], t->nwords[1]), 1);
    take_first(t, a, 2);
    assert_true(stackdist_lines(process_stack_distances(t->stack)) > lines);
    seen_free(t->seen);
    ahead_free(a);
}

static void discarded_and_freed(void **state)
{
    struct test *t = *state;
    const struct wire_desc desc = {.last_insns = UINT32_MAX, .seq = 9};
    struct ahead *a = make_ahead("discarded_and_freed");
    if (a == NULL)
        return;
    t->seen = seen_new();
    assert_int_equal(begin(t, a, &desc, t->words[0], t->nwords[0]), 1);
    assert_int_equal(begin(t, a, &desc, t->words[1], t->nwords[1]), 1);
    ahead_discard(a);
    assert_int_equal(ahead_waiting(a), 0);
    assert_int_equal(begin(t, a, &desc, t->words[2], t->nwords[2]), 1);
    take_first(t, a, 9);
    assert_int_equal(begin(t, a, &desc, t->words[3], t->nwords[3]), 1);
    ahead_free(a); /* while one is decoded */
    seen_free(t->seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_results, setup, teardown),
        cmocka_unit_test_setup_teardown(too_many_touches, setup, teardown),
        cmocka_unit_test_setup_teardown(discarded_and_freed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
