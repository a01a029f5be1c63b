/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - state that every storey of the agent may use: the mapping shared with the collector, this
 * process's slot in it, and whether the agent is working.
 *
 * `agent_off` is set before the constructor is done, in a process that is not profiled, and from the first
 * problem on: no thread enters translated code. `agent_gone` means more: the signals, timers and pages are
 * the target's again, and interposed functions only make the requested call. `agent_active` is set while
 * timers, bursts and protected pages belong to this process, and not to the one that it was forked from.
 */
#ifndef CACHEGRAM_AGENT_SYS_SESSION_H
#define CACHEGRAM_AGENT_SYS_SESSION_H

#include <stdint.h>
#include "wire/wire.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default")))
#pragma GCC visibility push(hidden)

extern struct wire_session *session; /* NULL: none */
extern struct wire_proc *proc;       /* this process's slot; NULL: none */
extern uint8_t *slot;                /* the same address as proc */
extern int agent_off;                /* enum wire_disabled; 0: the agent works */
extern int agent_gone;
extern int agent_active;
extern uint32_t process_id;

/* No thread enters translated code from now on. Only the first reason is kept. */
void agent_disable(enum wire_disabled why);

/* Full mode, or every reference is counted (which this process may be unable to do). Either may be over at
 * any moment (wire_session.begins_full). */
int agent_records_all(void);
int agent_counts_all(void);
void agent_set_can_count(int can);
/* One of the two: threads stay in translated code as long as possible. */
int agent_always_translated(void);

/* Wakes the collector. */
void doorbell(void);

/* Nonzero: the collector has ended, perhaps as a zombie that its parent has not waited for. */
int collector_gone(void);

/* State letter of a process or thread, as in ps; 0: unknown. */
char task_state(uint32_t id);
uint64_t task_pending_signals(uint32_t id); /* sent to that thread, of signals 1 to 31 */

/* Adds to a counter of the slot, atomically. */
static inline void count_add(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

#pragma GCC visibility pop
#endif
