/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main-internal.h - the interfaces between the files of the signal dispatcher.
 *
 *   deliver.c       delivers the target's signals
 *   burst-events.c  triggers, steps, and faults in translated code
 *   signals.c       the dispatcher, which uses both
 */
#ifndef CACHEGRAM_AGENT_MAIN_INTERNAL_H
#define CACHEGRAM_AGENT_MAIN_INTERNAL_H

#include <string.h>
#include "agent/main/main.h"
#include "agent/signals/signals.h"
#include "agent/sys/context.h"
#include "agent/thread.h"

#pragma GCC visibility push(hidden)

static inline uint64_t mask_of(const ucontext_t *uc)
{
    uint64_t mask;
    memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    return mask;
}

static inline void set_mask_of(ucontext_t *uc, uint64_t mask)
{
    memcpy(&uc->uc_sigmask, &mask, sizeof mask);
}

/* The context is in a handler on the thread's signal stack: the agent's, or one that the agent does not know,
 * installed by a system call instruction or by libc itself (setuid). */
static inline int in_handler(const struct thread *t, const ucontext_t *uc)
{
    return arch_sp(uc) - (uint64_t)t->signal_stack <= SIGNAL_STACK_BYTES;
}

/* deliver.c. The result and d as of signal_dispatcher (signals/frame.h). t NULL: not followed. */
uint64_t deliver(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc, struct delivery *d);

/* burst-events.c */
/* Blocks SIGTRAP again in the target's mask, if a step has unblocked it. */
void restore_trap_mask(struct thread *t, ucontext_t *uc);
/* Gives up a step that cannot complete; the thread is native from here on. */
void abandon_step(struct thread *t, ucontext_t *uc, enum wire_end end, uint32_t detail);
/* Nonzero if the thread was to enter a burst after a step (enter_after_next). That is no longer planned when
 * this returns, and the trap flag is off. */
int clear_pending_entry(struct thread *t, ucontext_t *uc);
/* Before the handler of a signal: gives up a step that would complete after it, and the burst that was to
 * begin then. */
void abandon_step_for_handler(struct thread *t, ucontext_t *uc);
/* asked: by thread_trigger, not by the event or timer. */
void trigger(struct thread *t, ucontext_t *uc, int asked);
/* Returns to translated code, if the thread always stays there. */
void return_to_translated(struct thread *t, ucontext_t *uc);
/* The previous instruction was executed with the trap flag set. */
void stepped(struct thread *t, ucontext_t *uc);
/* A fault at an instruction in the code cache. Nonzero: it is the target's own. */
int burst_fault(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc);

#pragma GCC visibility pop
#endif
