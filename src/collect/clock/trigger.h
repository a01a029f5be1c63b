/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger.h - interrupts threads of the target, from outside.
 *
 * A perf cpu-clock event on the thread sends it SIGTRAP after a given CPU time. It is exact to the
 * microsecond, while the kernel's CPU timers only expire at its tick. It fires only in user code, so that it
 * disturbs no system call of the target. The descriptors are in the collector, not in the target. While gaps
 * are long the event is periodic and most of its ticks are ignored, since setting it anew interrupts the
 * processor on which the thread runs (5 us; 0.02 to 1.5 ms for a virtual processor that must be woken). With
 * the clock `pmu` it fires after a number of references instead (pmu.h): the CPU time that the agent asks for
 * is converted at the process' rate of references so far.
 */
#ifndef CACHEGRAM_COLLECT_TRIGGER_H
#define CACHEGRAM_COLLECT_TRIGGER_H

#include "collect/clock/refclock.h"
#include "machine/counters.h"
#include "wire/wire.h"

struct triggers; /* the triggers of one process */

/* Nonzero if such events can be opened here: kernel 5.18 or later, and perf events allowed. */
int triggers_available(void);

/*
 * For a process that took a slot. counters: NULL, or those that count references for `clock`; neither is
 * owned. NULL: out of memory. The caller owns the result; triggers_free ends all interrupts and accepts NULL.
 */
struct triggers *triggers_new(const struct counters *counters, struct refclock *clock, uint64_t seed);
void triggers_free(struct triggers *t);

/* Nonzero if there is something for triggers_serve to do. */
int triggers_pending(const struct triggers *t, const struct wire_proc *proc);

/* Passes to the clock what was counted before bursts that have begun. To be called before their buffers are
 * read. 0, or -ENOMEM. */
int triggers_count(struct triggers *t);

/* Does what the process' threads have requested since the last call, and adapts the periods of their events
 * to the mean gap (wire_session.gap_ns). t may be NULL. */
void triggers_serve(struct triggers *t, struct wire_proc *proc, uint64_t mean_gap_ns);

#endif
