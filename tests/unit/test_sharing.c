/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of lines by several threads: which of them are false sharing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
#include "collect/reduce/sharing.h"
#include "collect/tunables.h"

#define LINE UINT64_C(0x7000)
#define LATER (COLLECT_SHARING_NS * 2)
#define ROUNDS 20u

static struct sharing *make(void **state)
{
    static const struct decode_source none;
    struct error err;
    struct sharing *s = sharing_new(&none, 64, &err);
    (void)state;
    assert_non_null(s);
    return s;
}

/* A piece of one reference by a thread's instruction `pc`. */
static void use(struct sharing *s, uint32_t tid, uint64_t ns, uint64_t pc, uint64_t address, uint16_t bytes,
                uint8_t rw)
{
    const struct trace_batch piece = {.n = 1, .address = &address, .pc = &pc, .size = &bytes, .rw = &rw};
    assert_int_equal(sharing_piece(s, tid, ns, &piece, NULL), 0);
}

/* Threads 1 and 2, by instructions 0x10 and 0x20, in turns: 8 bytes each. */
static void take_turns(struct sharing *s, uint64_t ns, uint64_t address1, uint64_t address2, uint8_t rw)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        use(s, 1, ns + i, 0x10, address1, 8, rw);
        use(s, 2, ns + i, 0x20, address2, 8, rw);
    }
}

static struct sharing_refs refs_of(const struct sharing *s, uint64_t pc)
{
    struct sharing_refs sum = {.pc = pc};
    size_t n;
    const struct sharing_refs *refs = sharing_refs(s, &n);
    for (size_t i = 0; i < n; i++) {
        sum.apart += refs[i].pc == pc ? refs[i].apart : 0;
        sum.same += refs[i].pc == pc ? refs[i].same : 0;
    }
    return sum;
}

static void check(struct sharing *s, uint64_t pc, uint64_t apart, uint64_t same)
{
    struct sharing_refs r = refs_of(s, pc);
    assert_int_equal(r.apart, apart);
    assert_int_equal(r.same, same);
}

static void counters_side_by_side(void **state)
{
    struct sharing *s = make(state);
    take_turns(s, 0, LINE, LINE + 8, TRACE_STORE);
    /* The first turn is thread 2's; those before the COLLECT_SHARING_TURNS-th may be a coincidence. */
    check(s, 0x10, ROUNDS - COLLECT_SHARING_TURNS / 2, 0);
    check(s, 0x20, ROUNDS - COLLECT_SHARING_TURNS / 2, 0);
    assert_int_equal(sharing_total(s), 0); /* of buffers */
    sharing_free(s);
}

static void lines_of_their_own(void **state)
{
    struct sharing *s = make(state);
    take_turns(s, 0, LINE + 56, LINE + 64, TRACE_STORE);
    check(s, 0x10, 0, 0);
    check(s, 0x20, 0, 0);
    sharing_free(s);
}

static void the_same_counter(void **state)
{
    struct sharing *s = make(state);
    take_turns(s, 0, LINE + 8, LINE + 12, TRACE_STORE); /* overlaps */
    check(s, 0x10, 0, ROUNDS - 1);
    check(s, 0x20, 0, ROUNDS);
    sharing_free(s);
}

/* Each thread uses all bytes, but not in each piece. */
static void the_same_bytes_now_and_then(void **state)
{
    struct sharing *s = make(state);
    for (uint32_t i = 0; i < 100 * ROUNDS; i++) {
        use(s, 1, i, 0x10, LINE + 8 * (i % 8), 8, TRACE_STORE);
        use(s, 2, i, 0x20, LINE + 8 * ((i + 4) % 8), 8, TRACE_STORE);
    }
    assert_true(refs_of(s, 0x10).apart < ROUNDS);
    assert_true(refs_of(s, 0x10).same > 90 * ROUNDS);
    sharing_free(s);
}

static void who_only_reads_waits_too(void **state)
{
    struct sharing *s = make(state);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        use(s, 1, i, 0x10, LINE, 8, TRACE_STORE);
        use(s, 2, i, 0x20, LINE + 16, 4, TRACE_LOAD);
    }
    check(s, 0x10, 0, 0);
    check(s, 0x20, ROUNDS - COLLECT_SHARING_TURNS + 1, 0);
    sharing_free(s);
}

static void all_read(void **state)
{
    struct sharing *s = make(state);
    take_turns(s, 0, LINE, LINE + 8, TRACE_LOAD);
    check(s, 0x10, 0, 0);
    check(s, 0x20, 0, 0);
    sharing_free(s);
}

/* A thread that initialized the line, and uses it no more, is no other user. */
static void initialized_by_another(void **state)
{
    struct sharing *s = make(state);
    use(s, 3, 0, 0x30, LINE, 64, TRACE_STORE);
    for (uint32_t i = 0; i < ROUNDS; i++)
        use(s, 1, i, 0x10, LINE, 8, TRACE_STORE);
    check(s, 0x10, 0, 1);
    take_turns(s, LATER, LINE, LINE + 8, TRACE_STORE);
    assert_true(refs_of(s, 0x10).apart > ROUNDS / 2);
    assert_int_equal(refs_of(s, 0x10).same, 1);
    sharing_free(s);
}

/* As lazy binding does: each thread writes a function's address once, and then all read the addresses. */
static void written_once(void **state)
{
    struct sharing *s = make(state);
    use(s, 1, 0, 0x30, LINE, 8, TRACE_STORE);
    use(s, 2, 0, 0x30, LINE + 8, 8, TRACE_STORE);
    take_turns(s, 0, LINE, LINE + 8, TRACE_LOAD);
    check(s, 0x10, 0, 0);
    check(s, 0x20, 0, 0);
    sharing_free(s);
}

/* One after the other, with long pauses. */
static void not_at_the_same_time(void **state)
{
    struct sharing *s = make(state);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        use(s, 1, 2 * i * LATER, 0x10, LINE, 8, TRACE_STORE);
        use(s, 2, (2 * i + 1) * LATER, 0x20, LINE + 8, 8, TRACE_STORE);
    }
    check(s, 0x10, 0, 0);
    check(s, 0x20, 0, 0);
    sharing_free(s);
}

/* Lines that only one thread uses do not push out those of several. */
static void many_private_lines(void **state)
{
    struct sharing *s = make(state);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        use(s, 1, i, 0x10, LINE, 8, TRACE_STORE);
        use(s, 2, i, 0x20, LINE + 8, 8, TRACE_STORE);
        for (uint64_t k = 1; k < 20000; k++)
            use(s, 1 + i % 2, i, 0x30, LINE + 64 * (k + 20000 * i), 8, TRACE_STORE);
    }
    assert_true(refs_of(s, 0x10).apart > ROUNDS / 2);
    assert_int_equal(refs_of(s, 0x30).apart + refs_of(s, 0x30).same, 0);
    sharing_free(s);
}

/* More threads than a line remembers. */
static void many_threads(void **state)
{
    struct sharing *s = make(state);
    for (uint32_t i = 0; i < 8 * ROUNDS; i++)
        use(s, 1 + i % 8, i, 0x10, LINE + 8 * (i % 8), 8, TRACE_STORE);
    assert_true(refs_of(s, 0x10).apart > 7 * ROUNDS);
    assert_int_equal(refs_of(s, 0x10).same, 0);
    sharing_free(s);
}

/* A reference that straddles two lines uses both. */
static void across_two_lines(void **state)
{
    struct sharing *s = make(state);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        use(s, 1, i, 0x10, LINE - 4, 8, TRACE_STORE);
        use(s, 2, i, 0x20, LINE + 4, 4, TRACE_STORE);
    }
    assert_true(refs_of(s, 0x20).apart > ROUNDS / 2);
    sharing_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_side_by_side),
        cmocka_unit_test(lines_of_their_own),
        cmocka_unit_test(the_same_counter),
        cmocka_unit_test(the_same_bytes_now_and_then),
        cmocka_unit_test(who_only_reads_waits_too),
        cmocka_unit_test(all_read),
        cmocka_unit_test(written_once),
        cmocka_unit_test(initialized_by_another),
        cmocka_unit_test(not_at_the_same_time),
        cmocka_unit_test(many_private_lines),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(across_two_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
