/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - signal frames: how a signal arrives, and how the target's handler is started.
 *
 * The kernel starts signal_entry on the thread's own signal stack, with all signals blocked. signal_entry
 * asks signal_dispatcher what to do. If the signal is the target's, its frame is moved to where the target
 * would have had it, the mask becomes what it would have been, and the target's handler is jumped to as if
 * the kernel had called it.
 */
#ifndef CACHEGRAM_AGENT_SIGNALS_FRAME_H
#define CACHEGRAM_AGENT_SIGNALS_FRAME_H

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#pragma GCC visibility push(hidden)

/* How a handler of the target is to be started. signal_entry knows the offsets. */
struct delivery {
    long sig;
    siginfo_t *info;
    ucontext_t *uc;
    uint64_t sp;             /* stack pointer at its first instruction */
    uint64_t mask;           /* signal mask while it runs */
    const stack_t *altstack; /* passed to sigaltstack after leaving the current one; NULL: no change */
};
_Static_assert(sizeof(struct delivery) == 48, "signal_entry makes room for it");

extern const char signal_entry[], signal_restorer[], signal_entry_unmasked[], signal_entry_jump[];

/* Set once, before the first handler is installed. Returns the target's handler to continue in; 0: return
 * from the signal. */
extern uint64_t (*signal_dispatcher)(int sig, siginfo_t *info, ucontext_t *uc, struct delivery *d);

/* Moves the signal frame that *uc is part of to just below sp, and updates *uc and *info. Returns the stack
 * pointer that a handler has at its first instruction in the new frame; 0: the memory cannot be written. */
uint64_t arch_move_frame(ucontext_t **uc, siginfo_t **info, uint64_t sp);

/* The next instruction is a system call that may block SIGTRAP, or that creates a process without the agent's
 * handler of it, or a thread. If it is made with the trap flag set, the kernel kills the process, or that
 * one, for the trap; the thread inherits the flag, and if its trap is not accounted for (burst_step_begin),
 * an exec may have SIGTRAP ignored by then. */
int arch_step_would_kill(const ucontext_t *uc);
/* The flags of a call that creates a thread or process, of which `argument` is the first argument. 0: another
 * call. */
uint64_t arch_clone_flags(long number, uint64_t argument);

/* rt_sigreturn is about to return to the frame at sp: unblocks SIGTRAP in it (*trap_blocked: it was blocked),
 * and sets the trap flag (ARCH_RETURN_STEPS). ARCH_RETURN_TRIGGERS: the flag would kill there, and a pending
 * SIGTRAP that is blocked until then has to do it. ARCH_RETURN_UNKNOWN: the frame cannot be written. */
enum arch_return { ARCH_RETURN_UNKNOWN, ARCH_RETURN_STEPS, ARCH_RETURN_TRIGGERS };
enum arch_return arch_step_at_sigreturn(uint64_t sp, int *trap_blocked);
/* The mask of the frame that the interrupted rt_sigreturn is about to return to. 0, or -1: it cannot be read.
 */
int arch_sigreturn_mask(const ucontext_t *uc, uint64_t *mask);

/* If the signal has interrupted the last instructions of signal_entry, where another handler of the target is
 * about to start: makes the context that handler's first instruction, as it is natively. A handler may change
 * the registers that it finds. */
void arch_finish_entry(ucontext_t *uc);

/* The signal may have interrupted a system call, which returns EINTR because of it. */
int arch_after_eintr(const ucontext_t *uc);
/* If the context is right behind a call, and that call waits with a mask of its own (sigsuspend, ppoll, ...):
 * nonzero, and that mask. To be called once for each signal, right before its handler is started. */
int arch_waiting_mask(ucontext_t *uc, uint64_t *mask);
/* If a timer of the agent's has interrupted the call: makes the call again, if it is one that such timers
 * interrupt. number: of the call; -1: it is read from the code before it. */
void arch_restart_call(ucontext_t *uc, long number);

#pragma GCC visibility pop
#endif
