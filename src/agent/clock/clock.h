/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - how many references a thread makes per nanosecond of its CPU time, without hardware counters.
 *
 * Before a recorded burst, the same code runs for a while in a translation that only counts (count.c opens
 * with how). The clock decides where the stretch's parts end and says what is to be done; whoever asked does
 * it.
 */
#ifndef CACHEGRAM_AGENT_CLOCK_H
#define CACHEGRAM_AGENT_CLOCK_H

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>
#include "agent/thread.h"

#pragma GCC visibility push(hidden)

void count_init(void);
int count_always(void); /* the thread counts whenever it is not in a recorded burst */
int count_wanted(struct thread *t, const ucontext_t *uc);
void count_begin(struct thread *t);
void count_take(struct thread *t, uint64_t counted); /* what the counter says since arch_count_in */
/* So far: elements of repeated string instructions that lie in the line of the element before. */
int64_t count_string_hits(const struct thread *t);
int count_is_alarm(const siginfo_t *info);
void count_alarm(struct thread *t, const ucontext_t *uc); /* the stretch's timer has fired */
/* Before what no alarm must come in, a system call that may wait or a step: the thread stops after it. */
void count_pause(struct thread *t);
/* The thread has stopped at the page that was closed; what is to be done. */
enum count_verdict {
    COUNT_GO_ON,  /* nothing: the stretch goes on */
    COUNT_SIGNAL, /* a signal waits that the target must see first */
    COUNT_RECORD, /* the recorded burst begins here */
};
enum count_verdict count_stop(struct thread *t, ucontext_t *uc);
/* Counting always: there was no buffer for the burst of that verdict. */
void count_not_recorded(struct thread *t, ucontext_t *uc);
void count_marked(struct thread *t);      /* the counter is at its mark */
void count_call_begins(struct thread *t); /* a system call of the target's begins in counting code */
void count_call_ends(struct thread *t);   /* ... and is over */
void count_end(struct thread *t);         /* for whatever reason; the context is the target's */
void count_forget(struct thread *t);      /* no burst follows that could take the count along */
void count_thread_gone(struct thread *t);
/* near.c: time of the processor's clock in nanoseconds; how many pages the kernel has made for the
 * thread, or found, each of which is some microseconds of its CPU time; t->clock.near_refs and near_ns, from
 * the marks. */
uint64_t count_ns_of(const struct counting *c, uint64_t ticks);
uint64_t count_page_faults(void);
void count_near_times(struct thread *t);
uint64_t count_paging_ns(const struct thread *t);
/* Around C code that only we need. */
uint64_t count_work_begins(const struct thread *t);
void count_work_ends(struct thread *t, uint64_t away);

#pragma GCC visibility pop
#endif
