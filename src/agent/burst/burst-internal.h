/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst-internal.h - the interfaces between the files of bursts.
 *
 * From the lowest to the highest; each uses those before it:
 *
 *   active.c   how many threads are in bursts, and whether any may be
 *   native.c   native execution that should have been translated
 *   buffers.c  buffers: taken, handed over
 *   burst.c    entering, leaving, single steps
 */
#ifndef CACHEGRAM_AGENT_BURST_INTERNAL_H
#define CACHEGRAM_AGENT_BURST_INTERNAL_H

#include "agent/burst/burst.h"
#include "agent/thread.h"

#pragma GCC visibility push(hidden)

/* active.c; see burst.h for the burst_* functions. */
int may_enter(void);      /* nonzero: the thread may enter the code cache, and is counted as active */
void has_left(void);      /* it is not active any more */
void step_expected(void); /* like burst_step_begin, by an active thread: bursts are not forbidden */

/* buffers.c. The thread's buffer is t->translation.buffer; negative: it has none. */
extern const struct burst_ops *burst_ops;
/* 0: there is none, which is counted. wants_long_tail: of the burst, if the buffer for that is free. */
int take_buffer(struct thread *t, int wants_long_tail);
void start_buffer(struct thread *t, int index); /* records begin there from now on */
/* A recorded burst begins in the thread's buffer; the context is the target's own. */
void copy_stack(struct thread *t, const ucontext_t *uc);
/* Hands the buffer over; the thread has none afterwards. Arguments as of burst_end. */
void publish_buffer(struct thread *t, enum wire_end end, uint32_t detail, const uint64_t *end_of_words,
                    uint32_t last_insns, uint32_t question);
void discard_buffer(struct thread *t); /* returns it unread */
/* Takes a buffer again, if it was handed over before an exec that has failed. Nonzero: the thread has what it
 * needs. */
int regain_buffer(struct thread *t);

#pragma GCC visibility pop
#endif
