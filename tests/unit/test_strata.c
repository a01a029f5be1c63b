/* SPDX-License-Identifier: Apache-2.0 */
/* Strata of bursts in the time of each phase (agent/threads/phases.c), driven by simulated ticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/random.h"
/* The agent is no library that could be linked. */
#include "agent/threads/phases.c"

#define TICK_NS UINT64_C(2000000)
#define GAP_NS UINT64_C(40000000)
#define CODES 20u

static struct thread *new_thread(uint64_t seed)
{
    struct thread *t = aligned_alloc(_Alignof(struct thread), sizeof *t);
    assert_non_null(t);
    memset(t, 0, sizeof *t);
    t->timing.random = seed;
    t->timing.gap_ns = GAP_NS;
    phases_plan_next(t, 0, GAP_NS);
    return t;
}

/* Runs at pc until a tick; nonzero: a burst begins there. */
static int tick(struct thread *t, uint64_t pc, uint64_t now)
{
    phases_follow(t, pc, now);
    if (now < t->timing.planned_ns)
        return 0;
    phases_plan_next(t, t->timing.planned_ns, GAP_NS);
    return 1;
}

/* Codes alternate, each for so many ticks at a time: each has the bursts that its time is worth, at most two
 * more or less, whatever the seed. */
static void check_shares(const unsigned *ticks, unsigned codes, unsigned rounds)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct thread *t = new_thread(seed);
        unsigned bursts[CODES] = {0};
        uint64_t now = 0;
        for (unsigned round = 0; round < rounds; round++)
            for (unsigned code = 0; code < codes; code++)
                for (unsigned i = 0; i < ticks[code]; i++)
                    bursts[code] +=
                        (unsigned)tick(t, UINT64_C(0x400000) + code * UINT64_C(0x1000), now += TICK_NS);
        assert_int_equal(t->phases.found, codes);
        for (unsigned code = 0; code < codes; code++) {
            double due = (double)(rounds * ticks[code] * TICK_NS) / (double)GAP_NS;
            assert_true(bursts[code] >= due - 2 && bursts[code] <= due + 2);
        }
        free(t);
    }
}

static void test_shares(void **state)
{
    (void)state;
    check_shares((unsigned[]){24, 8}, 2, 200);
    check_shares((unsigned[]){8, 64, 16}, 3, 100);
}

/* Each stratum of a phase's own time has one burst, in order, at a point that may be anywhere in it. */
static void test_strata(void **state)
{
    (void)state;
    struct thread *t = new_thread(7);
    uint64_t now = 0, next[2] = {1, 0}, own[2] = {0}, early = 0,
             late = 0; /* the first plan is for the second stratum */
    for (unsigned i = 0; i < 20000; i++) {
        unsigned code = i / 8 % 5 == 4;
        phases_follow(t, code ? 0x403000 : 0x400000, now += TICK_NS);
        uint32_t phase = t->phases.current;
        if (now >= t->timing.planned_ns) {
            uint64_t at = t->timing.planned_ns - t->phases.phase[phase].outside_ns;
            assert_int_equal(at / GAP_NS, next[phase]++);
            assert_int_equal(t->timing.stratum_ns - t->phases.phase[phase].outside_ns, at / GAP_NS * GAP_NS);
            early += at % GAP_NS < GAP_NS / 4;
            late += at % GAP_NS >= GAP_NS - GAP_NS / 4;
            phases_plan_next(t, t->timing.planned_ns, GAP_NS);
        }
        own[phase] += TICK_NS;
    }
    assert_int_equal(t->phases.found, 2);
    for (unsigned phase = 0; phase < 2; phase++)
        assert_true(next[phase] + 1 >= own[phase] / GAP_NS && next[phase] <= own[phase] / GAP_NS + 1);
    assert_in_range(early, 200, 300); /* of 1000 */
    assert_in_range(late, 200, 300);
    free(t);
}

/* Samples of one code that is spread over many places differ by chance alone. Some windows found phases
 * before it is known well, but then it hardly goes from one to another. */
static void test_chance(void **state)
{
    (void)state;
    for (unsigned places = 2; places <= 32; places *= 2) {
        struct thread *t = new_thread(places);
        uint64_t random = places;
        unsigned changes = 0;
        for (unsigned i = 0; i < 8000; i++) {
            uint32_t before = t->phases.current;
            phases_follow(t, (random_splitmix64(&random) % places) << 12, (i + 1) * TICK_NS);
            changes += t->phases.current != before;
        }
        assert_in_range(changes, 0, 200);
        free(t);
    }
}

/* With more codes than phases are distinguished, each still gets bursts, and none is lost. */
static void test_many(void **state)
{
    (void)state;
    struct thread *t = new_thread(3);
    uint64_t now = 0;
    unsigned bursts = 0, n = 100 * CODES * PHASE_SAMPLES;
    for (unsigned i = 0; i < n; i++)
        bursts += (unsigned)tick(t, (UINT64_C(1) + i / PHASE_SAMPLES % CODES) << 12, now += TICK_NS);
    assert_int_equal(t->phases.found, PHASE_MOST);
    assert_in_range(bursts, now / GAP_NS - PHASE_MOST, now / GAP_NS + PHASE_MOST);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_strata),
        cmocka_unit_test(test_chance),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
