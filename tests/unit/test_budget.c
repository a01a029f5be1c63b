/* SPDX-License-Identifier: Apache-2.0 */
/* The budget's controller against programs whose bursts cost what the test says. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "collect/clock/budget.h"
#include "collect/tunables.h"

/* What the first FIRST_BURSTS cost, as a multiple of later ones: all code is still to be translated. */
static double first_times = 1;
#define FIRST_BURSTS 3
/* CPU time that the starts of processes take in each second of the program's own. */
static double starts_ns;

/* A program of so many seconds of its own time; bursts cost the target `in` and the recorder `out` ns each,
 * `later` times as much in its second half. Returns what was spent, as a share of its own time, starts not
 * included. */
static double allowance_ns; /* that may be spent besides */
static double run(double percent, double seconds, double in, double out, double later, uint64_t *bursts)
{
    struct budget b;
    struct budget_use use = {0};
    double own = 0, next_look = 0, spent_in = 0, spent_out = 0;
    budget_init(&b, percent);
    budget_allow(&b, (uint64_t)allowance_ns, 0);
    double planned_gap = (double)b.gap_ns, next_burst = planned_gap / 2;
    while (own < seconds * 1e9) {
        own += 100000;
        if ((double)b.gap_ns > 2 * planned_gap) { /* as threads put off what they have planned */
            next_burst += (double)b.gap_ns - planned_gap;
            planned_gap = (double)b.gap_ns;
        }
        if (own >= next_burst) {
            double factor = use.bursts < FIRST_BURSTS ? first_times : own > seconds * 5e8 ? later : 1;
            spent_in += in * factor;
            spent_out += out * factor;
            use.bursts++;
            planned_gap = (double)b.gap_ns;
            next_burst = own + planned_gap;
        }
        if (own >= next_look) {
            use.burst_ns = (uint64_t)spent_in;
            use.start_ns = (uint64_t)(own * 1e-9 * starts_ns);
            use.target_ns = (uint64_t)(own + spent_in) + use.start_ns;
            use.recorder_ns = (uint64_t)spent_out;
            budget_next(&b, &use);
            next_look = own + BUDGET_EVERY_MS * 1e6;
        }
    }
    *bursts = use.bursts;
    return (spent_in + spent_out) / own;
}

static void meets_the_budget(void **state)
{
    (void)state;
    static const double percents[] = {0.5, 1, 2, 5, 10, 20};
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
        uint64_t bursts;
        double share = 100 * run(percents[i], 20, 200000, 800000, 1, &bursts);
        assert_true(share < 1.1 * percents[i]);
        assert_true(share > 0.8 * percents[i]);
    }
}

/* An allowance is spent in addition to the percentage, most of it early, and never exceeded. */
static void allowance_comes_first(void **state)
{
    (void)state;
    static const double seconds[] = {0.1, 0.3, 1, 3, 10, 30};
    double before = 0;
    allowance_ns = 5e8;
    for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
        uint64_t bursts;
        double spent = seconds[i] * run(5, seconds[i], 200000, 2800000, 1, &bursts);
        double allowed = spent - 0.05 * seconds[i];
        assert_true(allowed < 0.5 + 0.1 * 0.05 * seconds[i]);
        assert_true(spent > before);
        if (seconds[i] <= 3) { /* a quarter in 0.03 s, half in 0.2 s, three quarters in 0.9 s */
            double planned = 0.5 * log1p(seconds[i] / 0.01) / log1p(4 / 0.01);
            assert_true(allowed < 1.15 * planned);
            assert_true(allowed > 0.5 * planned);
        }
        if (seconds[i] >= 10)
            assert_true(allowed > 0.35);
        before = spent;
    }
    allowance_ns = 0;
}

/* It is not spent so fast that nothing is left, whatever the first bursts cost: a run of a second needs its
 * later bursts as much. */
static void allowance_outlasts_expensive_first_bursts(void **state)
{
    (void)state;
    uint64_t half, whole;
    allowance_ns = 7e8;
    first_times = 12;
    run(5, 0.65, 2000000, 6000000, 1, &half);
    run(5, 1.3, 2000000, 6000000, 1, &whole);
    first_times = 1;
    allowance_ns = 0;
    assert_true(half > 8);
    assert_true(whole >= half + 4);
}

static void follows_rising_burst_costs(void **state)
{
    (void)state;
    uint64_t bursts;
    double share = 100 * run(5, 20, 200000, 300000, 10, &bursts);
    assert_true(share < 6);
    assert_true(share > 4);
}

static void few_bursts_that_cost_more_than_is_allowed(void **state)
{
    (void)state;
    uint64_t bursts;
    /* Each costs 2 seconds: the first is known too late, then there is nothing left to spend. */
    run(1, 20, 1e9, 1e9, 1, &bursts);
    assert_in_range(bursts, 1, 6);
}

static void keeps_the_first_gap_until_it_knows(void **state)
{
    (void)state;
    struct budget b;
    struct budget_use use = {.target_ns = 1000000000};
    budget_init(&b, 5);
    uint64_t first = budget_first_gap_ns(5);
    assert_int_equal(first, BUDGET_FIRST_COST_NS / 0.05);
    assert_int_equal(budget_next(&b, &use), first);
    use.bursts = 1;
    use.burst_ns = 1000000;
    assert_int_not_equal(budget_next(&b, &use), first);
}

static void bounds_of_the_gap(void **state)
{
    (void)state;
    struct budget b;
    struct budget_use use = {.target_ns = 1000000000, .bursts = 10, .burst_ns = 10};
    budget_init(&b, 100);
    assert_int_equal(budget_next(&b, &use), BUDGET_LEAST_GAP_NS);
    use.bursts = 11;
    use.burst_ns = use.target_ns = UINT64_C(4000000000000);
    assert_int_equal(budget_next(&b, &use), BUDGET_MOST_GAP_NS);
}

/* Of a gap of 20 ms: 2,000 bursts in the first 40 s, and then 2,000 for each time that the run has become
 * 2.7 times as long. */
static void bursts_of_long_runs_are_bounded(void **state)
{
    (void)state;
    uint64_t first, hours;
    run(5, 40, 200000, 800000, 1, &first);
    double share = run(5, 7200, 200000, 800000, 1, &hours);
    assert_true(first > 0.9 * BUDGET_DENSE_BURSTS);
    assert_in_range(hours, 0.9 * BUDGET_DENSE_BURSTS * (1 + log(7200 / 40.)),
                    1.1 * BUDGET_DENSE_BURSTS * (1 + log(7200 / 40.)));
    assert_true(share < 0.005);
}

static void short_runs_do_not_overspend(void **state)
{
    (void)state;
    uint64_t bursts;
    first_times = 8; /* 8 ms each */
    double eight = 100 * run(5, 0.5, 600000, 400000, 1, &bursts);
    first_times = 12; /* three of them are all that 1.2 s may cost */
    double twenty = 100 * run(5, 0.5, 600000, 400000, 1, &bursts);
    double two_seconds = 100 * run(5, 2, 600000, 400000, 1, &bursts);
    first_times = 1;
    assert_true(eight < 5.5);
    assert_true(twenty < 10);
    assert_true(two_seconds < 5.3);
    assert_true(bursts > 20);
}

static void starts_are_in_the_budget(void **state)
{
    (void)state;
    uint64_t without, with, most;
    run(5, 10, 600000, 400000, 1, &without);
    starts_ns = 2e7; /* 2% */
    double share = 100 * run(5, 10, 600000, 400000, 1, &with);
    assert_true(share < 3.3);
    assert_true(share > 2.7);
    starts_ns = 1e8; /* 10% */
    share = 100 * run(5, 10, 600000, 400000, 1, &most);
    starts_ns = 0;
    assert_true(most < with && with < without);
    assert_true(share > 0.9 * 5 * BUDGET_LEAST_SHARE); /* they do not stop for what no gap changes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meets_the_budget),
        cmocka_unit_test(allowance_comes_first),
        cmocka_unit_test(allowance_outlasts_expensive_first_bursts),
        cmocka_unit_test(follows_rising_burst_costs),
        cmocka_unit_test(few_bursts_that_cost_more_than_is_allowed),
        cmocka_unit_test(keeps_the_first_gap_until_it_knows),
        cmocka_unit_test(bounds_of_the_gap),
        cmocka_unit_test(bursts_of_long_runs_are_bounded),
        cmocka_unit_test(short_runs_do_not_overspend),
        cmocka_unit_test(starts_are_in_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
