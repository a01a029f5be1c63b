/* SPDX-License-Identifier: Apache-2.0 */
/*
 * divert.h - system calls of the target's that come to the agent first, and how they are made then.
 *
 * Linux' syscall user dispatch sends SIGSYS in place of a system call that a thread makes outside of one
 * range of addresses, while a byte of memory, the selector, says so. The range is the agent's text up to
 * syscall_divertible, which is at its very end. A diverted call is made in one of three ways: by the agent,
 * in the handler; by the target, at its own place, with the selector off; or by the target in the agent's
 * text (arch_call_through), with its own registers, stack and mask, so that it can be interrupted as ever.
 *
 * What the calls mean, and what memory they touch, is known further up (intercept).
 */
#ifndef CACHEGRAM_AGENT_DIVERT_H
#define CACHEGRAM_AGENT_DIVERT_H

#include <stdint.h>
#include <ucontext.h>

struct thread;

#pragma GCC visibility push(hidden)

#define SET_SYSCALL_USER_DISPATCH 59 /* PR_, which older headers do not name */
/* Values of thread.selector, as the kernel has them. */
#define CALLS_ALLOWED 0
#define CALLS_DIVERTED 1

/* From now on the thread's selector counts. 0, or -1: the kernel cannot. */
int divert_enable(struct thread *t);
/* No call of the thread, which is the caller, is diverted until then. The selector alone would do, but while
 * the kernel has one to look at, every system call takes its slow way: 90 ns more, as much again as a short
 * one. */
void divert_disable(struct thread *t);

/* A call made for the target, from text that calls are diverted from like the target's own; and from text
 * where they never are. The arguments are six; returns what the kernel returned. */
long syscall_divertible(long number, const long *args);
long syscall_undiverted(long number, const long *args);

/* A diverted system call: its number and arguments; the instruction pointer is after it. */
long arch_call_arguments(const ucontext_t *uc, uint64_t *args);
void arch_call_done(ucontext_t *uc, long result); /* it was made */
unsigned arch_audit_value(void);                  /* AUDIT_ARCH_ of its numbers */
void arch_call_restart(ucontext_t *uc);           /* the target makes it, at its own place */
/* It makes it from the agent's text; then_fault: which ends in a fault. */
void arch_call_through(struct thread *t, ucontext_t *uc, int then_fault);
int arch_call_in_progress(const struct thread *t); /* one without a fault has begun, and is not over */
/* At that fault: makes the context the target's; 0: it is not that one. */
int arch_call_returned(struct thread *t, ucontext_t *uc);
int arch_call_interrupted(struct thread *t, ucontext_t *uc); /* likewise, anywhere in such a call */

#pragma GCC visibility pop
#endif
