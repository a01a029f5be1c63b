/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispositions.c - what the target has asked for its signals: handlers, masks, an alternate stack. It is told
 * what it asked for; what the kernel has is ours.
 *
 * SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and SIGSYS are always the agent's in the kernel; of the others
 * only those for which the target has a handler.
 */
#include <errno.h>
#include "agent/signals/signals.h"

/* Smaller ones the kernel refuses; larger ones than this only a kernel with strict_sas_size, or one that has
 * given the process AMX state. */
#define ALTSTACK_LEAST 2048u

struct kernel_sigaction signals_target[LAST_SIGNAL + 1];
static int handed_back = 1; /* the kernel has the target's own: not yet ours, or again */

static long take_over(int sig, unsigned long flags)
{
    struct kernel_sigaction k = {(void *)(uintptr_t)signal_entry,
                                 (flags & (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART)) | SA_SIGINFO |
                                     SA_ONSTACK | SA_RESTORER_FLAG,
                                 (void *)(uintptr_t)signal_restorer, ~0ull};
    /* Resetting an asynchronous handler is left to the kernel, which does it once and for all threads. */
    if (!is_fault(sig))
        k.flags |= flags & (unsigned long)(unsigned)SA_RESETHAND;
    else
        k.mask = ~(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS)); /* safe_copy may fault in the handler, */
    if (sig == SIGSEGV || sig == SIGBUS)
        k.flags |= SA_NODEFER; /* also in that of a fault */
    return kernel_action(sig, &k, NULL);
}

int signals_init(void)
{
    handed_back = 0;
    for (int sig = 1; sig <= LAST_SIGNAL; sig++) {
        struct kernel_sigaction k;
        if (sig == 32 || sig == 33 || sys_failed(kernel_action(sig, NULL, &k)))
            continue;
        /* Libraries may have asked for some before the agent came to life. */
        int handled = k.handler != (void *)SIG_DFL && k.handler != (void *)SIG_IGN;
        if (is_fault(sig) || handled)
            signals_target[sig] = k;
        if ((is_fault(sig) && sys_failed(take_over(sig, SA_RESTART))) ||
            (!is_fault(sig) && handled && sys_failed(take_over(sig, k.flags))))
            return -1;
    }
    return 0;
}

int signals_ours(void)
{
    struct kernel_sigaction k;
    return !sys_failed(kernel_action(SIGSEGV, NULL, &k)) && k.handler == (void *)(uintptr_t)signal_entry &&
           !sys_failed(kernel_action(SIGTRAP, NULL, &k)) && k.handler == (void *)(uintptr_t)signal_entry &&
           (!session->watch ||
            (!sys_failed(kernel_action(SIGSYS, NULL, &k)) && k.handler == (void *)(uintptr_t)signal_entry));
}

void signals_take_libcs(void)
{
    for (int sig = 32; sig <= 33; sig++) {
        struct kernel_sigaction k;
        if (sys_failed(kernel_action(sig, NULL, &k)) || k.handler == (void *)SIG_DFL ||
            k.handler == (void *)SIG_IGN || k.handler == (void *)(uintptr_t)signal_entry)
            continue;
        signals_target[sig] = k;
        take_over(sig, k.flags);
    }
}

/* What was noted is out of date if others that were blocked along with them are not any more: a jump out of a
 * handler or a return from one has put back an older mask behind libc's back. */
uint64_t signals_hidden(const struct thread *t, uint64_t mask)
{
    return t->hidden_beside & ~mask ? 0 : t->hidden;
}

void signals_give_back(void)
{
    for (int sig = 1; sig <= LAST_SIGNAL && !handed_back; sig++) {
        struct kernel_sigaction k;
        if (!sys_failed(kernel_action(sig, NULL, &k)) && k.handler == (void *)(uintptr_t)signal_entry)
            kernel_action(sig, &signals_target[sig], NULL);
    }
}

uint64_t signals_ignored(void)
{
    uint64_t ignored = 0;
    for (int sig = 1; sig <= LAST_SIGNAL && !handed_back; sig++)
        if (is_fault(sig) && signals_target[sig].handler == (void *)SIG_IGN)
            ignored |= SIGNAL_BIT(sig);
    return ignored;
}

void signals_ignore(uint64_t which, int really)
{
    static const struct kernel_sigaction ignore = {(void *)SIG_IGN, SA_RESTORER_FLAG,
                                                   (void *)(uintptr_t)signal_restorer, 0};
    for (int sig = 1; sig <= LAST_SIGNAL; sig++)
        if (which & SIGNAL_BIT(sig)) {
            if (really)
                kernel_action(sig, &ignore, NULL);
            else
                take_over(sig, SA_RESTART);
        }
}

void signals_hand_back(struct thread *t, int silent)
{
    if (handed_back)
        return;
    /* Ignored for a moment, it is thrown away where it waits for other threads: triggers of ours that would
     * end the program. */
    signals_ignore(SIGNAL_BIT(SIGTRAP), 1);
    signals_ignore(SIGNAL_BIT(SIGTRAP), 0);
    signals_give_back();
    if (!silent && signals_target[SIGTRAP].handler == (void *)SIG_DFL)
        signals_ignore(SIGNAL_BIT(SIGTRAP), 1);
    handed_back = 1;
    if (!t)
        return;
    stack_t none = {.ss_flags = SS_DISABLE};
    sys2(SYS_sigaltstack, t->app_altstack.ss_flags & SS_DISABLE ? &none : &t->app_altstack, 0);
    sys4(SYS_rt_sigprocmask, SIG_BLOCK, &t->hidden, 0, 8);
}

static int fail(int code)
{
    errno = code;
    return -1;
}

/* The kernel is to have the target's own alternate stack, which the caller's parent had. */
static void hand_back_altstack(void)
{
    stack_t now, none = {.ss_flags = SS_DISABLE};
    struct thread *was = sys_failed(sys2(SYS_sigaltstack, 0, &now)) ? NULL : thread_of_stack(now.ss_sp);
    if (was)
        sys2(SYS_sigaltstack, was->app_altstack.ss_flags & SS_DISABLE ? &none : &was->app_altstack, 0);
}

static int change_action_open(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    if (sig < 1 || sig > LAST_SIGNAL || sig == 32 || sig == 33)
        return fail(EINVAL);
    struct kernel_sigaction now = {NULL, 0, NULL, 0};
    child_settles();
    long ret = kernel_action(sig, handed_back ? new : NULL, &now);
    if (sys_failed(ret))
        return fail((int)-ret);
    int strange = !handed_back && child_is_strange();
    if (!handed_back && ((is_fault(sig) && !strange) || now.handler == (void *)(uintptr_t)signal_entry))
        now = signals_target[sig];
    if (new && !handed_back) {
        int handled = new->handler != (void *)SIG_DFL &&new->handler != (void *)SIG_IGN;
        if (strange && handled && new->flags &SA_ONSTACK)
            hand_back_altstack();
        if (strange) { /* what is noted is, perhaps, the parent's */
            ret = kernel_action(sig, new, NULL);
        } else if (is_fault(sig)) {
            signals_target[sig] = *new;
            if (sig != SIGTRAP) /* whose triggers are to interrupt no call */
                ret = take_over(sig, handled ? new->flags : SA_RESTART);
        } else if (handled) {
            signals_target[sig] = *new;
            ret = take_over(sig, new->flags);
        } else {
            struct kernel_sigaction k = *new;
            k.flags |= SA_RESTORER_FLAG;
            k.restorer = (void *)(uintptr_t)signal_restorer;
            ret = kernel_action(sig, &k, NULL);
        }
        if (sys_failed(ret))
            return fail((int)-ret);
    }
    if (old)
        *old = now;
    return 0;
}

/* The kernel's copies are on the stack, whose pages may be closed if the target made it: with one thread all
 * are opened meanwhile, with several no stack of a thread is closed. */
static int change_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    struct thread *t = agent_off || !session || !session->watch || watch_many() ? NULL : thread_self();
    if (t)
        watch_hold(t);
    int result = change_action_open(sig, new, old);
    if (t)
        watch_release(t);
    return result;
}

EXPORT int sigaction(int sig, const struct sigaction *restrict new, struct sigaction *restrict old)
{
    struct kernel_sigaction k_new, k_old;
    if (new) {
        k_new.handler = (void *)new->sa_handler;
        k_new.flags = (unsigned long)(unsigned)new->sa_flags | SA_RESTORER_FLAG;
        k_new.restorer = (void *)(uintptr_t)signal_restorer;
        memcpy(&k_new.mask, &new->sa_mask, sizeof k_new.mask);
        k_new.mask &= ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
    }
    if (change_action(sig, new ? &k_new : NULL, old ? &k_old : NULL))
        return -1;
    if (old) {
        memset(&old->sa_mask, 0, sizeof old->sa_mask);
        memcpy(&old->sa_mask, &k_old.mask, sizeof k_old.mask);
        old->sa_handler = (void (*)(int))k_old.handler;
        old->sa_flags = (int)k_old.flags;
        old->sa_restorer = (void (*)(void))k_old.restorer;
    }
    return 0;
}

typedef void (*handler_function)(int);

static handler_function simple(int sig, handler_function handler, unsigned long flags, uint64_t mask)
{
    struct kernel_sigaction new = {(void *)handler, flags | SA_RESTORER_FLAG,
                                   (void *)(uintptr_t)signal_restorer, mask},
                            old;
    if (handler == SIG_ERR || sig < 1 || sig > LAST_SIGNAL) {
        errno = EINVAL;
        return SIG_ERR;
    }
    return change_action(sig, &new, &old) ? SIG_ERR : (handler_function)old.handler;
}

static uint64_t interrupting; /* what siginterrupt was asked for */

EXPORT int siginterrupt(int sig, int interrupt)
{
    struct kernel_sigaction k;
    if (change_action(sig, NULL, &k))
        return -1;
    if (interrupt) {
        __atomic_fetch_or(&interrupting, SIGNAL_BIT(sig), __ATOMIC_RELAXED);
        k.flags &= ~(unsigned long)SA_RESTART;
    } else {
        __atomic_fetch_and(&interrupting, ~SIGNAL_BIT(sig), __ATOMIC_RELAXED);
        k.flags |= SA_RESTART;
    }
    return change_action(sig, &k, NULL);
}

EXPORT handler_function signal(int sig, handler_function handler)
{
    int restarts = sig < 1 || sig > LAST_SIGNAL || !(interrupting & SIGNAL_BIT(sig));
    return simple(sig, handler, restarts ? SA_RESTART : 0,
                  sig >= 1 && sig <= LAST_SIGNAL ? SIGNAL_BIT(sig) : 0);
}
EXPORT handler_function bsd_signal(int sig, handler_function handler);
EXPORT handler_function bsd_signal(int sig, handler_function handler)
{
    return signal(sig, handler);
}
EXPORT handler_function ssignal(int sig, handler_function handler)
{
    return signal(sig, handler);
}
EXPORT handler_function sysv_signal(int sig, handler_function handler)
{
    return simple(sig, handler, (unsigned)SA_RESETHAND | SA_NODEFER, 0);
}
EXPORT handler_function __sysv_signal(int sig, handler_function handler)
{
    return sysv_signal(sig, handler);
}

/*
 * SIGTRAP stays unblocked, or threads that block everything (as libraries' worker threads do) would
 * never be sampled, and so do the signals by which closed pages are seen; the target is told what it asked
 * for.
 */
static uint64_t never_blocked(void)
{
    uint64_t ours = SIGNAL_BIT(SIGTRAP);
    if (session->watch)
        ours |= SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS);
    return ours;
}

uint64_t signals_change(int how, uint64_t before, uint64_t mask)
{
    uint64_t after = how == SIG_BLOCK ? before | mask : how == SIG_UNBLOCK ? before & ~mask : mask;
    return after & ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
}

uint64_t signals_real(int how, uint64_t mask)
{
    return how == SIG_UNBLOCK ? mask : mask & ~never_blocked();
}

void signals_note(struct thread *t, int how, uint64_t mask, uint64_t before)
{
    t->hidden = signals_change(how, signals_hidden(t, before), mask & never_blocked());
    t->hidden_beside = signals_change(how, before, signals_real(how, mask));
}

static int change_mask(int how, const sigset_t *set, sigset_t *old)
{
    struct thread *t = agent_off || !session ? NULL : thread_self();
    if (!t)
        child_settles();
    uint64_t asked = 0, mask = 0, before = 0;
    /* The stack may be one that the target made, whose pages may be closed to the kernel. */
    uint64_t *in = t ? &t->mask_asked : &mask, *out = t ? &t->mask_before : &before;
    if (set) {
        memcpy(&asked, set, sizeof asked);
        asked &= ~(SIGNAL_BIT(32) | SIGNAL_BIT(33)); /* libc's own are never blocked */
        *in = t ? signals_real(how, asked) : asked;
    }
    long ret = sys4(SYS_rt_sigprocmask, how, set ? in : NULL, out, 8);
    if (sys_failed(ret))
        return (int)-ret;
    before = *out;
    uint64_t told = before | (t ? signals_hidden(t, before) : 0);
    if (set && t)
        signals_note(t, how, asked, before);
    if (old) {
        memset(old, 0, sizeof *old);
        memcpy(old, &told, sizeof told);
    }
    return 0;
}

EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    int code = change_mask(how, set, old);
    return code ? fail(code) : 0;
}

EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    return change_mask(how, set, old);
}

EXPORT int sigaltstack(const stack_t *restrict new, stack_t *restrict old)
{
    struct thread *t = agent_off || !session ? NULL : thread_self();
    if (!t) {
        stack_t now;
        child_settles();
        long ret = sys2(SYS_sigaltstack, new, &now);
        struct thread *was = sys_failed(ret) || !old ? NULL : thread_of_stack(now.ss_sp);
        if (old && !sys_failed(ret)) /* ours: it could not be handed back */
            *old = was ? was->app_altstack : now;
        return sys_failed(ret) ? fail((int)-ret) : 0;
    }
    uint64_t sp = (uint64_t)__builtin_frame_address(0), low = (uint64_t)t->app_altstack.ss_sp;
    int disarms = (int)((unsigned)t->app_altstack.ss_flags & ALTSTACK_AUTODISARM), disarmed = 0;
    if (disarms && !sys_failed(sys2(SYS_sigaltstack, 0, &t->altstack_now)))
        disarmed = t->altstack_now.ss_size != t->kernel_altstack[1].ss_size;
    int disabled = disarmed || (t->app_altstack.ss_flags & SS_DISABLE) != 0;
    int inside = !disabled && !disarms && sp > low && sp <= low + t->app_altstack.ss_size;
    stack_t before = disarmed ? (stack_t){0} : t->app_altstack;
    before.ss_flags = disabled ? SS_DISABLE : (inside ? SS_ONSTACK : 0) | disarms;
    if (new) {
        int mode = new->ss_flags & ~(int)ALTSTACK_AUTODISARM;
        if (inside)
            return fail(EPERM);
        if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE)
            return fail(EINVAL);
        if (mode == SS_DISABLE)
            t->app_altstack = (stack_t){.ss_flags = SS_DISABLE};
        else if (new->ss_size < ALTSTACK_LEAST)
            return fail(ENOMEM);
        else
            t->app_altstack = (stack_t){.ss_sp = new->ss_sp,
                                        .ss_size = new->ss_size,
                                        .ss_flags = (int)((unsigned)new->ss_flags &ALTSTACK_AUTODISARM)};
        if (disarmed)
            sys2(SYS_sigaltstack, &t->kernel_altstack[1], 0);
    }
    if (old)
        *old = before;
    return 0;
}
