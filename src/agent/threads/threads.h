/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h - the threads that are followed, and when each is interrupted.
 *
 * A followed thread has a struct thread, which is found by the kernel's id of the thread, and a signal stack.
 * Its trigger is a perf event that the collector opens, or a POSIX timer on its CPU time; either sends
 * SIGTRAP. Bursts are planned at a random point of each stratum of CPU time. What comes at a trigger is not
 * known here.
 */
#ifndef CACHEGRAM_AGENT_THREADS_H
#define CACHEGRAM_AGENT_THREADS_H

#include <stdint.h>
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

struct thread;

struct thread *thread_self(void);                         /* NULL: not followed */
struct thread *thread_of_stack(const void *signal_stack); /* whose that is, or NULL */
struct thread *thread_new(void);
void thread_leave_burst(const struct thread *t); /* called by itself; it can begin the next one at once */
void thread_forget(struct thread *t);            /* it is no more: its structure can be another's */
void thread_arm(struct thread *t);
/* Whether what the collector's event (event nonzero), or the thread's timer, interrupts is the moment that
 * was planned. The event comes again and again: by ticks, of which the one next to that moment is; or until
 * it is set anew, which a busy collector does late, and what it interrupts meanwhile would follow from how
 * long the last burst took to look at. Neither is, if the budget has put the moment off since. */
int thread_is_due(struct thread *t, int event);
/* What was interrupted is not what bursts are for: the next one as if its time had been met. */
void thread_skip_planned(struct thread *t);
#define THREAD_TRIGGERED 1             /* si_errno of: */
void thread_trigger(struct thread *t); /* as if its timer fired, once SIGTRAP is not blocked */
/* Right before it executes another program, for which it may have to wait; and should that have failed. NULL:
 * not followed. */
void thread_exec_begins(struct thread *t);
void thread_exec_failed(struct thread *t);
uint64_t thread_cpu_ns(uint32_t tid);              /* UINT64_MAX: it is gone */
void threads_each(void (*visit)(struct thread *)); /* all that are followed; some are about to end */
/* The followed threads, one after the other: *t is the next from `at` on, at first 0; returns where to go on,
 * 0: there are no more. */
uint32_t threads_next(uint32_t at, struct thread **t);
int threads_registry_init(void);       /* 0, or -1: no memory */
int thread_register(struct thread *t); /* under its id. 0, or -1: there is no room */
void thread_free(struct thread *t);    /* one that was never registered, or is no more */
void threads_forget_all(void);         /* in a forked child */
/* Its timer and its place with the collector; and giving that back. */
void trigger_create_timer(struct thread *t);
void trigger_claim(struct thread *t);
void trigger_release(struct thread *t);
int triggers_await_closed(
    void);                   /* the collector says so, or it is gone and its events with it; waits for that */
uint32_t threads_made(void); /* structures of threads: as many as there ever were at a time */

#pragma GCC visibility pop
#endif
