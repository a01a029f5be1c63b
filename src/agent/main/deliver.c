/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deliver.c - delivers signals to the target.
 *
 * The signal's frame is moved to where the target would have had it (its stack or its alternate stack), the
 * mask is set that the target would have had, and its handler is called as if the kernel had called it. The
 * handler may read and change the context, return, or jump out.
 *
 * What the target has requested for its signals is kept in signals/dispositions.c.
 */
#include "agent/main/main-internal.h"
#include "agent/sys/context.h"
#include "agent/sys/process.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/threads/threads.h"
#include "agent/watch/watch.h"

/* Makes the kernel take the default action, once this handler returns. */
static void default_action(int sig, int again)
{
    struct kernel_sigaction k = {NULL, SA_RESTORER_FLAG, (void *)(uintptr_t)signal_restorer, 0};
    kernel_action(sig, &k, NULL);
    if (again)
        sys3(SYS_tgkill, sys0(SYS_getpid), sys0(SYS_gettid), sig);
}

/* The mask for the target's handler without the signals that the agent needs: SIGTRAP; with several threads,
 * while pages may be protected, also those that report protected pages. The target still sees the mask that
 * it requested. If it had blocked one of the latter before, or handles a fault, these stay blocked. */
static uint64_t keep_signals_unblocked(struct thread *t, int sig, uint64_t before, uint64_t mask)
{
    static const uint64_t reports = SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS);
    uint64_t hide = SIGNAL_BIT(SIGTRAP);
    if (watch_several_threads() && session->watch && mask & reports) {
        if (is_fault(sig) || before & reports)
            watch_mark_quiescent(t, mask);
        else
            hide |= reports;
    }
    return signals_hide_in_handler(t, hide, before, mask);
}

/* A handler with these flags, for a signal that arrived at sp, runs below the returned address: sp, or the
 * end of the alternate stack. */
static uint64_t handler_stack(const stack_t *alternate, uint64_t flags, uint64_t sp)
{
    uint64_t low = (uint64_t)alternate->ss_sp, size = alternate->ss_size;
    if (altstack_autodisarms(alternate)) /* SS_AUTODISARM: while a handler is on it, it is disarmed */
        return flags & SA_ONSTACK ? low + size : sp;
    return flags & SA_ONSTACK && !(alternate->ss_flags & SS_DISABLE) && !(sp > low && sp <= low + size)
               ? low + size
               : sp;
}

/* A thread that is not followed, perhaps in a process that the agent does not track (children.c): where its
 * frame is to be moved; 0: it stays. */
static uint64_t untracked_stack(const ucontext_t *uc, uint64_t flags)
{
    const stack_t *now = &uc->uc_stack;
    const struct thread *was = thread_of_stack(now->ss_sp);
    uint64_t low = (uint64_t)now->ss_sp, size = now->ss_size, sp = arch_sp(uc);
    /* On the target's stack, or interrupted while on the signal stack. */
    if ((uint64_t)uc - low >= size || sp - low <= size)
        return 0;
    return was ? handler_stack(&was->signals.app_altstack, flags, sp) : flags & SA_ONSTACK ? 0 : sp;
}

/* The mask that was in force when the signal arrived. In sigsuspend, ppoll and the like it is not the one
 * that a return from the handler restores. They return EINTR then, except io_uring_enter, if it has submitted
 * something before it waited: that is recognised if the mask restored blocks the signal. */
static uint64_t mask_in_force(int sig, ucontext_t *uc)
{
    static const uint64_t faults = SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS);
    uint64_t mask, ours, before = mask_of(uc);
    if (is_fault(sig) || !(arch_after_eintr(uc) || (before & SIGNAL_BIT(sig) && arch_after_call(uc))))
        return before;
    sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, &ours, 8); /* the mask may lie in a protected page */
    int waiting = arch_waiting_mask(uc, &mask);
    sys4(SYS_rt_sigprocmask, SIG_SETMASK, &ours, NULL, 8);
    return waiting && !(mask & SIGNAL_BIT(sig)) ? mask : before;
}

/* Where the frame of a followed thread is to be moved; 0: it stays. A handler that interrupts one on the
 * signal stack also runs there: elsewhere, the next signal would use that stack from its top, and overwrite
 * what the first handler has there. */
static uint64_t followed_stack(const struct thread *t, uint64_t flags, const ucontext_t *uc,
                               struct delivery *d)
{
    if (in_handler(t, uc))
        return 0;
    if (!altstack_autodisarms(&t->signals.app_altstack))
        return handler_stack(&t->signals.app_altstack, flags, arch_sp(uc));
    if (uc->uc_stack.ss_size != t->signals.kernel_altstack[1].ss_size)
        return arch_sp(uc);
    d->altstack = &t->signals.kernel_altstack[0];
    return handler_stack(&t->signals.app_altstack, flags, arch_sp(uc));
}

/* Moves the signal's frame to where the kernel would have put it without the agent, and sets d->sp and
 * d->altstack. 0: there is no room for it, or no restorer to return through; the kernel sends SIGSEGV then.
 */
static int place_frame(struct thread *t, const struct kernel_sigaction *act, siginfo_t **info,
                       ucontext_t **uc, struct delivery *d)
{
    d->sp = (uint64_t)*uc - 8;
    d->altstack = NULL;
    /* If a system call instruction has set another alternate stack than the agent's, the kernel has put the
     * frame where the target would have it. */
    int is_ours = t && (*uc)->uc_stack.ss_sp == t->signal_stack;
    uint64_t sp = is_ours ? followed_stack(t, act->flags, *uc, d) : untracked_stack(*uc, act->flags);
    if (!sp)
        return 1;
    /* Handlers of asynchronous signals run with SIGSEGV blocked, where a fault of safe_copy would kill: the
     * pages of the frame must be accessible. */
    if (t)
        watch_never_protect(sp - FRAME_MOST_BYTES, sp);
    d->sp = arch_move_frame(uc, info, sp);
    if (!d->sp || !(act->flags & SA_RESTORER_FLAG))
        return 0;
    /* Installed by the target with its own system call. */
    if (act->restorer != (void *)(uintptr_t)signal_restorer)
        safe_copy((void *)d->sp, &act->restorer, sizeof act->restorer);
    return 1;
}

uint64_t deliver(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc, struct delivery *d)
{
    struct kernel_sigaction act = signals_target[sig];
    int raised_by_kernel = info->si_code > 0;
    /* The kernel calls the agent for such a signal only if there was a handler. Another thread has removed it
     * since. In native execution the handler would still be called. */
    if (!is_fault(sig) && (act.handler == (void *)SIG_DFL || act.handler == (void *)SIG_IGN))
        act = signals_last_handler[sig];
    if (t) /* its handler is recorded, or the process ends here */
        t->burst.must_return = 0;
    /* What the target believes to be blocked. Some of it is not blocked in the kernel, because of watching or
     * translated code. */
    uint64_t blocked = mask_of(uc) | (t ? signals_hidden(t, mask_of(uc)) : 0);
    if (raised_by_kernel && is_fault(sig) && blocked & SIGNAL_BIT(sig))
        act.handler = (void *)SIG_DFL; /* the kernel kills for a fault whose signal is blocked */
    if (act.handler == (void *)SIG_IGN && !raised_by_kernel) {
        if (t)
            t->burst.must_return = agent_always_translated() && t->state == THREAD_NATIVE;
        return 0;
    }
    if (act.handler == (void *)SIG_DFL || act.handler == (void *)SIG_IGN) {
        /* A fault recurs at the same instruction. A trap or a sent signal does not: it is sent again. */
        default_action(sig, !raised_by_kernel || sig == SIGTRAP || sig == SIGSYS);
        return 0;
    }
    if (is_fault(sig) && act.flags & (unsigned)SA_RESETHAND) {
        if (t || !process_is_untracked())
            signals_target[sig].handler = (void *)SIG_DFL;
        else
            default_action(sig, 0);
    }
    if (t)
        abandon_step_for_handler(t, uc);
    d->mask = mask_in_force(sig, uc) | act.mask;
    if (!place_frame(t, &act, &info, &uc, d)) {
        sig = SIGSEGV;
        default_action(sig, 1);
        set_mask_of(uc, mask_of(uc) & ~SIGNAL_BIT(SIGSEGV));
        return 0;
    }
    d->sig = sig;
    d->info = info;
    d->uc = uc;
    if (!(act.flags & SA_NODEFER))
        d->mask |= SIGNAL_BIT(sig);
    if (t) {
        d->mask = keep_signals_unblocked(t, sig, mask_of(uc), d->mask);
        if (!watch_several_threads() && d->mask & (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS)) &&
            watch_any_protected())
            watch_censor_all(t); /* with these signals blocked, a fault of a protected page would kill */
        if (agent_always_translated() && !agent_off)
            thread_trigger(t); /* the handler is recorded, too */
    }
    return (uint64_t)act.handler;
}
