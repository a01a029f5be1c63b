/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread-stacks.h - stack distances of each thread of a process by itself, as if it had a cache of its own:
 * full mode. The process' own stack (process-stack.h) is that of a cache which its threads share.
 *
 * While a process has one thread, both are the same, and nothing is measured twice. When a buffer of a second
 * thread arrives, the first one gets a copy of the process' stack.
 */
#ifndef CACHEGRAM_THREAD_STACKS_H
#define CACHEGRAM_THREAD_STACKS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/hist.h"
#include "collect/reduce/process-stack.h"
#include "profile/profile.h"
#include "sim/stackdist.h"

struct thread_stacks;

/* NULL when memory is short (err says so). */
struct thread_stacks *thread_stacks_new(uint32_t pid, struct error *err);
void thread_stacks_free(struct thread_stacks *s); /* NULL is allowed */
/* What the touches of one buffer are in its thread's own stack. All 0 before the first one. */
struct thread_buffer {
    struct hist stack; /* distances; those of bins below `bins` only */
    uint32_t bins;     /* 0: that is the process' stack */
    uint64_t cold;     /* first touches */
};
void thread_buffer_clear(struct thread_buffer *b);

/* Touches by a thread; before they are given to the process' stack, whose distances are `process`. far: lists
 * those of t->lines that are far in the thread's own stack. *is_own: far was set; 0 while that is the
 * process' stack. 0 or -ENOMEM. */
int thread_stacks_touch(struct thread_stacks *s, uint32_t tid, const struct stackdist *process,
                        const struct process_touches *t, struct thread_buffer *own, struct stackdist_far *far,
                        int *is_own);
/* The buffer of these touches is over: its distances in the process' stack, which are in bins below `bins`
 * only, and first touches. Sets own->bins. */
void thread_stacks_buffer(struct thread_stacks *s, const struct hist *stack, uint32_t bins, uint64_t cold,
                          struct thread_buffer *own);
/* Stores what is known of each thread, and of the process, if there was more than one. went_on: the process'
 * distances, if it went on after full mode; else NULL. 0, or negative with err. */
int thread_stacks_store(const struct thread_stacks *s, struct profile *p, uint64_t process,
                        const struct stackdist *went_on, struct error *err);

#endif
