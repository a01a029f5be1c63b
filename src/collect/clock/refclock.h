/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refclock.h - the reference clock of one process: at which reference of its thread a burst begins, the rate
 * of references around it, and how many references it represents. The reducer asks here, whatever counts: the
 * agent (before each burst, or always; wire.h) or hardware counters (pmu.h).
 *
 * This folder decides when a burst comes, and what it costs and represents:
 *
 *     budget.h     the gap between bursts for which profiling costs what the user allowed
 *     trigger.h    interrupts a thread when its next burst is due
 *     pmu.h        hardware counters of references, where there are any
 *     counting.h   native execution time from counting stretches; faultcost.h: the kernel's part of the cost
 *     agent-time.h how long a process ran with an agent in it
 */
#ifndef CACHEGRAM_REFCLOCK_H
#define CACHEGRAM_REFCLOCK_H

#include <stdint.h>
#include "wire/wire.h"

struct refclock;

/* Each NaN where the clock does not know it. */
struct refclock_burst {
    double start_refs;  /* references that the thread had executed when the burst began */
    double refs_per_ns; /* references per ns of the thread's CPU time in native code, just before the burst */
    double near_per_ns; /* the same for the last few thousand references, among which the burst's start was
                           drawn */
    double stratum_refs; /* references that the burst represents, if bursts are placed by references */
};

/* A stretch of a thread's native execution, at most from a burst's end to the next one's beginning, that was
 * counted from outside. */
struct refclock_stretch {
    uint32_t tid;
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    double references;
    double cpu_ns;         /* CPU time of the thread in the stretch */
    double trigger_per_ns; /* references of a trigger's gap per ns of the gap that the agent asked for; 0:
                              placed by time */
};

/* NULL when memory is short. */
struct refclock *refclock_new(void);
void refclock_free(struct refclock *c); /* NULL is allowed */
/* Stretches of each thread in the order of their ends, each before refclock_burst of the burst that follows.
 * 0 or -ENOMEM. */
int refclock_counted(struct refclock *c, const struct refclock_stretch *stretch);
/*
 * Bursts of each thread in their order: sets *out for this one, which has so many references. 0 or -ENOMEM.
 */
int refclock_burst(struct refclock *c, const struct wire_desc *desc, uint64_t references,
                   struct refclock_burst *out);
/* The thread's last burst was followed by so many references that were recorded, too. */
void refclock_more(struct refclock *c, uint32_t tid, uint64_t references);

#endif
