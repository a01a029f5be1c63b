/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - the state that every storey of the agent may ask for: the mapping shared with the collector,
 * this process' slot in it, and whether the agent works at all.
 *
 * The agent is in one of four conditions. Before its constructor is done, and in a process that it does not
 * profile, `agent_off` is set: no thread enters translated code. `agent_gone` means more: the signals, timers
 * and pages are the target's again, and interposed functions only make the call that they were asked for.
 * `agent_active` is set while timers, bursts and protected pages belong to this very process, and not to the
 * one that it was forked from.
 */
#ifndef CACHEGRAM_AGENT_SYS_SESSION_H
#define CACHEGRAM_AGENT_SYS_SESSION_H

#include <stdint.h>
#include "wire/wire.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default")))
#pragma GCC visibility push(hidden)

extern struct wire_session *session; /* NULL: there is none */
extern struct wire_proc *proc;       /* this process' slot, NULL: it has none */
extern uint8_t *slot;                /* == proc, as bytes */
extern int agent_off;                /* enum wire_disabled; 0: the agent works */
extern int agent_gone;
extern int agent_active;
extern uint32_t process_id;

/* No thread enters translated code from now on, for that reason. The first reason given is kept. */
void agent_disable(enum wire_disabled why);

/* Whether threads are to stay in translated code for as long as possible: full mode, and counting always. */
int agent_always_translated(void);
void agent_set_always_translated(int on);

/* Wakes the collector. */
void doorbell(void);

/* Nonzero: the collector has ended. It may be a zombie that its parent has not waited for. */
int collector_gone(void);

/* State of a process or thread, as the letter that ps prints; 0: unknown. */
char task_state(uint32_t id);

/* Adds to a counter of the slot, which several threads add to. */
static inline void count_add(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* The next number of a splitmix64 generator with that state. */
uint64_t random_next(uint64_t *state);

#pragma GCC visibility pop
#endif
