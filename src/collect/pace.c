/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace.c - in which mode the run is recorded, and how far apart bursts are. A run with an allowance begins in
 * full mode. Once that has used its part of the allowance, every reference is counted, and bursts are placed
 * by references, until another part is used. In the rest of the run bursts are placed by CPU time, and their
 * gaps keep to the budget.
 */
#include <math.h>
#include "collect/launch/process-time.h"
#include "collect/run-internal.h"
#include "collect/tunables.h"
#include "profile/profile.h"
#include "wire/wire.h"

/* What was used so far, in all. */
static struct budget_use used_in_all(struct run *r)
{
    struct budget_use use = drain_use(r->drain);
    use.recorder_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - r->recorder_before_ns;
    return use;
}

/* Since full mode, or counting, was over. */
static struct budget_use used(struct run *r)
{
    struct budget_use use = used_in_all(r);
    use.target_ns -= r->before.target_ns;
    use.burst_ns -= r->before.burst_ns;
    /* Buffers of full mode that are not reduced yet were counted as used. */
    use.recorder_ns -= use.recorder_ns < r->before.recorder_ns ? use.recorder_ns : r->before.recorder_ns;
    use.watch_ns -= r->before.watch_ns;
    use.start_ns -= r->before.start_ns;
    use.bursts -= r->before.bursts;
    return use;
}

/* Bursts may use so much of the allowance from now on; the program has run for app_ns since full mode. */
static void allow_bursts(struct run *r, double allowance_ns, double app_ns)
{
    budget_init(&r->pace.budget, r->options->overhead_percent);
    budget_allow(&r->pace.budget, allowance_ns > 0 ? (uint64_t)allowance_ns : 0, app_ns);
    __atomic_store_n(&r->session.map->gap_ns, r->pace.budget.gap_ns, __ATOMIC_RELAXED);
}

/* CPU time for which every reference is counted. */
static double counting_ns(const struct run *r)
{
    return r->pace.counts ? COLLECT_COUNT_PART * (double)r->options->allowance_ns : 0;
}

/* Whether a part of the run is over that has had so many references and may have spent its share; tests
 * choose the moment, or after how many references (0: not). */
static int part_is_over(const struct run *r, uint64_t now_ns, uint64_t references, unsigned chosen, int spent)
{
    if (r->pace.switching.mean_ns != 0)
        return now_ns >= r->pace.switching.next_ns;
    return chosen != 0 ? references >= chosen : spent;
}

/* While every reference is counted, and in bursts at that time. */
static uint64_t counted_references(const struct run *r)
{
    return drain_all_counted(r->drain) + reduce_totals(r->reducer)->counted_references;
}

/* Ends the part in which every reference is counted, after its time, or once the allowance is used up. */
static void spend_on_counting(struct run *r, uint64_t now_ns)
{
    struct drain_counting counted = drain_counting(r->drain);
    struct budget_use use = used(r);
    struct error err;
    double left_ns = r->pace.left_ns - counted.added_ns - (double)(use.burst_ns + use.recorder_ns);
    if (!part_is_over(r, now_ns, counted_references(r), r->options->count_refs,
                      counted.native_ns + counted.added_ns >= counting_ns(r) || left_ns <= 0))
        return;
    r->pace.counts = 0;
    r->counted = counted;
    r->counted_references = drain_all_counted(r->drain);
    r->counted_strings = drain_all_counted_strings(r->drain);
    r->recorded_ns += use.burst_ns;
    drain_set_mode(r->drain, WIRE_MODE_BURST);
    r->before = used_in_all(r);
    allow_bursts(r, left_ns, counted.native_ns);
    /* About; for whoever reads the profile should the recorder be killed. */
    profile_set_number(r->profile, "counted_references", (double)counted_references(r), &err);
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
static void spend_on_full(struct run *r, uint64_t now_ns, uint64_t buffers)
{
    uint64_t full_ns = reduce_totals(r->reducer)->burst_cpu_ns;
    uint64_t spent_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - r->recorder_before_ns + full_ns;
    double all_ns = (double)spent_ns + backlog_ns(r, buffers, spent_ns),
           allowance_ns = (double)r->options->allowance_ns;
    struct error err;
    if (!part_is_over(r, now_ns, reduce_totals(r->reducer)->decoded.references, r->options->full_refs,
                      all_ns >= COLLECT_FULL_PART * allowance_ns))
        return;
    r->pace.left_ns = fmax(0, (1 - COLLECT_NAMING_PART) * allowance_ns - all_ns);
    r->pace.counts = r->clock == COLLECT_CLOCK_COUNT;
    drain_set_mode(r->drain, r->pace.counts || r->clock == COLLECT_CLOCK_COUNT_ALWAYS ? WIRE_MODE_COUNT
                                                                                      : WIRE_MODE_BURST);
    double for_bursts = r->pace.left_ns - counting_ns(r) / 2;
    allow_bursts(r, r->pace.counts ? COLLECT_COUNTED_BURSTS * for_bursts : for_bursts, 0);
    r->full = 0;
    r->full_ns = r->recorded_ns = full_ns;
    r->before = used_in_all(r);
    r->before.recorder_ns += (uint64_t)(all_ns - (double)spent_ns);
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
    static const uint32_t next[2][WIRE_MODE_COUNT + 1] = {{[WIRE_MODE_FULL] = WIRE_MODE_BURST,
                                                           [WIRE_MODE_BURST] = WIRE_MODE_COUNT,
                                                           [WIRE_MODE_COUNT] = WIRE_MODE_FULL},
                                                          {[WIRE_MODE_FULL] = WIRE_MODE_COUNT,
                                                           [WIRE_MODE_BURST] = WIRE_MODE_FULL,
                                                           [WIRE_MODE_COUNT] = WIRE_MODE_BURST}};
    struct switching *s = &r->pace.switching;
    uint32_t mode = __atomic_load_n(&r->session.map->mode, __ATOMIC_RELAXED);
    if (s->mean_ns == 0 || r->full || r->pace.counts || now < s->next_ns)
        return;
    s->next_ns = now + random_below(&s->random, 2 * s->mean_ns);
    mode = next[random_below(&s->random, 2)][mode];
    __atomic_store_n(&r->session.map->mode, mode, __ATOMIC_RELEASE);
}

void pace_mode(struct run *r, uint64_t now_ns, uint64_t buffers)
{
    if (r->pace.budgeted && r->full)
        spend_on_full(r, now_ns, buffers);
    else if (r->pace.counts)
        spend_on_counting(r, now_ns);
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
