/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst.h - a thread's way into translated code for a burst, and back.
 *
 * There are three kinds: recorded bursts, whose buffer goes to the collector; counting stretches before them;
 * and probe bursts of watching's own, into a small buffer. All of it runs in signal handlers, on the thread's
 * own signal stack, with all signals blocked. In full mode a burst never ends: whoever leaves translated code
 * is put back.
 */
#ifndef CACHEGRAM_AGENT_BURST_H
#define CACHEGRAM_AGENT_BURST_H

#include <stdint.h>
#include <ucontext.h>
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

struct thread;

int burst_enter(struct thread *t, ucontext_t *uc);    /* nonzero: entered */
int burst_signal_pending(const ucontext_t *uc);       /* a signal waits that the target must see first */
void burst_reenter(struct thread *t, ucontext_t *uc); /* after a step */
/* The context is already the target's own; ends the burst and hands the buffer over. */
void burst_end(struct thread *t, enum wire_end end, uint32_t detail, uint64_t *end_of_words,
               uint32_t last_insns);
/* The thread runs natively, but had no end of its burst: libc jumped out of a call that it made in it. */
void burst_left(struct thread *t);
void burst_attached(void);                          /* the process has a slot of its own, a new one */
void burst_leave(struct thread *t, ucontext_t *uc); /* at the leave gate */
/* The context is the target's: runs one instruction natively, then burst_reenter follows. */
void burst_step(struct thread *t, ucontext_t *uc);
void burst_forked(void);
void burst_forbid(int more); /* none begins until it was called with -1 as often as with 1 */
int burst_forbidden(void);
int burst_none_active(void); /* no thread is in one or steps; none will if that is forbidden */
/* For who has the trap flag outside of a burst. 0: not now, bursts are forbidden. */
int burst_step_begin(void);
void burst_step_end(void); /* it came, or will not come any more */
/* A step is over or given up: whether a thread was made that steps, too, is known. */
void burst_step_resolved(struct thread *t, const ucontext_t *uc);
/* Full mode: hand over and take another buffer. 0, or negative when none can be had. */
int burst_next_buffer(struct thread *t, uint64_t *end_of_words);
/* Full mode: hands over what threads have recorded that wait in system calls. They take another buffer when
 * they come back. */
void burst_hand_over_waiting(void);
/* Likewise, as the process is about to end, or to be another program: also reports what others lose. */
void burst_process_ends(void);
void burst_discard_buffer(struct thread *t); /* give the buffer back unread */
/* A burst of watch.c's own into that memory, behind which lies a page that cannot be written; its end calls
 * watch_mini_end. Nonzero: entered. */
int burst_enter_probe(struct thread *t, ucontext_t *uc, uint64_t *words, uint64_t *end);
int burst_buffers_scarce(void);

/* A thread that counts has stopped where the clock asked it to: it goes on, or its recorded burst begins. */
void burst_counting_stopped(struct thread *t, ucontext_t *uc);

/* What bursts need of the parts above them. */
struct burst_ops {
    void (*begins)(struct thread *t); /* from here on, CPU time is not the target's own */
    void (*entered)(
        struct thread *t); /* it is about to go into translated code, for a burst of the collector's */
    void (*left)(struct thread *t);                                /* it is native again */
    void (*describe)(const struct thread *t, struct wire_desc *d); /* fills own_ns and inside_refs */
    /* Before the buffer is handed over: the number of a question to hand over with it, 0: none; and after:
     * waits for the answer. */
    uint32_t (*asks)(struct thread *t, uint64_t burst);
    void (*ask)(struct thread *t, uint32_t asks);
    /* One that burst_enter_probe began is over. */
    void (*probe_ended)(struct thread *t, const uint64_t *end_of_words, uint32_t last_insns);
};
void burst_init(const struct burst_ops *ops);

/* Full mode, counting always (native.c): of threads that are to stay in the code cache: it has handed a
 * buffer over; a handler returns to its code; it is in the code cache again, or ends. */
void native_account(struct thread *t);
void native_begins(struct thread *t);
void native_ends(struct thread *t);

#pragma GCC visibility pop
#endif
