/* SPDX-License-Identifier: Apache-2.0 */
/*
 * divert.h - diverting the target's system calls to the agent, and making them.
 *
 * Linux's syscall user dispatch sends SIGSYS in place of a system call that a thread makes outside of one
 * range of addresses, while a byte of memory, the selector, says so. The range is the agent's text up to
 * syscall_divertible, which is at its very end. A diverted call is then made in one of three ways: by the
 * agent, in the signal handler; by the target, at its own place, with the selector off; or by the target in
 * the agent's text (arch_call_through), with its own registers, stack and mask, so that signals can interrupt
 * it as usual.
 *
 * What the calls mean, and what memory they access, is known further up (intercept).
 */
#ifndef CACHEGRAM_AGENT_DIVERT_H
#define CACHEGRAM_AGENT_DIVERT_H

#include <stdint.h>
#include <ucontext.h>

struct thread;

#pragma GCC visibility push(hidden)

#define SET_SYSCALL_USER_DISPATCH 59 /* PR_SET_SYSCALL_USER_DISPATCH, which older headers do not define */
/* Values of the selector, as the kernel defines them. */
#define CALLS_ALLOWED 0
#define CALLS_DIVERTED 1

/* From now on the thread's selector has an effect. 0, or -1: the kernel does not support it. */
int divert_enable(struct thread *t);
/* Ends diversion for the calling thread. Resetting the selector alone would do, but while the kernel has one
 * to check, every system call takes its slow path: 90 ns more, which doubles a short call. */
void divert_disable(struct thread *t);

/* Make a call for the target: from text whose calls are diverted like the target's own; from text whose calls
 * never are. Six arguments; the kernel's result. */
long syscall_divertible(long number, const long *args);
long syscall_undiverted(long number, const long *args);

/* A diverted system call's number and arguments; the instruction pointer is after the call. */
long arch_call_arguments(const ucontext_t *uc, uint64_t *args);
void arch_call_done(ucontext_t *uc, long result); /* the call was made: sets its result */
unsigned arch_audit_value(void);                  /* AUDIT_ARCH_* of native system calls */
void arch_call_restart(ucontext_t *uc);           /* the target makes the call at its own place */
/* The target makes the call from the agent's text. then_fault: a fault follows it, at which
 * arch_call_returned is nonzero. */
void arch_call_through(struct thread *t, ucontext_t *uc, int then_fault);
int arch_call_in_progress(const struct thread *t); /* a call without a fault has begun and not ended */
/* At that fault: makes the context the target's. 0: it is another fault. */
int arch_call_returned(struct thread *t, ucontext_t *uc);
/* The same for a signal anywhere in such a call. */
int arch_call_interrupted(struct thread *t, ucontext_t *uc);

#pragma GCC visibility pop
#endif
