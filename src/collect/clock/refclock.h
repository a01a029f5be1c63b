/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refclock.h - the reference clock of one process: where in each thread's references a burst lies, how fast
 * they went around it, and how many of them it stands for. Whatever counts them (wire.h: the agent, before
 * each burst or always; or the machine's counters, pmu.h), the reducer asks here.
 *
 * When a burst comes, what it costs, and what it stands for is this room's:
 *
 *     budget.h     how far apart bursts must be for profiling to cost what the user allowed
 *     trigger.h    interrupts a thread when its next burst is due
 *     pmu.h        the machine's counters of references, where there are any
 *     counting.h   what counted references say of native code; faultcost.h: what the kernel's part costs
 *     agent-time.h how long a process ran with an agent in it
 */
#ifndef CACHEGRAM_REFCLOCK_H
#define CACHEGRAM_REFCLOCK_H

#include <stdint.h>
#include "wire/wire.h"

struct refclock;

/* Each NaN where the clock does not tell. */
struct refclock_burst {
    double start_refs;   /* references that the thread had executed when the burst began */
    double refs_per_ns;  /* of the thread's CPU time, in native code, just before the burst */
    double near_per_ns;  /* the same of the last few thousand references, where the burst's place was drawn
                            from */
    double stratum_refs; /* that the burst stands for, where bursts are placed by references */
};

/* A stretch of native code of a thread, between a burst's end and the next one's beginning or less than that,
 * that was counted from outside. */
struct refclock_stretch {
    uint32_t tid;
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    double references;
    double cpu_ns;         /* of the thread, in which they were executed */
    double trigger_per_ns; /* references of a trigger's gap for each ns of the agent's; 0: placed by time */
};

/* NULL when memory is short. */
struct refclock *refclock_new(void);
void refclock_free(struct refclock *c); /* NULL is allowed */
/* In the order of their ends, thread by thread; before refclock_burst of the burst that follows. 0 or
 * -ENOMEM.
 */
int refclock_counted(struct refclock *c, const struct refclock_stretch *stretch);
/*
 * Burst after burst of each thread, in their order: what the clock says of this one, which had so many
 * references. 0 or -ENOMEM.
 */
int refclock_burst(struct refclock *c, const struct wire_desc *desc, uint64_t references,
                   struct refclock_burst *out);

#endif
