/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger.h - interrupts for the target's threads, from outside.
 *
 * A perf cpu-clock event on the thread sends it SIGTRAP after so much of its CPU time: to the
 * microsecond, where the kernel's CPU timers only fire on its tick; only in user code, so that no
 * system call of the target's is disturbed; and the descriptors are ours, not the target's. While gaps are
 * long it ticks by itself, since setting it anew interrupts the processor that the thread runs on (5 us; .02
 * to 1.5 ms where that is a virtual one that must be woken), and most ticks are ignored. With the clock `pmu`
 * it comes after so many references instead (pmu.h): what the agent asks for in CPU time is taken at the rate
 * of references that the process has had so far.
 */
#ifndef CACHEGRAM_COLLECT_TRIGGER_H
#define CACHEGRAM_COLLECT_TRIGGER_H

#include "collect/clock/refclock.h"
#include "machine/counters.h"
#include "wire/wire.h"

struct triggers; /* those of one process */

/* Nonzero if such events can be opened here: kernel 5.18 or later, and perf events allowed. */
int triggers_available(void);

/*
 * For a process that took a slot. counters: NULL, or those to count references by, who go to the clock;
 * neither is owned. NULL: out of memory. The caller owns it; triggers_free takes NULL and ends all
 * interrupts.
 */
struct triggers *triggers_new(const struct counters *counters, struct refclock *clock, uint64_t seed);
void triggers_free(struct triggers *t);

/* Nonzero if there is something for triggers_serve to do. */
int triggers_pending(const struct triggers *t, const struct wire_proc *proc);

/* Tells the clock what was counted before bursts that have begun. 0, or -ENOMEM. Before their buffers are
 * read. */
int triggers_count(struct triggers *t);

/* Does what the process' threads have asked for since the last call, and has their events tick as is right
 * for the mean gap (wire_session.gap_ns). t may be NULL. */
void triggers_serve(struct triggers *t, struct wire_proc *proc, uint64_t mean_gap_ns);

#endif
