/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - what the target believes its signals' dispositions, masks and alternate stacks to be.
 *
 * The kernel has others: SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and SIGSYS always come to the agent, and so
 * do those for which the target has a handler; some are never really blocked; the alternate stack is the
 * agent's. The functions called *_call take a system call's arguments and return what the kernel would,
 * effects included.
 */
#ifndef CACHEGRAM_AGENT_SIGNALS_H
#define CACHEGRAM_AGENT_SIGNALS_H

#include <stdint.h>
#include <string.h>
#include "agent/signals/bits.h"
#include "agent/signals/frame.h"
#include "agent/sys/sys.h"

#pragma GCC visibility push(hidden)

struct thread;

#define SA_RESTORER_FLAG 0x04000000ul
#define LAST_SIGNAL 64

struct kernel_sigaction {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

/* What the target wants done on each signal. */
extern struct kernel_sigaction signals_target[LAST_SIGNAL + 1];

/* rt_sigaction, as the kernel has it. */
static inline long kernel_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    return sys4(SYS_rt_sigaction, sig, new, old, 8);
}

/* rt_sigaction on what is kept for the target. 0, or a negative error. */
long signals_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old);
int altstack_autodisarms(const stack_t *s); /* it is enabled, and every handler on it disables it */

static inline int is_fault(int sig)
{
    return (FAULT_SIGNALS & SIGNAL_BIT(sig)) != 0;
}

int signals_init(void);
/* From now on the target's are the kernel's, and t's alternate stack (NULL: not followed). quiesced 0:
 * triggers may still come, and a SIGTRAP that would end the program is ignored. */
void signals_uninstall(struct thread *t, int quiesced);
/* Of the signals that are always ours in the kernel, those that the target ignores; and have the kernel
 * ignore them, too, as a program that is executed is to inherit it, or not any more. */
uint64_t signals_target_ignores(void);
void signals_set_ignored(uint64_t which, int really);
int signals_uninstalled(void);
void signals_restore_handlers(void);  /* only that, of a vfork child, without taking note */
int signals_handlers_installed(void); /* nonzero: our fault handlers are still in place */
/* libc's own two, by which it cancels threads and has them change their user. Their handlers are installed by
 * system calls that nobody interposes; but they must not see a context inside of a call of ours. */
void signals_intercept_libc(void);
void signals_hold(struct thread *t, int sig, const siginfo_t *info); /* until signals_resend_held */
int signals_any_held(void);                                          /* some thread's */
void signals_resend_held(struct thread *t); /* SIGSEGV and SIGBUS are blocked, or they would come at once */
/*
 * Some signals are never really blocked. Which of them the target believes are, where `mask` is what is
 * blocked; of a mask that it asks for, the part that is really to be set; the rest is noted once that is done
 * (before: what was blocked).
 */
uint64_t signals_hidden(const struct thread *t, uint64_t mask);
uint64_t signals_effective(int how, uint64_t mask);
void signals_note_mask(struct thread *t, int how, uint64_t mask, uint64_t before);
uint64_t signals_changed_mask(int how, uint64_t before, uint64_t mask); /* what sigprocmask makes of it */
/*
 * System calls of the target's on what is kept for it, with the kernel's results and effects; args are the
 * call's. rt_sigaction; rt_sigprocmask of a followed thread, natively or in translated code; the same where
 * the mask is kept at *mask (hides: some signals are not to be blocked in truth).
 */
long signals_action_call(const uint64_t *args);
long signals_mask_call(struct thread *t, const uint64_t *args);
long signals_mask_in(struct thread *t, uint64_t *mask, int hides, const uint64_t *args);
/* sigaltstack; sp: the caller's. 0: the kernel is to be asked, it has the target's
 * own. */
int signals_altstack_call(struct thread *t, uint64_t sp, const uint64_t *args, long *result);

#pragma GCC visibility pop
#endif
