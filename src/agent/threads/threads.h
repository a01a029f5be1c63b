/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h - the registry of followed threads, and their triggers.
 *
 * A followed thread has a struct thread, found by the thread's kernel id, and a signal stack. Its trigger is
 * a perf event that the collector opens, or a POSIX timer on its CPU time; either sends SIGTRAP. Bursts are
 * planned at a random point of each stratum of the CPU time of each phase (phases.h). What happens at a
 * trigger is decided further up.
 */
#ifndef CACHEGRAM_AGENT_THREADS_H
#define CACHEGRAM_AGENT_THREADS_H

#include <stdint.h>
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

struct thread;

struct thread *thread_self(void);                         /* the calling thread; NULL: not followed */
struct thread *thread_of_stack(const void *signal_stack); /* the thread with that signal stack, or NULL */
struct thread *thread_new(void);
/* Ends the burst of the calling thread, if it is in one. It may enter the next burst at once. */
void thread_leave_burst(const struct thread *t);
void thread_forget(struct thread *t); /* the thread has ended: its structure is free for another */
void thread_arm(struct thread *t);
/* Whether this trigger, from the collector's event (event nonzero) or the thread's timer, is the planned one.
 * An event fires repeatedly. If it ticks, the tick next to the planned moment counts. Else it fires until it
 * is set anew, which a busy collector does late; triggers until then would depend on how long the last burst
 * took to process, so they are ignored. A trigger is also ignored if the budget has postponed the planned
 * moment since. An event at `pc` in native code is also reported as a sample of code, by which
 * phases are found. */
int thread_is_due(struct thread *t, int event, uint64_t pc);
/* No burst can begin at the interrupted place: plans the next one as if this one had taken place. */
void thread_skip_planned(struct thread *t);
#define THREAD_TRIGGERED 1
/* Sends the thread a trigger, with si_errno THREAD_TRIGGERED. It arrives once SIGTRAP is not blocked. */
void thread_trigger(struct thread *t);
/* thread_exec_begins: right before the thread executes another program; may have to wait for the collector.
 * thread_exec_failed: if that fails. NULL: not followed. */
void thread_exec_begins(struct thread *t);
void thread_exec_failed(struct thread *t);
uint64_t thread_cpu_ns(uint32_t tid);              /* UINT64_MAX: no such thread */
void threads_each(void (*visit)(struct thread *)); /* every followed thread; some may be about to end */
/* Iterates over the followed threads: *t is the next one from `at` on (at first 0). Returns where to
 * continue; 0: there was none. */
uint32_t threads_next(uint32_t at, struct thread **t);
int threads_registry_init(void);       /* 0, or -1: no memory */
int thread_register(struct thread *t); /* under its kernel id. 0, or -1: no room */
void thread_free(struct thread *t);    /* one that was never registered or has ended */
void threads_forget_all(void);         /* in a forked child */
void trigger_create_timer(struct thread *t);
void trigger_claim(struct thread *t);   /* claims an entry in the collector's table of triggers */
void trigger_release(struct thread *t); /* gives it up */
/* Waits until the collector has closed all events, or has ended; 0: it took too long. */
int triggers_await_closed(void);
uint32_t threads_made(void); /* structures of threads made so far: the largest number of threads at a time */

#pragma GCC visibility pop
#endif
