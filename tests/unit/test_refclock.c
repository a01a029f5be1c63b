/* SPDX-License-Identifier: Apache-2.0 */
/* Places of bursts from counted stretches: worked by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock-ns.h"
#include "collect/clock/faultcost.h"
#include "collect/clock/counting.h"
#include "collect/clock/refclock.h"
#include "collect/tunables.h"

/* A burst of thread 7; wall time is CPU time + 1000. */
static struct wire_desc burst(uint64_t from_ns, uint64_t to_ns)
{
    return (struct wire_desc){.tid = 7,
                              .start_ns = from_ns + 1000,
                              .end_ns = to_ns + 1000,
                              .cpu_start_ns = from_ns,
                              .cpu_end_ns = to_ns,
                              .gap_ns = 50};
}

static struct refclock_stretch stretch(uint64_t from_ns, uint64_t to_ns, double references)
{
    return (struct refclock_stretch){.tid = 7,
                                     .start_ns = from_ns + 1000,
                                     .end_ns = to_ns + 1000,
                                     .references = references,
                                     .cpu_ns = (double)(to_ns - from_ns),
                                     .trigger_per_ns = 4};
}

static struct refclock_burst ask(struct refclock *c, struct wire_desc d, uint64_t references)
{
    struct refclock_burst reported;
    assert_int_equal(refclock_burst(c, &d, references, &reported), 0);
    return reported;
}

static void tell(struct refclock *c, struct refclock_stretch s)
{
    assert_int_equal(refclock_counted(c, &s), 0);
}

static void test_places(void **state)
{
    (void)state;
    struct refclock *c = refclock_new();
    /* 5,000 references in 2,500 ns; the burst makes 100 in 500 ns. */
    tell(c, stretch(0, 2500, 5000));
    struct refclock_burst reported = ask(c, burst(2500, 3000), 100);
    assert_true(reported.start_refs == 5000 && reported.refs_per_ns == 2 && reported.stratum_refs == 200);
    /* The example of refclock.c: 500 ns are not counted, and went at the rate of the 9,500 that are. */
    tell(c, stretch(3500, 13000, 19000));
    reported = ask(c, burst(13000, 13400), 10);
    assert_true(reported.start_refs == 25100 && reported.refs_per_ns == 2);
    /* One that began before the last burst's end is spoilt by it: the rate before is taken. Its fellow
     * counts. */
    tell(c, stretch(13100, 14400, 999999));
    reported = ask(c, burst(14400, 14500), 10);
    assert_true(reported.start_refs == 25110 + 2000 && reported.refs_per_ns == 2);
    tell(c, stretch(14450, 14600, 999999));
    tell(c, stretch(14600, 14700, 300));
    reported = ask(c, burst(14700, 14800), 10);
    assert_true(reported.start_refs == 27120 + 600 && reported.refs_per_ns == 3);
    /* Counted already, but after the burst that is asked for, which lay in its buffer for long. */
    tell(c, stretch(14900, 15000, 100));
    tell(c, stretch(15100, 15200, 500));
    reported = ask(c, burst(15000, 15050), 10);
    assert_true(reported.refs_per_ns == 1 && reported.start_refs == 27730 + 200);
    reported = ask(c, burst(15200, 15300), 10);
    assert_true(reported.refs_per_ns == 5 && reported.start_refs == 27940 + 750);
    /* Another thread that got the same id starts anew. */
    tell(c, stretch(15400, 15500, 100));
    struct wire_desc d = burst(100, 200);
    d.start_ns = 16500;
    reported = ask(c, d, 10);
    assert_true(reported.start_refs == 100 && reported.refs_per_ns == 1);
    refclock_free(c);
}

/* Against a chain of multiplications, which take three cycles each. */
static void test_cycle(void **state)
{
    (void)state;
    const double blocks = 100, ns = 1000;
    double cycle_ns = (ns - counting_native_ns(ns, blocks, 0)) / (COLLECT_COUNT_BLOCK_CYCLES * blocks);
    double least_ns = INFINITY;
    for (int i = 0; i < 100; i++) {
        uint64_t product = 3, start = clock_ns(CLOCK_MONOTONIC);
        for (int k = 0; k < 3000; k++)
            __asm__ volatile("imul %0, %0" : "+r"(product) : : "cc");
        least_ns = fmin(least_ns, (double)(clock_ns(CLOCK_MONOTONIC) - start));
    }
    assert_true(cycle_ns > 0.85 * least_ns / 9000 && cycle_ns < 1.15 * least_ns / 9000);
}

static void test_agents_counts(void **state)
{
    (void)state;
    struct refclock *c = refclock_new();
    struct refclock_burst reported = ask(c, burst(100, 200), 10);
    assert_true(isnan(reported.start_refs) && isnan(reported.refs_per_ns) && isnan(reported.stratum_refs));
    struct wire_desc d = burst(300, 400);
    d.count_refs = 50000;
    d.count_ns = 100000;
    d.count_blocks = 10000;
    d.count_turns = 500;
    reported = ask(c, d, 10); /* an alarm ended the stretch */
    assert_true(isnan(reported.start_refs));
    double counted = 2 - fmin((double)alarm_cost_ns(), 50000) / 50000, native = 1 / reported.refs_per_ns;
    assert_true(isnan(reported.near_per_ns));
    assert_true(fabs(native - counting_native_ns(50000 * counted, 10000, 500) / 50000) < 1e-9);
    assert_true(native < 0.99 * counted);
    assert_true(counting_native_ns(1000, 0, 0) == 1000 && counting_native_ns(1000, 1e9, 0) == 1000);
    /* A fifth of it if every block ends with a turn, and a third if every other does. */
    double blocks_off = counting_native_ns(1000, 100, 0);
    assert_true(blocks_off < 1000 &&
                fabs(counting_native_ns(1000, 100, 100) * (1 + COLLECT_COUNT_TURN_TIMES) - blocks_off) <
                    1e-9);
    assert_true(fabs(counting_native_ns(1000, 100, 50) * (1 + COLLECT_COUNT_TURN_TIMES / 2) - blocks_off) <
                1e-9);
    /* In a tight loop, each block takes NATIVE_CYCLES, although hardly any time is left without its cost. */
    double cycle_ns = (1000 - blocks_off) / (COLLECT_COUNT_BLOCK_CYCLES * 100), tight = 900 / cycle_ns / 2;
    assert_true(fabs(counting_native_ns(1000, tight, 0) - tight * cycle_ns * COLLECT_COUNT_NATIVE_CYCLES) <
                1e-6);
    /* A mark ended it; the last 10,000 went twice as fast. */
    d.near_refs = 10000;
    d.near_ns = 10000;
    reported = ask(c, d, 10);
    assert_true(fabs(1 / reported.refs_per_ns - counting_native_ns(100000, 10000, 500) / 50000) < 1e-9);
    assert_true(fabs(reported.near_per_ns - 2 * reported.refs_per_ns) < 1e-9);
    /* Half of its native time went into pages, where nothing is triggered; with warming up, a quarter. */
    double without = reported.near_per_ns, each = reported.refs_per_ns;
    d.paging_ns = (uint64_t)(counting_native_ns(100000, 10000, 500) / 2);
    reported = ask(c, d, 10);
    assert_true(fabs(reported.near_per_ns / without - 2) < 1e-3 && reported.refs_per_ns == each);
    d.warm_ns = d.count_ns;
    d.warm_blocks = d.count_blocks;
    d.warm_turns = d.count_turns;
    reported = ask(c, d, 10);
    assert_true(fabs(reported.near_per_ns / without - 4. / 3) < 1e-3 && reported.refs_per_ns == each);
    d.paging_ns = 0;
    reported = ask(c, d, 10);
    assert_true(fabs(reported.near_per_ns / without - 1) < 1e-9);
    /* System calls: of the thread's time, but not of that between bursts. */
    double near = reported.near_per_ns;
    d.count_call_ns = 100000;
    reported = ask(c, d, 10);
    assert_true(reported.near_per_ns == near);
    assert_true(fabs(1 / reported.refs_per_ns - (counting_native_ns(100000, 10000, 500) + 100000) / 50000) <
                1e-9);
    assert_true(alarm_cost_ns() > 100 && alarm_cost_ns() < 10000000 && alarm_cost_ns() == alarm_cost_ns());
    d = burst(500, 600);
    d.count_before = 1000;
    d.count_gap = 70;
    reported = ask(c, d, 10);
    /* All before were of the same time, as if each were of a new thread: those of the last one count. */
    assert_true(reported.start_refs == 1010 && reported.stratum_refs == 70);
    /* What the old thread's bursts made is not the new one's. */
    d = burst(300, 400);
    d.count_before = 200;
    d.count_gap = 70;
    assert_true(ask(c, d, 10).start_refs == 200);
    d = burst(500, 600);
    d.count_before = 300;
    d.count_gap = 70;
    assert_true(ask(c, d, 10).start_refs == 310);
    refclock_free(c);
}

static void test_more_than_fits(void **state)
{
    (void)state;
    struct refclock *c = refclock_new();
    for (uint64_t i = 0; i < 3 * WIRE_MAX_BUFFERS; i++)
        tell(c, stretch(10 * i, 10 * i + 10, i < 2 * WIRE_MAX_BUFFERS ? 10 : 20));
    /* The newest are kept. */
    assert_true(ask(c, burst(30 * WIRE_MAX_BUFFERS, 30 * WIRE_MAX_BUFFERS + 5), 1).refs_per_ns == 2);
    refclock_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_agents_counts),
        cmocka_unit_test(test_more_than_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
