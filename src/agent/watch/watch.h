/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - observes lines until their next touch after a burst, by protecting their pages.
 *
 * A fault of a protected page is the awaited touch, or that of another line in the page. In that case the
 * page is unprotected for a probe burst, and protected again after it. With several threads, the system
 * calls of all of them are diverted, and each thread notes before a call what memory the kernel may access
 * in it. The essay at the top of watch.c explains how these parts fit together.
 */
#ifndef CACHEGRAM_AGENT_WATCH_H
#define CACHEGRAM_AGENT_WATCH_H

#include <stdint.h>
#include <ucontext.h>
#include "agent/sys/session.h"
#include "agent/thread.h"

#pragma GCC visibility push(hidden)

static inline struct wire_watching *watching(void)
{
    return &proc->watching;
}

int watch_used(void);            /* this process is watched */
int watch_several_threads(void); /* there are several threads, or one is being created */
uint64_t watch_app_cpu_ns(void); /* the process's CPU time without what profiling took */
/* The same as if the thread's burst that ends now had not happened, from watch_burst_begins on. */
uint64_t watch_burst_app_cpu_ns(const struct thread *t);
/* Likewise of the thread alone, at the beginning of its burst. */
uint64_t watch_burst_thread_ns(const struct thread *t);
/* References that the process made in counting code and probe bursts, whose time is not in
 * watch_app_cpu_ns. */
uint64_t watch_translated_refs(void);
/* From here to watch_await_answer, CPU time is not the program's own. */
void watch_burst_begins(struct thread *t);
void watch_account_burst(struct thread *t); /* subtracts the burst's time so far from watch_app_cpu_ns */
/* Another thread's call may still end in a fault for the agent. */
int watch_calls_in_progress(const struct thread *self);
int watch_fault_just_ended(const struct thread *t); /* so a signal that arrives now was delayed by it */
int watch_any_protected(void);                      /* a page is protected */
/* It enters the code cache for a counting stretch or a recorded burst. */
void watch_burst_entered(struct thread *t);
void watch_burst_left(struct thread *t); /* it is native again */
/* Before a burst's buffer is handed over: the number of the question that goes with it; 0: there is none. */
uint32_t watch_prepare_question(struct thread *t, uint64_t number);
/* Afterwards: waits for the answer, protects pages. */
void watch_await_answer(struct thread *t, uint32_t question);
void watch_pause(struct thread *t); /* unprotects all pages, until the next answer */
/* Protects pages again; mask: the target's. 0: not possible, and all lines were censored. */
int watch_reprotect(struct thread *t, uint64_t mask);
void watch_censor_all(struct thread *t);                       /* unprotects all pages, censors all lines */
void watch_disable(struct thread *t, enum wire_unwatched why); /* permanently */
/* A signal frame is about to be written there: unprotects these pages, and never protects them again. */
void watch_never_protect(uint64_t low, uint64_t high);
/* The target changes a mapping there; gone: its contents are gone. */
void watch_unmapped(uint64_t address, uint64_t bytes, int gone);
/* Outside of handlers, around anything that changes pages or lines: blocks all signals but those of faults.
 * NULL: the caller is not followed, nothing is done. Not nested. */
void watch_block_signals(struct thread *t);
void watch_unblock_signals(struct thread *t);
void watch_block_signals_native(struct thread *t); /* the same, and leaves a burst first; not NULL */
/* Around a system call that the agent makes for the target with the target's pointers. */
void watch_hold(struct thread *t);
void watch_release(struct thread *t);
/* Nonzero: the thread faulted while it held the lock of watching. The lock has been released and all pages
 * are unprotected. The fault was in the agent's own memory, which the target has unmapped or protected. */
int watch_fault_in_lock(void);
/* A fault at that address; uc NULL: in the agent's code. Nonzero: the page was protected, and is accessible
 * now. */
int watch_fault(struct thread *t, uint64_t address, int write, ucontext_t *uc);
void watch_probe_ended(struct thread *t, const uint64_t *end_of_words, uint32_t last_insns);
void watch_charge(struct thread *t, uint64_t ns); /* charges CPU time of the thread to watching */
void watch_forked(void);
/* Threads. A handler has interrupted the thread in the target's code, with that mask: it is outside of any
 * call. */
void watch_mark_quiescent(struct thread *t, uint64_t mask);
void watch_diverted(struct thread *t); /* a diverted call of the thread has arrived, so its mask is known */
/* A call of the thread begins that may access that memory (NULL: any); nonzero: pages were unprotected for
 * it. */
int watch_call_begins(struct thread *t, enum watch_call how, const struct memory *m);
/* The call, made in the handler or from the code cache, changes the mappings there. */
void watch_change_begins(struct thread *t, const struct memory *m);
void watch_call_ends(struct thread *t);
void watch_undiverted_begins(struct thread *t); /* it makes a call itself, with all pages unprotected */
void watch_undiverted_ends(struct thread *t);
/* `self` (NULL: not followed) is about to create a thread, whose structure is t; and has done so, or
 * failed. */
void watch_thread_creating(struct thread *self, struct thread *t, uint64_t stack_bytes);
void watch_thread_created(struct thread *self, struct thread *t, int failed);
void watch_thread_attached(struct thread *t);     /* called by the new thread */
void watch_thread_not_attached(struct thread *t); /* instead of that: it will not be profiled */
/* Called by an ending thread; nonzero: watch_reap will forget it after its end. */
int watch_thread_detached(struct thread *t);
void watch_thread_exiting(struct thread *t); /* it is about to call exit (the system call) */
void watch_reap(void);                       /* forgets threads that have ended */

/* touched.c: evaluates the records of a probe burst. */
struct touched {
    uint64_t found;        /* which of the lines were touched: bit i is lines[i] */
    uint64_t refs, before; /* references in the records; and before the first touch of one of the lines */
    uint64_t pc;           /* of the instruction that made that touch */
};
/* lines: addresses; n <= 64. */
struct touched records_touched(const uint64_t *words, const uint64_t *end, uint32_t last_insns,
                               const uint64_t *lines, unsigned n);

#pragma GCC visibility pop
#endif
