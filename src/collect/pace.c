/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.c - when bursts begin, and how far apart they are. A run with an allowance begins in full mode; once
 * its part of the allowance is spent, bursts follow, whose gaps keep to the budget.
 */
#include "collect/launch/process-time.h"
#include "collect/run-internal.h"
#include "collect/tunables.h"
#include "profile/profile.h"
#include "wire/wire.h"

/* What was used so far, before bursts began or since. */
static struct budget_use used(struct run *r)
{
    struct budget_use use = drain_use(r->drain);
    use.recorder_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - r->recorder_before_ns;
    use.target_ns -= r->before.target_ns;
    use.burst_ns -= r->before.burst_ns;
    use.recorder_ns -= r->before.recorder_ns;
    use.watch_ns -= r->before.watch_ns;
    use.start_ns -= r->before.start_ns;
    use.bursts -= r->before.bursts;
    return use;
}

/*
 * CPU time that buffers which are ready will take, by what later ones took: the first are far more expensive,
 * since tables are created and code is translated.
 */
static double backlog_ns(struct run *r, uint64_t buffers, uint64_t spent_ns)
{
    if (buffers < COLLECT_FULL_FIRST_BUFFERS)
        return 0;
    if (r->pace.first_buffers == 0) {
        r->pace.first_buffers = buffers;
        r->pace.first_ns = spent_ns;
    }
    uint64_t later = buffers - r->pace.first_buffers;
    return later > 0 ? (double)drain_ready(r->drain) * (double)(spent_ns - r->pace.first_ns) / (double)later
                     : 0;
}

/*
 * Full mode is over once its part of the allowance is spent: by the recorder, by the program in translated
 * code (all of it counts, though some is its own work), and by what is still to be done with buffers handed
 * over.
 */
static void spend_on_full(struct run *r, uint64_t buffers)
{
    uint64_t full_ns = reduce_totals(r->reducer)->burst_cpu_ns;
    uint64_t spent_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - r->recorder_before_ns + full_ns;
    double all_ns = (double)spent_ns + backlog_ns(r, buffers, spent_ns),
           allowance_ns = (double)r->options->allowance_ns;
    struct error err;
    if (r->pace.switching.mean_ns != 0 ? monotonic_ns() < r->pace.switching.next_ns
                                       : all_ns < COLLECT_FULL_PART * allowance_ns)
        return;
    budget_allow(&r->pace.budget, all_ns < allowance_ns ? (uint64_t)(allowance_ns - all_ns) : 0);
    __atomic_store_n(&r->session.map->gap_ns, r->pace.budget.gap_ns, __ATOMIC_RELAXED);
    drain_full_over(r->drain);
    r->full = 0;
    r->full_ns = full_ns;
    r->before = used(r);
    profile_set(r->profile, "mode", "burst", &err); /* should that fail, the next commit does, too */
}

void pace_begin(struct run *r)
{
    r->pace.budgeted = !r->options->full && r->options->gap_us == 0;
    budget_init(&r->pace.budget, r->options->overhead_percent);
    if (r->session.layout.begins_full)
        r->pace.switching.mean_ns = r->options->switch_ms * UINT64_C(1000000);
    random_seed(&r->pace.switching.random, r->options->seed);
    if (r->pace.switching.mean_ns != 0)
        r->pace.switching.next_ns = r->start_ns + 10 * r->pace.switching.mean_ns;
}

static void switch_modes(struct run *r, uint64_t now)
{
    struct switching *s = &r->pace.switching;
    uint32_t mode = __atomic_load_n(&r->session.map->mode, __ATOMIC_RELAXED);
    if (s->mean_ns == 0 || r->full || now < s->next_ns)
        return;
    s->next_ns = now + random_below(&s->random, 2 * s->mean_ns);
    mode = mode == WIRE_MODE_FULL ? WIRE_MODE_BURST : WIRE_MODE_FULL;
    __atomic_store_n(&r->session.map->mode, mode, __ATOMIC_RELEASE);
}

void pace_mode(struct run *r, uint64_t now_ns, uint64_t buffers)
{
    if (r->pace.budgeted && r->full)
        spend_on_full(r, buffers);
    switch_modes(r, now_ns);
}

void pace_gap(struct run *r, uint64_t now_ns)
{
    struct budget *b = &r->pace.budget;
    if (!r->pace.budgeted || r->full || now_ns < r->pace.next_ns)
        return;
    r->pace.next_ns = now_ns + BUDGET_EVERY_MS * UINT64_C(1000000);
    struct budget_use use = used(r);
    uint64_t gap_ns = budget_next(b, &use);
    if (r->pace.switching.mean_ns != 0) /* some bursts before the next switch */
        gap_ns = r->pace.switching.mean_ns / 4;
    __atomic_store_n(&r->session.map->gap_ns, gap_ns, __ATOMIC_RELAXED);
    if (r->watches != NULL && r->options->watch_lines == 0) {
        watches_set_per_burst(r->watches, b->watch);
        drain_watch_limit(r->drain, COLLECT_WATCH_LIVE / COLLECT_WATCH_PER_BURST * b->watch,
                          budget_watch_allowance_ns(b));
    }
}
