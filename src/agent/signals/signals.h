/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - the signal state that the target has requested: dispositions, masks and alternate stacks.
 *
 * The kernel's state differs: SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and SIGSYS always come to the agent,
 * and so do the signals for which the target has a handler; some signals are never really blocked; the
 * alternate stack is the agent's. Functions called *_call take the arguments of a system call, and have its
 * effects and its result.
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

/* The disposition that the target has requested for each signal. */
extern struct kernel_sigaction signals_target[LAST_SIGNAL + 1];
/* The last handler that it has installed for each signal but those that are always the agent's. */
extern struct kernel_sigaction signals_last_handler[LAST_SIGNAL + 1];

/*
 * For system calls with pointers to the agent's variables, which may be on a stack that the target allocated
 * itself, such as a coroutine's: another thread may protect its page at any moment, and the call fails with
 * EFAULT. Nonzero: that happened. The variable was accessed, so that the page is unprotected; call again.
 */
int signals_again(long ret, unsigned *tries, const void *variable, size_t bytes);

/* rt_sigaction of the kernel, with the agent's own structs (signals_again). */
static inline long kernel_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    unsigned tries = 0;
    long ret;
    do
        ret = sys4(SYS_rt_sigaction, sig, new, old, 8);
    while (signals_again(ret, &tries, new, sizeof *new) || signals_again(ret, &tries, old, sizeof *old));
    return ret;
}

/* The calling thread's mask in the kernel. */
uint64_t signals_kernel_mask(void);
/* rt_sigprocmask of the kernel. 0, or a negative error. */
long signals_change_kernel_mask(int how, uint64_t set);

/* rt_sigaction on the target's dispositions. 0, or a negative error. */
long signals_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old);
int altstack_autodisarms(const stack_t *s); /* enabled, with SS_AUTODISARM */

static inline int is_fault(int sig)
{
    return (FAULT_SIGNALS & SIGNAL_BIT(sig)) != 0;
}

int signals_init(void);
/* Installs the target's own dispositions and t's alternate stack in the kernel (t NULL: not followed), for
 * good. quiesced 0: triggers may still arrive, so a SIGTRAP that would end the program is ignored. */
void signals_uninstall(struct thread *t, int quiesced);
/* The signals that are always the agent's (see above) and that the target wants to ignore. Before an exec the
 * kernel has to ignore them, too, as the new program inherits that: signals_set_ignored does so (really
 * nonzero), or installs the agent's handlers again. */
uint64_t signals_target_ignores(void);
void signals_set_ignored(uint64_t which, int really);
int signals_uninstalled(void);
/* Only the dispositions, in a vfork child, whose memory is its parent's. */
void signals_restore_handlers(void);
int signals_handlers_installed(void); /* nonzero: the agent's fault handlers are still installed */
/* Takes over libc's own two signals (32 and 33), by which it cancels threads and changes their user, and
 * SIGPROF, by which `gcc -pg` samples (profil). libc installs their handlers by system calls that are not
 * interposed, but they must not see a context inside one of the agent's calls, and must not run on the
 * agent's signal stack: the target's handler of another signal may interrupt them on its own stack, and the
 * agent's next frame would overwrite theirs. The handler of SIGPROF also blocks SIGSEGV and SIGSYS.
 *
 * And, some time later at the latest, handlers that the program has installed by direct system calls, or
 * through a function of libc's that it found in another way (RTLD_DEEPBIND), if they block SIGSEGV or SIGSYS.
 */
void signals_intercept_direct(void);
void signals_hold(struct thread *t, int sig, const siginfo_t *info); /* until signals_resend_held */
int signals_any_held(void);                                          /* of any thread */
void signals_resend_held(struct thread *t); /* SIGSEGV and SIGBUS must be blocked, or they arrive at once */
/*
 * Some signals are never really blocked (hidden). signals_hidden: those that the target believes are blocked,
 * where the kernel's mask is `mask`. signals_note_hidden: notes more of them, where the kernel's mask changes
 * from before to after.
 */
uint64_t signals_hidden(const struct thread *t, uint64_t mask);
/* At the start of a program: unblocks those that its parent, or the program before, has blocked, and notes
 * them as hidden, with those that were hidden before an exec. Pending ones stay blocked: they would arrive.
 */
void signals_adopt_mask(struct thread *t, uint64_t hidden);
/* For a thread that the calling thread is about to create: the mask of that thread (NULL: not followed). */
void signals_inherit_mask(struct thread *t, const struct thread *creator);
/* A handler is about to run with `mask`, and `before` when it has ended. Returns the mask without the signals
 * to hide, and notes those as hidden until the handler ends. */
uint64_t signals_hide_in_handler(struct thread *t, uint64_t hide, uint64_t before, uint64_t mask);
void signals_note_hidden(struct thread *t, uint64_t also, uint64_t before, uint64_t after);
/* safe_copy may fault, and the kernel kills for a fault whose signal is blocked, as it is in a handler with a
 * full mask. signals_unblock_faults: returns which to pass to signals_block_faults after the copy. t is the
 * calling thread; NULL: not followed. */
unsigned signals_unblock_faults(struct thread *t);
void signals_block_faults(unsigned which);
/* The target's system calls on this state, with the kernel's results and effects; args are the call's.
 * rt_sigaction; rt_sigprocmask of a followed thread, native or in translated code; the same where the mask is
 * kept at *mask (hides: some signals must not really be blocked). */
long signals_action_call(struct thread *t, const uint64_t *args);
long signals_mask_call(struct thread *t, const uint64_t *args);
long signals_mask_in(struct thread *t, uint64_t *mask, int hides, const uint64_t *args);
/* sigaltstack; sp: the caller's stack pointer. 0: the kernel must make the call, since it has the target's
 * own stack. */
int signals_altstack_call(struct thread *t, uint64_t sp, const uint64_t *args, long *result);

#pragma GCC visibility pop
#endif
