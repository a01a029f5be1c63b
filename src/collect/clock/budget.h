/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h - chooses the gap between bursts so that profiling costs what the user allowed.
 *
 * The cost is the CPU time of the target inside bursts (all of it, although part is the program's own work,
 * which cannot be separated without a clock), the time for watched lines, and the CPU time of the recorder.
 * It is measured every BUDGET_EVERY_MS. The cost of one burst (about 0.3 ms, several ms while much code is
 * still to be translated) and the cost so far determine the gap that meets the budget over the next second.
 */
#ifndef CACHEGRAM_BUDGET_H
#define CACHEGRAM_BUDGET_H

#include <stdint.h>

struct budget {
    double share;         /* of the program's own CPU time: 0.05 for 5% */
    double burst_cost_ns; /* smoothed; 0: not known yet */
    uint64_t gap_ns;      /* the result */
    unsigned watch;       /* result: lines to watch after each burst, 1 .. COLLECT_WATCH_PER_BURST */
    double watch_share;   /* watching's share of the cost; smoothed */
    double other_cost_ns; /* of a burst, without watching; smoothed */
    double allowance_ns;  /* that may be spent in addition to the share; 0: none */
    double first_ns;      /* it is spent evenly over the logarithm of the time plus this */
    /* at the last call */
    uint64_t spent_ns, bursts, watch_ns;
};

/* Used so far, in nanoseconds of CPU time since the start of the run. */
struct budget_use {
    uint64_t target_ns; /* the program, bursts included */
    uint64_t burst_ns;  /* of that, in bursts */
    uint64_t recorder_ns;
    uint64_t watch_ns; /* of target_ns: faults, probe bursts and system calls because of watched lines */
    /* Of target_ns: the agent's start in each process. No gap changes it: it makes bursts rarer, down to
     * BUDGET_LEAST_SHARE of the allowed overhead. */
    uint64_t start_ns;
    uint64_t bursts;
};

/* CPU time that watching may take from one burst to the next before lines are censored. */
uint64_t budget_watch_allowance_ns(const struct budget *b);
/* The gap before anything was measured: bursts are assumed to cost BUDGET_FIRST_COST_NS. percent > 0. */
uint64_t budget_first_gap_ns(double percent);
void budget_init(struct budget *b, double percent);
/* After budget_init: so much CPU time may be spent in addition to the share, most of it early. before_ns: CPU
 * time of the program that counts as gone by; it makes the beginning less dense. */
void budget_allow(struct budget *b, uint64_t allowance_ns, double before_ns);
/* Returns b->gap_ns: the mean CPU time from one burst of a thread to the next, from now on. */
uint64_t budget_next(struct budget *b, const struct budget_use *use);

#endif
