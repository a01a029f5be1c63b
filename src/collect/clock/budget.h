/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h - how far apart bursts must be for profiling to cost what the user allowed.
 *
 * The cost of profiling is the CPU time of the target inside bursts (all of it counts, though part is the
 * program's own work, which nobody can tell apart without a clock), what watched lines take, and the CPU time
 * of the recorder. It is measured,
 * every tenth of a second or so; what a burst costs (some 0.3 ms warm, several while much is still to be
 * translated) and what was spent so far give the gap that meets the budget over the next second.
 */
#ifndef CACHEGRAM_BUDGET_H
#define CACHEGRAM_BUDGET_H

#include <stdint.h>

struct budget {
    double share;         /* of the program's own CPU time: .05 for 5% */
    double burst_cost_ns; /* what one costs, smoothed; 0: not known yet */
    uint64_t gap_ns;      /* the answer */
    unsigned watch;       /* likewise: lines to watch after each burst, 1 .. COLLECT_WATCH_PER_BURST */
    double watch_share;   /* of what is spent, that goes into watching; smoothed */
    double other_cost_ns; /* of a burst, without what watching takes; smoothed */
    /* as last seen */
    uint64_t spent_ns, bursts, watch_ns;
};

/* What was used so far, all in nanoseconds of CPU time since the beginning. */
struct budget_use {
    uint64_t target_ns; /* the program, bursts included */
    uint64_t burst_ns;  /* of that, in bursts */
    uint64_t recorder_ns;
    uint64_t watch_ns; /* of target_ns: faults, short bursts and system calls of watched lines */
    /* Of target_ns: the agent's start in each process. No gap changes it: bursts become fewer for it, down to
     * BUDGET_LEAST_SHARE of what is allowed, but do not stop. */
    uint64_t start_ns;
    uint64_t bursts;
};

/* CPU time that watching may take from one burst to the next before lines are given up. */
uint64_t budget_watch_allowance_ns(const struct budget *b);
/* The gap until something was measured: first bursts are taken to cost BUDGET_FIRST_COST_NS. percent > 0. */
uint64_t budget_first_gap_ns(double percent);
void budget_init(struct budget *b, double percent);
/* The mean CPU time from one burst of a thread to the next, from now on: b->gap_ns. */
uint64_t budget_next(struct budget *b, const struct budget_use *use);

#endif
