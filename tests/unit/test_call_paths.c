/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and returns in records, shadow stacks, and what of them is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "collect/reduce/call-paths.h"

#define CODE UINT64_C(0x400000)
#define STACK UINT64_C(0x7ff000)
#define MANY 100000u /* touches: of which a sample is counted */
#define SITE 7u
#define MODULE 0u

static struct wire_module modules[] = {{.start = CODE, .end = CODE + 0x10000, .path = "/nowhere/program"},
                                       {.start = CODE, .end = CODE + 0x10000, .path = "/nowhere/other"}};
static uint32_t nmodules = 1;

struct test {
    struct code *code;
    struct call_tree *tree;
    struct object_table *files;
    struct call_paths *paths;
};

static struct test make(void)
{
    struct error err;
    struct test t = {.code = code_new(&err), .files = object_table_new(&err)};
    assert_non_null(t.code);
    assert_non_null(t.files);
    t.tree = call_tree_new(t.code, &err);
    assert_non_null(t.tree);
    t.paths = call_paths_new(t.tree, t.files, NULL, modules, &nmodules, 1);
    assert_non_null(t.paths);
    return t;
}

static void clear(struct test *t)
{
    call_paths_free(t->paths);
    call_tree_free(t->tree);
    object_table_free(t->files);
    code_free(t->code);
}

static void begin(struct test *t, uint32_t tid, uint64_t burst)
{
    const struct wire_desc desc = {.tid = tid, .burst = burst};
    assert_int_equal(call_paths_buffer(t->paths, &desc, NULL), 0);
}

/* Calls and returns, after which the code touches; `what` tells the touches of different calls apart. */
static void turns(struct test *t, const struct decode_turn *list, size_t n, uint32_t what)
{
    call_paths_batch(t->paths, list, n);
    call_paths_touch(t->paths, SIZE_MAX, 1, SITE, what, MANY);
    call_paths_batch_over(t->paths);
}

/* The offsets of the calls before touches `what`, innermost first; UINT64_MAX: of a call that is not known.
 */
static size_t path_of(const struct test *t, uint32_t what, uint64_t offsets[16])
{
    struct symbols_code code = code_found(t->code);
    size_t n = 0, found = 0;
    call_tree_describe(t->tree, &code);
    for (size_t i = 0; i < code.ncalls; i++) {
        const struct symbols_call *call = &code.calls[i];
        if (call->what != what)
            continue;
        assert_int_equal(found++, 0);
        assert_int_equal(call->site, SITE);
        assert_true(call->touches > MANY * 9 / 10 && call->touches < MANY * 11 / 10);
        for (uint32_t path = call->path; path != 0; path = code.paths[path].caller) {
            assert_true(code.paths[path].caller < path && n < 16);
            uint32_t site = code.paths[path].site;
            offsets[n++] = site == SYMBOLS_NO_SITE ? UINT64_MAX : code.sites[site].offset;
        }
    }
    assert_int_equal(found, 1);
    return n;
}

static void check(const struct test *t, uint32_t what, const uint64_t *expected, size_t n)
{
    uint64_t offsets[16];
    assert_int_equal(path_of(t, what, offsets), n);
    for (size_t i = 0; i < n; i++) /* of the last byte of the call */
        assert_int_equal(offsets[i], expected[i] == UINT64_MAX ? UINT64_MAX : expected[i] - 1);
}

#define AT(address, return_address)                                      \
    {                                                                    \
        .slot = (address), .returns = (return_address), .module = MODULE \
    }
#define CALL(depth, offset) AT(STACK - 0x40 * (depth), CODE + (offset))
#define RETURN(depth) AT(STACK - 0x40 * (depth), 0)
#define TURNS(t, what, ...)                             \
    turns(t, (const struct decode_turn[]){__VA_ARGS__}, \
          sizeof((const struct decode_turn[]){__VA_ARGS__}) / sizeof(struct decode_turn), what)
#define CHECK(t, what, ...)                         \
    check(t, what, (const uint64_t[]){__VA_ARGS__}, \
          sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void calls_and_returns(void **state)
{
    struct test t = make();
    (void)state;
    begin(&t, 1, 1);
    TURNS(&t, 1, CALL(1, 0x10), CALL(2, 0x20), CALL(3, 0x30));
    TURNS(&t, 2, RETURN(3));
    TURNS(&t, 3, CALL(3, 0x38));
    TURNS(&t, 4, RETURN(3), RETURN(2), CALL(2, 0x28));
    CHECK(&t, 1, 0x30, 0x20, 0x10);
    CHECK(&t, 2, 0x20, 0x10);
    CHECK(&t, 3, 0x38, 0x20, 0x10);
    CHECK(&t, 4, 0x28, 0x10);
    clear(&t);
}

/* A longjmp shows no returns; unknown code returns from what was never called. */
static void unseen_returns(void **state)
{
    struct test t = make();
    (void)state;
    begin(&t, 1, 1);
    TURNS(&t, 1, CALL(1, 0x10), CALL(2, 0x20), CALL(5, 0x50), CALL(2, 0x28));
    TURNS(&t, 2, CALL(7, 0x70), RETURN(2));
    TURNS(&t, 3, RETURN(0), RETURN(9));
    CHECK(&t, 1, 0x28, 0x10);
    CHECK(&t, 2, 0x10);
    check(&t, 3, NULL, 0);
    clear(&t);
}

static void recursion(void **state)
{
    struct test t = make();
    (void)state;
    begin(&t, 1, 1);
    turns(&t, (const struct decode_turn[]){CALL(1, 0x10)}, 1, 1);
    for (unsigned depth = 2; depth < 1000; depth++)
        turns(&t, (const struct decode_turn[]){CALL(depth, 0x20)}, 1, 100 + depth);
    TURNS(&t, 2, RETURN(1));
    CHECK(&t, 102, 0x20, 0x10);
    CHECK(&t, 700, 0x20, 0x10);
    check(&t, 2, NULL, 0);
    clear(&t);
}

/* A tree of depth 16: each of the two calls is in a path once. Cycles of more calls: up to some depth. */
static void tree_recursion(void **state)
{
    struct test t = make();
    struct symbols_code code = {0};
    (void)state;
    begin(&t, 1, 1);
    for (uint32_t leaf = 0; leaf < 1 << 16; leaf += 5) {
        for (uint32_t depth = 1; depth < 18; depth++) {
            const struct decode_turn call = CALL(depth, depth == 1                ? 0x10
                                                        : leaf >> (depth - 2) & 1 ? 0x20
                                                                                  : 0x28);
            call_paths_batch(t.paths, &call, 1);
            call_paths_touch(t.paths, SIZE_MAX, 1, SITE, 1, 64);
            call_paths_batch_over(t.paths);
        }
    }
    call_tree_describe(t.tree, &code);
    assert_int_equal(code.npaths, 6);
    for (uint32_t depth = 1; depth < 1000; depth++)
        turns(&t, (const struct decode_turn[]){CALL(depth, 0x100 + 8 * (depth % 5))}, 1, 3);
    call_tree_describe(t.tree, &code);
    assert_in_range(code.npaths, 6 + 120, 6 + 140);
    clear(&t);
}

static void deep_recursion(void **state)
{
    struct test t = make();
    enum { DEEP = 12000, TOO_DEEP = 20000 };
    (void)state;
    begin(&t, 1, 1);
    for (uint32_t depth = 1; depth <= TOO_DEEP; depth++) {
        const struct decode_turn call = CALL(depth, depth % 2 ? 0x10 : 0x20);
        call_paths_batch(t.paths, &call, 1);
        call_paths_batch_over(t.paths);
        if (depth == DEEP)
            TURNS(&t, 1, CALL(depth + 1, 0x30), CALL(depth + 2, 0x40));
    }
    TURNS(&t, 2, RETURN(TOO_DEEP));
    TURNS(&t, 3, RETURN(7), CALL(7, 0x50));
    CHECK(&t, 1, 0x40, 0x30, 0x20, 0x10);
    check(&t, 2, NULL, 0);
    CHECK(&t, 3, 0x50, 0x20, 0x10);
    clear(&t);
}

/* Many calls without counted touches need no node. */
static void only_what_counts(void **state)
{
    struct test t = make();
    struct symbols_code code = {0};
    (void)state;
    begin(&t, 1, 1);
    for (uint32_t i = 0; i < 100; i++)
        for (uint32_t k = 1; k < 1000; k++) {
            const struct decode_turn list[] = {CALL(1, 2 * i + 1), CALL(2, 3 * k)};
            call_paths_batch(t.paths, list, 2);
            call_paths_touch(t.paths, SIZE_MAX, 1, SITE, 1, 0);
            call_paths_batch_over(t.paths);
        }
    TURNS(&t, 1, CALL(1, 0x10), CALL(2, 0x20));
    CHECK(&t, 1, 0x20, 0x10);
    call_tree_describe(t.tree, &code);
    assert_int_equal(code.npaths, 3);
    clear(&t);
}

/* When there is no space, a path is not taken for that of a caller. */
static void too_many_paths(void **state)
{
    struct test t = make();
    struct symbols_code code = {0};
    (void)state;
    begin(&t, 1, 1);
    for (uint32_t i = 0; i < 1024; i++)
        for (uint32_t k = 0; k < 300; k++) {
            const struct decode_turn list[] = {CALL(1, 2 * i + 1), CALL(2, 0x1000 + 2 * k)};
            call_paths_batch(t.paths, list, 2);
            call_paths_touch(t.paths, SIZE_MAX, 1, SITE, 1, 8);
            call_paths_batch_over(t.paths);
        }
    call_tree_describe(t.tree, &code);
    assert_int_equal(code.npaths, 262144);
    TURNS(&t, 2, CALL(1, 1), CALL(2, 0xf000));
    check(&t, 2, NULL, 0);
    clear(&t);
}

/* Another library where one was: each call is in the one that its code was in. */
static void replaced_module(void **state)
{
    struct test t = make();
    const uint64_t slot = STACK - 0x40;
    struct decode_turn before = AT(slot, CODE + 0x10), after = before;
    (void)state;
    begin(&t, 1, 1);
    after.module = 1;
    turns(&t, &before, 1, 1);
    nmodules = 2;
    turns(&t, &after, 1, 2);
    turns(&t, &before, 1, 3);
    after.module = UINT32_MAX; /* then the last one */
    turns(&t, &after, 1, 4);
    nmodules = 1;
    struct symbols_code code = code_found(t.code);
    call_tree_describe(t.tree, &code);
    const char *expected[] = {"/nowhere/program", "/nowhere/other", "/nowhere/program", "/nowhere/other"};
    for (size_t i = 0; i < code.ncalls; i++)
        assert_string_equal(code.images[code.sites[code.paths[code.calls[i].path].site].image],
                            expected[code.calls[i].what - 1]);
    assert_int_equal(code.ncalls, 4);
    clear(&t);
}

/* A coroutine on a stack near by, that goes on with a return; a return from a signal handler. */
static void near_stacks(void **state)
{
    struct test t = make();
    (void)state;
    begin(&t, 1, 1);
    TURNS(&t, 1, CALL(1, 0x10), CALL(2, 0x20), RETURN(3), CALL(3, 0x30));
    TURNS(&t, 2, AT(STACK - 65536, 0), AT(STACK - 65536, CODE + 0x40));
    CHECK(&t, 1, 0x30, 0x20, 0x10);
    CHECK(&t, 2, 0x40);
    clear(&t);
}

/* A coroutine on a stack far away; then the first stack again. */
static void other_stacks(void **state)
{
    struct test t = make();
    const uint64_t far = UINT64_C(0x7fff00000000);
    (void)state;
    begin(&t, 1, 1);
    TURNS(&t, 1, CALL(1, 0x10), CALL(2, 0x20));
    TURNS(&t, 2, AT(far, CODE + 0x60), AT(far - 64, CODE + 0x70));
    TURNS(&t, 3, CALL(3, 0x30));
    TURNS(&t, 4, AT(far - 64, 0));
    CHECK(&t, 2, 0x70, 0x60);
    CHECK(&t, 3, 0x30, 0x20, 0x10);
    CHECK(&t, 4, 0x60);
    begin(&t, 1, 2); /* what was known of both is out of date */
    TURNS(&t, 5, CALL(3, 0x38));
    TURNS(&t, 6, AT(far - 128, CODE + 0x78));
    CHECK(&t, 5, 0x38);
    CHECK(&t, 6, 0x78);
    clear(&t);
}

/* In full mode buffers of threads alternate. */
static void threads(void **state)
{
    struct test t = make();
    (void)state;
    for (uint32_t tid = 1; tid <= 600; tid++) {
        begin(&t, tid, tid);
        turns(&t, (const struct decode_turn[]){CALL(1, 0x10 + tid)}, 1, 1000 + tid);
    }
    for (uint32_t tid = 590; tid <= 600; tid++) {
        begin(&t, tid, tid);
        turns(&t, NULL, 0, 2000 + tid);
        CHECK(&t, 2000 + tid, 0x10 + tid);
    }
    begin(&t, 1, 1); /* forgotten */
    turns(&t, NULL, 0, 3000);
    check(&t, 3000, NULL, 0);
    clear(&t);
}

static void unknown_code(void **state)
{
    struct test t = make();
    (void)state;
    begin(&t, 1, 1);
    TURNS(&t, 1, CALL(1, 0x10), CALL(2, 0x20000), CALL(3, 0x30));
    CHECK(&t, 1, 0x30, UINT64_MAX, 0x10);
    clear(&t);
}

/* The copy of a stack, of code without unwind information: frame pointers. */
static void copied_stack(void **state)
{
    struct test t = make();
    static struct wire_stack copy;
    struct wire_desc desc = {.tid = 1, .burst = 1, .pc = CODE + 0x99};
    (void)state;
    copy.sp = STACK;
    copy.rbp = STACK + 32;
    copy.words[4] = STACK + 64; /* the caller's rbp, and where it continues */
    copy.words[5] = CODE + 0x20;
    copy.words[8] = STACK + 16; /* below: not a frame */
    copy.words[9] = CODE + 0x10;
    desc.stack_words = UINT64_MAX; /* the target can write there, too */
    assert_int_equal(call_paths_buffer(t.paths, &desc, &copy), 0);
    turns(&t, NULL, 0, 1);
    CHECK(&t, 1, 0x20, 0x10);
    TURNS(&t, 2, AT(STACK + 40, 0));
    CHECK(&t, 2, 0x10);
    desc.burst = 2;
    desc.stack_words = 9; /* the second return address was not copied */
    assert_int_equal(call_paths_buffer(t.paths, &desc, &copy), 0);
    turns(&t, NULL, 0, 3);
    CHECK(&t, 3, 0x20);
    nmodules = 2; /* the callers of a signal handler */
    snprintf(modules[1].path, sizeof modules[1].path, "/lib/libcachegram-agent.so");
    modules[1].start = CODE + 0x20;
    modules[1].end = CODE + 0x40;
    desc.burst = 3;
    desc.stack_words = 10;
    assert_int_equal(call_paths_buffer(t.paths, &desc, &copy), 0);
    turns(&t, NULL, 0, 4);
    check(&t, 4, NULL, 0);
    desc.pc = CODE + 0x30; /* a thread begins in the agent; in word 5 is another function of it */
    desc.burst = 4;
    assert_int_equal(call_paths_buffer(t.paths, &desc, &copy), 0);
    turns(&t, NULL, 0, 5);
    CHECK(&t, 5, 0x10);
    TURNS(&t, 6, AT(STACK + 72, 0)); /* from word 9 */
    check(&t, 6, NULL, 0);
    nmodules = 1;
    modules[1].start = CODE;
    modules[1].end = CODE + 0x10000;
    snprintf(modules[1].path, sizeof modules[1].path, "/nowhere/other");
    clear(&t);
}

/* --- the decoder --- */

enum { RECORDS = 20000, WORDS = 3 * RECORDS };

struct templates {
    struct wire_block head;
    struct wire_ref refs[2];
};

struct seen {
    struct decoder *decoder;
    size_t turns, touches;
    int wrong;
};

/* Record number i: of a call if i is even; word 1 of it is 64 * i. */
static int take(void *ctx, const uint64_t *lines, size_t n)
{
    struct seen *s = ctx;
    size_t nturns;
    const struct decode_turn *list = decoder_turns(s->decoder, &nturns);
    (void)lines;
    for (size_t i = 0; i < nturns; i++, s->turns++) {
        uint64_t record = s->turns;
        /* Each record makes two touches. */
        s->wrong += s->touches + list[i].at != 2 * (record + 1) || list[i].slot != 64 * record + 8 ||
                    list[i].returns != (record % 2 == 0 ? CODE + 0x15 : 0) || list[i].module != 5;
    }
    s->touches += n;
    return 0;
}

static void ignore(void *ctx, uint32_t site, uint64_t touches)
{
    (void)ctx, (void)site, (void)touches;
}

static void from_records(void **state)
{
    static _Alignas(8) struct {
        uint64_t unused;
        struct templates blocks[2];
    } area;
    static uint32_t offsets[WIRE_MAX_BLOCKS];
    static uint64_t words[WORDS];
    static uint32_t executions[WIRE_MAX_BLOCKS], executed[WIRE_MAX_BLOCKS + 1];
    const struct decode_source source = {&area, sizeof(area), offsets};
    struct decode_sites sites = {.executions = executions, .executed = executed, .more = ignore};
    struct decode_counts counts = {0};
    struct error err;
    (void)state;
    for (uint32_t b = 0; b < 2; b++) {
        area.blocks[b] = (struct templates){
            .head = {.pc = CODE + 0x10,
                     .nwords = 3,
                     .nrefs = 2,
                     .ninsns = 2,
                     .module = 5,
                     .ends = b == 0 ? WIRE_BLOCK_CALL : WIRE_BLOCK_RETURN,
                     .bytes = 5},
            .refs = {{.disp = 0x1000, .size = 8, .rw = WIRE_LOAD, .slot = 2},
                     {.disp = 8, .size = 8, .rw = b == 0 ? WIRE_STORE : WIRE_LOAD, .slot = 1, .insn = 1}}};
        offsets[b + 1] = (uint32_t)((char *)&area.blocks[b] - (char *)&area);
    }
    for (uint64_t i = 0; i < RECORDS; i++) {
        words[3 * i] = (1 + i % 2) | UINT64_C(3) << WIRE_ID_BITS;
        words[3 * i + 1] = 64 * i;
        words[3 * i + 2] = 128 * i;
    }
    struct seen seen = {.decoder = decoder_new(64, &source, &err)};
    assert_non_null(seen.decoder);
    assert_int_equal(decoder_note_turns(seen.decoder), 0);
    decoder_note_sites(seen.decoder, &sites);
    /* The last one is incomplete: what it does afterwards is not known. */
    assert_int_equal(
        decode_buffer(seen.decoder, &(struct wire_desc){.last_insns = 1}, words, WORDS, take, &seen, &counts),
        0);
    assert_int_equal(seen.wrong, 0);
    assert_int_equal(seen.turns, RECORDS - 1);
    assert_int_equal(seen.touches, 2 * RECORDS - 1);
    decoder_free(seen.decoder);
}

/* A return in the agent's code makes no reference; the only word of its record says where the return address
 * is. */
static int take_return(void *ctx, const uint64_t *lines, size_t n)
{
    struct seen *s = ctx;
    size_t nturns;
    const struct decode_turn *list = decoder_turns(s->decoder, &nturns);
    (void)lines;
    s->turns += nturns;
    s->touches += n;
    s->wrong += nturns != 1 || list[0].slot != 0x7ff0 || list[0].returns != 0 || list[0].at != 1;
    return 0;
}

static void returns_of_agent(void **state)
{
    static _Alignas(8) struct {
        uint64_t unused;
        struct templates blocks[2];
    } area = {.blocks = {{.head = {.pc = CODE, .nwords = 2, .nrefs = 1, .ninsns = 1, .bytes = 5},
                          .refs = {{.size = 8, .rw = WIRE_LOAD, .slot = 1}}},
                         {.head = {.pc = CODE + 0x20, .nwords = 2, .ends = WIRE_BLOCK_RETURN, .bytes = 1}}}};
    static uint32_t offsets[WIRE_MAX_BLOCKS];
    static uint32_t executions[WIRE_MAX_BLOCKS], executed[WIRE_MAX_BLOCKS + 1];
    /* As many touches after it as it takes to have whole groups of records decoded. */
    static uint64_t words[2 * 1000];
    struct decode_sites sites = {.executions = executions, .executed = executed, .more = ignore};
    struct decode_counts counts = {0};
    struct error err;
    (void)state;
    for (uint32_t b = 0; b < 2; b++)
        offsets[b + 1] = (uint32_t)((char *)&area.blocks[b] - (char *)&area);
    const struct decode_source source = {&area, sizeof(area), offsets};
    for (uint64_t i = 0; i < 1000; i++) {
        words[2 * i] = (i == 1 ? 2 : 1) | UINT64_C(2) << WIRE_ID_BITS;
        words[2 * i + 1] = 0x7ff0;
    }
    for (int n = 10; n <= 1000; n += 990) { /* one by one; in groups, where the machine can */
        struct seen seen = {.decoder = decoder_new(64, &source, &err)};
        assert_non_null(seen.decoder);
        assert_int_equal(decoder_note_turns(seen.decoder), 0);
        decoder_note_sites(seen.decoder, &sites);
        assert_int_equal(decode_buffer(seen.decoder, &(struct wire_desc){.last_insns = UINT32_MAX}, words,
                                       2 * (uint64_t)n, take_return, &seen, &counts),
                         0);
        assert_int_equal(seen.wrong, 0);
        assert_int_equal(seen.turns, 1);
        assert_int_equal(seen.touches, n - 1);
        decoder_free(seen.decoder);
        memset(executions, 0, sizeof(executions));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_and_returns), cmocka_unit_test(unseen_returns),
        cmocka_unit_test(recursion),         cmocka_unit_test(other_stacks),
        cmocka_unit_test(threads),           cmocka_unit_test(unknown_code),
        cmocka_unit_test(copied_stack),      cmocka_unit_test(from_records),
        cmocka_unit_test(deep_recursion),    cmocka_unit_test(tree_recursion),
        cmocka_unit_test(too_many_paths),    cmocka_unit_test(only_what_counts),
        cmocka_unit_test(replaced_module),   cmocka_unit_test(near_stacks),
        cmocka_unit_test(returns_of_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
