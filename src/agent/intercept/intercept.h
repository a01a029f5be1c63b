/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intercept.h - the target's system calls that the agent must know of: in translated code, and while pages
 * are protected.
 *
 * For each call that is known, call-memory.c says what memory the kernel may touch for it, and calls.c what
 * else it does: change mappings, make threads or processes, execute, exit.
 */
#ifndef CACHEGRAM_AGENT_INTERCEPT_H
#define CACHEGRAM_AGENT_INTERCEPT_H

#include <stdint.h>
#include <ucontext.h>
#include "agent/memory.h"
#include "agent/translator/translator.h"

#pragma GCC visibility push(hidden)

struct thread;

/* In translated code: what is to be done about a call. */
enum syscall_way syscall_in_burst(struct thread *t, long number, const uint64_t *args, long *result);
/* It never waits for anything that a signal could end. */
int syscall_never_blocks(long number);

/* Fills *m from the call's six arguments. Negative: the call is not known, it may touch anything. */
int call_memory(long number, const uint64_t *args, struct memory *m);

/* Nonzero: a call from the code cache, while others may close pages, cannot be made there. */
int calls_must_leave_burst(struct thread *t, long number, const uint64_t *args);
int calls_makes_thread(long number, const uint64_t *args);
/* Memory whose bytes the call changes, or their protection, and which may be code; how many pieces. */
unsigned calls_code_changed(long number, const uint64_t *args, struct span code[2]);
void calls_change_code(long number, const uint64_t *args);  /* arch_code_changes for these */
void calls_stepped(struct thread *t, const ucontext_t *uc); /* the step behind a call that was let through */
/* A call that we make for the target, with all pages open: what it changes is noted. */
void calls_announce(struct thread *t, long number, const uint64_t *args);
/* On the SIGSYS of such a call; foreign: not by this architecture's own numbers. */
void calls_diverted(struct thread *t, ucontext_t *uc, int foreign);
int calls_returned(struct thread *t, ucontext_t *uc);     /* nonzero: the fault behind such a call */
void calls_interrupted(struct thread *t, ucontext_t *uc); /* makes the context the target's, if it is not */

#pragma GCC visibility pop
#endif
