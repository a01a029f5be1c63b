/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - counts references per nanosecond of a thread's CPU time, without hardware counters.
 *
 * Before a recorded burst, the same code runs for a while in a translation that only counts; the essay in
 * count.c explains how. The clock decides where the parts of such a stretch end and returns a verdict; the
 * caller acts on it.
 */
#ifndef CACHEGRAM_AGENT_CLOCK_H
#define CACHEGRAM_AGENT_CLOCK_H

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>
#include "agent/thread.h"

#pragma GCC visibility push(hidden)

void count_init(void);
/* Whether the thread is to count, before it enters translated code; sets t->clock.endless. */
int count_wanted(struct thread *t, const ucontext_t *uc);
void count_begin(struct thread *t);
/* Adds what the counter has counted since arch_count_insert. */
void count_take(struct thread *t, uint64_t counted);
/* Elements of repeated string instructions so far that lie in the same line as the previous element. */
int64_t count_string_hits(const struct thread *t);
int count_is_alarm(const siginfo_t *info);
void count_alarm(struct thread *t, const ucontext_t *uc); /* at the stretch's timer */
/* Before something that no alarm may interrupt, a system call that may wait or a single step: the thread
 * stops after it. */
void count_pause(struct thread *t);
/* The thread has stopped where it was requested to; what is to be done. must_leave: a stretch without an end
 * ends here. */
enum count_verdict {
    COUNT_GO_ON,  /* the stretch continues */
    COUNT_SIGNAL, /* a signal is pending that the target must handle first */
    COUNT_RECORD, /* the recorded burst begins here */
    COUNT_OVER, /* counting ends, and no burst follows: a stretch without an end is over, for now or for good
                 */
};
enum count_verdict count_stop(struct thread *t, ucontext_t *uc, int must_leave);
/* Every reference is counted: there was no buffer for the burst of that verdict. */
void count_not_recorded(struct thread *t, ucontext_t *uc);
void count_recorded(struct thread *t);       /* there was one */
int count_draws_long_tail(struct thread *t); /* whether that burst should have a long tail, at random */
void count_marked(struct thread *t);         /* the counter has reached its mark */
void count_call_begins(struct thread *t);    /* a system call of the target begins in counting code */
void count_call_ends(struct thread *t);      /* ... and has returned */
void count_end(struct thread *t);    /* the stretch ends, for any reason; the context is the target's */
void count_forget(struct thread *t); /* discards the count: no burst follows that it could be stored with */
void count_thread_gone(struct thread *t);
/*
 * Around the agent's own C code, whose time is not the target's. count_work_ends gets the result of
 * count_work_begins. Code that is executed for the first time comes here for each block, so a stretch uses
 * the processor's clock: system calls that read the CPU time would take as long as the blocks.
 */
uint64_t count_work_begins(const struct thread *t);
void count_work_ends(struct thread *t, uint64_t began);

/* marks.c */
uint64_t count_ns_of(const struct counting *c, uint64_t ticks); /* converts the processor's clock */
/* Page faults of the calling thread without I/O; each takes some microseconds of its CPU time. */
uint64_t count_page_faults(void);
void count_near_times(struct thread *t); /* sets t->clock.near_refs and near_ns */
/* CPU time of the stretch in which the kernel provided pages, if no trigger could fire in it. */
uint64_t count_paging_ns(const struct thread *t);

#pragma GCC visibility pop
#endif
