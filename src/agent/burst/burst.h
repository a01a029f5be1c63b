/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst.h - entering translated code for a burst, and leaving it.
 *
 * There are three kinds: recorded bursts, whose buffer goes to the collector; counting stretches before them;
 * and probe bursts, which belong to watching and write to a small buffer of its own. All of it runs in signal
 * handlers, on the thread's own signal stack, with all signals blocked. In full mode a burst never ends: a
 * thread that leaves translated code returns to it.
 */
#ifndef CACHEGRAM_AGENT_BURST_H
#define CACHEGRAM_AGENT_BURST_H

#include <stdint.h>
#include <ucontext.h>
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

struct thread;

int burst_enter(struct thread *t, ucontext_t *uc); /* nonzero: entered */
int burst_signal_pending(const ucontext_t *uc);    /* a signal is pending that the target must handle first */
void burst_reenter(struct thread *t, ucontext_t *uc); /* after a single step */
/* Ends the burst and hands the buffer over. The context is already the target's. Records end at end_of_words;
 * of the last one, last_insns instructions were executed (UINT32_MAX: all). detail: see enum wire_end. */
void burst_end(struct thread *t, enum wire_end end, uint32_t detail, uint64_t *end_of_words,
               uint32_t last_insns);
/* The thread is native, but its burst was not ended: libc jumped out of a system call that was made in it. */
void burst_left(struct thread *t);
void burst_attached(void);                          /* the process has a new slot */
void burst_leave(struct thread *t, ucontext_t *uc); /* at the leave gate */
void burst_forked(void);
void burst_forbid(int more); /* no burst begins until it was called with -1 as often as with 1 */
int burst_forbidden(void);
/* Waits while they are forbidden, once each time and a second at most; not to be called by who forbids them.
 */
void burst_await_allowed(struct thread *t);
int burst_none_active(void); /* no thread is in a burst or steps */
/* For a thread that gets the trap flag outside a burst: the agent must handle its trap. 0: not possible,
 * bursts are forbidden. burst_step_end: the trap has arrived, or will not arrive any more. */
int burst_step_begin(void);
void burst_step_end(void);
/* A step has ended or was given up: now it is known whether it created a thread, which has the trap flag,
 * too. */
void burst_step_resolved(struct thread *t, const ucontext_t *uc);
/* Threads are no longer kept in translated code, and this one is native: plans its first burst. */
void burst_plan_first(struct thread *t);
/* Full mode: hands the buffer over and takes another. 0, or negative: none can be had. */
int burst_next_buffer(struct thread *t, uint64_t *end_of_words);
/* Full mode, when the process is about to end or to execute a program: hands over what threads that are in
 * system calls have recorded, and counts what the other threads lose. */
void burst_process_ends(void);
/* Enters a probe burst, which writes to that memory; the page after it is read-only. Its end calls
 * probe_ended. Nonzero: entered. */
int burst_enter_probe(struct thread *t, ucontext_t *uc, uint64_t *words, uint64_t *end);

/* A counting thread has stopped at the request of the clock: it continues, or its recorded burst begins. */
void burst_counting_stopped(struct thread *t, ucontext_t *uc);

/* Callbacks to the storeys above. */
struct burst_ops {
    void (*begins)(struct thread *t); /* CPU time is not the target's own from here on */
    /* It is about to enter translated code, for a counting stretch or a recorded burst. */
    void (*entered)(struct thread *t);
    void (*left)(struct thread *t);
    void (*describe)(const struct thread *t,
                     struct wire_desc *d); /* fills app_cpu_ns, thread_ns and translated_refs */
    /* Before the buffer is handed over: the number of a question to the collector that goes with it; 0: none.
     * Afterwards: waits for the answer. */
    uint32_t (*prepare_question)(struct thread *t, uint64_t burst);
    void (*await_answer)(struct thread *t, uint32_t question);
    /* A probe burst has ended. */
    void (*probe_ended)(struct thread *t, const uint64_t *end_of_words, uint32_t last_insns);
};
void burst_init(const struct burst_ops *ops);

/* Full mode, and while every reference is counted (native.c). native_account: accounts for the thread's CPU
 * time. native_begins: a handler is about to return to native code of a thread that should be in translated
 * code. native_ends: the thread is in translated code again, or ends. */
void native_account(struct thread *t);
void native_begins(struct thread *t);
void native_ends(struct thread *t);

#pragma GCC visibility pop
#endif
