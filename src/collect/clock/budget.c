/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/clock/budget.h"
#include "collect/tunables.h"
#include <math.h>

uint64_t budget_first_gap_ns(double percent)
{
    return (uint64_t)fmin(BUDGET_FIRST_COST_NS / (percent / 100), (double)BUDGET_MOST_GAP_NS);
}

void budget_init(struct budget *b, double percent)
{
    *b = (struct budget){.share = percent / 100,
                         .gap_ns = budget_first_gap_ns(percent),
                         .watch = COLLECT_WATCH_PER_BURST,
                         .first_ns = BUDGET_ALLOWANCE_FIRST_NS};
}

/* Of the allowance, what may be spent until the program has run for so long. */
static double allowed_by(const struct budget *b, double app_cpu_ns)
{
    double periods = log1p(app_cpu_ns / b->first_ns), all = log1p(BUDGET_ALLOWANCE_LAST_NS / b->first_ns);
    return b->allowance_ns * fmin(periods / all, 1);
}

void budget_allow(struct budget *b, uint64_t allowance_ns, double before_ns)
{
    b->allowance_ns = (double)allowance_ns;
    b->first_ns = BUDGET_ALLOWANCE_FIRST_NS + before_ns;
    if (allowance_ns > 0) {
        double share = b->share + allowed_by(b, b->first_ns) / b->first_ns;
        b->gap_ns = (uint64_t)fmax((double)budget_first_gap_ns(share * 100), (double)BUDGET_LEAST_GAP_NS);
    }
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* From the cost of bursts, not from the gap between them: where watching is expensive the gap is long. */
uint64_t budget_watch_allowance_ns(const struct budget *b)
{
    return (uint64_t)clamp(BUDGET_ALLOWANCE * b->other_cost_ns, BUDGET_LEAST_ALLOWANCE_NS,
                           BUDGET_MOST_ALLOWANCE_SHARE * b->share * BUDGET_HORIZON_NS);
}

/* More watched lines cause more faults, and are worth less than more bursts: at most about a third. */
static void choose_watch(struct budget *b, double watch_ns, double spent_ns)
{
    if (!(spent_ns > 0))
        return;
    b->watch_share += (watch_ns / spent_ns - b->watch_share) / 4;
    if (b->watch_share > BUDGET_WATCH_MOST && b->watch > 1)
        b->watch--;
    else if (b->watch_share < BUDGET_WATCH_LEAST && b->watch < COLLECT_WATCH_PER_BURST)
        b->watch++;
}

uint64_t budget_next(struct budget *b, const struct budget_use *use)
{
    uint64_t spent_ns = use->burst_ns + use->recorder_ns + use->watch_ns;
    if (use->bursts > b->bursts) {
        double watch = (double)(use->watch_ns - b->watch_ns);
        double other = ((double)(spent_ns - b->spent_ns) - watch) / (double)(use->bursts - b->bursts);
        b->other_cost_ns += (other - b->other_cost_ns) / (b->other_cost_ns == 0 ? 1 : 3);
        choose_watch(b, watch, (double)(spent_ns - b->spent_ns));
        b->watch_ns = use->watch_ns;
        double cost = (double)(spent_ns - b->spent_ns) / (double)(use->bursts - b->bursts);
        /*
         * The first bursts are expensive, since all code is still to be translated: forgotten soon. If the
         * first one (python3: 35 ms) determined the gap, seconds of the program would pass without a burst.
         */
        if (b->bursts < BUDGET_FIRST_BURSTS)
            cost = fmin(cost, BUDGET_FIRST_COST_NS);
        else /* Nor should a burst whose CPU time the host stole; but what it cost counts as spent. */
            cost = fmin(cost, BUDGET_MOST_RISE * b->burst_cost_ns);
        double weight = b->burst_cost_ns == 0 ? 1 : cost < b->burst_cost_ns ? 0.7 : 0.3;
        b->burst_cost_ns += weight * (cost - b->burst_cost_ns);
        b->bursts = use->bursts;
        b->spent_ns = spent_ns;
    }
    uint64_t in_target_ns = use->burst_ns + use->watch_ns + use->start_ns;
    double app_cpu_ns = use->target_ns > in_target_ns ? (double)(use->target_ns - in_target_ns) : 0;
    if (b->burst_cost_ns > 0) {
        /* What may be spent over the horizon, including an excess or a saving so far. A saving counts only in
         * part, since a program's later half should not be sampled twice as densely as its first half; an
         * excess too, since bursts must not stop for a cost that no gap changes. In the beginning the horizon
         * is short: a program that runs for 0.2 s cannot compensate over a second. */
        double horizon_ns = clamp(app_cpu_ns, BUDGET_LEAST_HORIZON_NS, BUDGET_HORIZON_NS);
        double allowed_before = allowed_by(b, app_cpu_ns),
               allowed_then = allowed_by(b, app_cpu_ns + horizon_ns);
        double of_allowance = (allowed_then - allowed_before) / horizon_ns;
        double allowed =
            b->share * (app_cpu_ns + horizon_ns) + allowed_then - (double)(spent_ns + use->start_ns);
        double least = b->share * BUDGET_LEAST_SHARE + of_allowance * BUDGET_LEAST_OF_ALLOWANCE;
        double share = clamp(allowed / horizon_ns, least, (b->share + of_allowance) * 1.25);
        double gap_ns = b->burst_cost_ns / share,
               debt_ns = (double)spent_ns - b->share * app_cpu_ns - b->allowance_ns;
        if (debt_ns > b->share * BUDGET_MOST_DEBT_NS) /* the part above this is never compensated */
            gap_ns = fmax(gap_ns, debt_ns / b->share);
        gap_ns = clamp(gap_ns, (double)BUDGET_LEAST_GAP_NS, (double)BUDGET_MOST_GAP_NS);
        b->gap_ns = (uint64_t)fmax(gap_ns, app_cpu_ns / BUDGET_DENSE_BURSTS);
    }
    return b->gap_ns;
}
