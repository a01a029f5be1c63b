/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intercept.h - system calls of the target that concern the agent: in translated code, and while pages are
 * protected.
 *
 * call-memory.c knows what memory the kernel may access in a call; calls.c knows its other effects: changing
 * mappings, creating threads or processes, executing, exiting.
 */
#ifndef CACHEGRAM_AGENT_INTERCEPT_H
#define CACHEGRAM_AGENT_INTERCEPT_H

#include <stdint.h>
#include <ucontext.h>
#include "agent/memory.h"
#include "agent/translator/translator.h"

#pragma GCC visibility push(hidden)

struct thread;

/* What the translator must do about a call in translated code. */
enum syscall_way syscall_in_burst(struct thread *t, long number, const uint64_t *args, long *result);
/* The call never waits for anything that a signal could interrupt. */
int syscall_never_blocks(long number);

/* Fills *m from the call's six arguments. Negative: the call is not known, it may access any memory. */
int call_memory(long number, const uint64_t *args, struct memory *m);

/* Nonzero: while other threads may protect pages, this call cannot be made from the code cache. */
int calls_must_leave_burst(struct thread *t, long number, const uint64_t *args);
int calls_makes_thread(long number, const uint64_t *args);
/* Memory that may be code and whose bytes or protection the call changes; returns the number of pieces. */
unsigned calls_code_changed(long number, const uint64_t *args, struct span code[2]);
void calls_change_code(long number, const uint64_t *args); /* calls arch_code_changes for these pieces */
/* The single step after a call that was made undiverted. */
void calls_stepped(struct thread *t, const ucontext_t *uc);
/* Before the agent makes a call for the target, with all pages unprotected: notes what the call changes. */
void calls_announce(struct thread *t, long number, const uint64_t *args);
/* At the SIGSYS of a diverted call. foreign: its number is not one of this architecture. */
void calls_diverted(struct thread *t, ucontext_t *uc, int foreign);
int calls_returned(struct thread *t, ucontext_t *uc); /* nonzero: this was the fault after a diverted call */
/* Makes the context the target's, if a diverted call was interrupted. */
void calls_interrupted(struct thread *t, ucontext_t *uc);

#pragma GCC visibility pop
#endif
