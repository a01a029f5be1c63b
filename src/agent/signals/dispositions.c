/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispositions.c - the dispositions that the target has requested, and is shown; the kernel has the agent's
 * handlers. Masks and alternate stacks: masks.c.
 *
 * SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and SIGSYS are always the agent's in the kernel; of the other
 * signals only those for which the target has a handler.
 */
#include <errno.h>
#include <time.h>
#include "agent/signals/signals.h"
#include "agent/sys/process.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/tunables.h"

struct kernel_sigaction signals_target[LAST_SIGNAL + 1], signals_last_handler[LAST_SIGNAL + 1];
static int uninstalled = 1; /* the kernel has the target's own dispositions: before the start, or again */
static unsigned long known_flags; /* flags that the kernel stores; it clears others */

static long take_over(int sig, unsigned long flags)
{
    struct kernel_sigaction k = {(void *)(uintptr_t)signal_entry,
                                 (flags & (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART)) | SA_SIGINFO |
                                     SA_ONSTACK | SA_RESTORER_FLAG,
                                 (void *)(uintptr_t)signal_restorer, ~0ull};
    /* SA_RESETHAND of an asynchronous signal is left to the kernel, which resets the handler exactly once for
     * all threads. */
    if (!is_fault(sig))
        k.flags |= flags & (unsigned long)(unsigned)SA_RESETHAND;
    else
        k.mask = ~(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS)); /* safe_copy may fault in the handler */
    if (sig == SIGSEGV || sig == SIGBUS)
        k.flags |= SA_NODEFER; /* for the same reason */
    return kernel_action(sig, &k, NULL);
}

/* A handler that was installed by a direct system call, as libc does: it returns through the agent's
 * restorer, whose calls are not diverted. */
static void note(int sig, const struct kernel_sigaction *k)
{
    signals_target[sig] = *k;
    signals_target[sig].flags |= SA_RESTORER_FLAG;
    signals_target[sig].restorer = (void *)(uintptr_t)signal_restorer;
    signals_last_handler[sig] = signals_target[sig];
}

/* The flags that the kernel stores, found by setting all of them while SIGSYS is not in use. */
static void learn_flags(void)
{
    struct kernel_sigaction before, all = {(void *)SIG_IGN, ~0ul, (void *)(uintptr_t)signal_restorer, 0};
    known_flags = ~0ul;
    if (!sys_failed(kernel_action(SIGSYS, &all, &before)) &&
        !sys_failed(kernel_action(SIGSYS, &before, &all)))
        known_flags = all.flags;
}

int signals_init(void)
{
    uninstalled = 0;
    learn_flags();
    for (int sig = 1; sig <= LAST_SIGNAL; sig++) {
        struct kernel_sigaction k;
        if (sig == 32 || sig == 33 || sys_failed(kernel_action(sig, NULL, &k)))
            continue;
        /* Libraries may have installed handlers before the agent started. */
        int handled = k.handler != (void *)SIG_DFL && k.handler != (void *)SIG_IGN;
        if (handled)
            note(sig, &k);
        else
            signals_target[sig] = k; /* default or ignored, with its flags */
        if ((is_fault(sig) && sys_failed(take_over(sig, SA_RESTART))) ||
            (!is_fault(sig) && handled && sys_failed(take_over(sig, k.flags))))
            return -1;
    }
    return 0;
}

/* The kernel has the agent's handler. */
static int is_installed(int sig)
{
    struct kernel_sigaction k;
    return !sys_failed(kernel_action(sig, NULL, &k)) && k.handler == (void *)(uintptr_t)signal_entry;
}

int signals_handlers_installed(void)
{
    return is_installed(SIGSEGV) && is_installed(SIGTRAP) && (!session->watch || is_installed(SIGSYS));
}

/* Other handlers, if they block signals by which protected pages are reported, which kills. */
static void intercept_blocking(void)
{
    static uint64_t last_ns;
    static const uint64_t kills = SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS);
    uint64_t now_ns = sys_clock_ns(CLOCK_MONOTONIC), before_ns = __atomic_load_n(&last_ns, __ATOMIC_RELAXED);
    if ((before_ns != 0 && now_ns - before_ns < DIRECT_HANDLERS_NS) ||
        !__atomic_compare_exchange_n(&last_ns, &before_ns, now_ns, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    for (int sig = 1; sig <= LAST_SIGNAL; sig++) {
        struct kernel_sigaction k;
        if (is_fault(sig) || sys_failed(kernel_action(sig, NULL, &k)) || k.handler == (void *)SIG_DFL ||
            k.handler == (void *)SIG_IGN || k.handler == (void *)(uintptr_t)signal_entry || !(k.mask & kills))
            continue;
        note(sig, &k);
        take_over(sig, k.flags);
    }
}

void signals_intercept_direct(void)
{
    static const int handled[] = {SIGPROF, 32, 33};
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++) {
        int sig = handled[i];
        struct kernel_sigaction k;
        if (sys_failed(kernel_action(sig, NULL, &k)) || k.handler == (void *)SIG_DFL ||
            k.handler == (void *)SIG_IGN || k.handler == (void *)(uintptr_t)signal_entry)
            continue;
        note(sig, &k);
        take_over(sig, k.flags);
    }
    intercept_blocking();
}

static siginfo_t *held_slot(struct thread *t, int sig)
{
    static const uint8_t place[] = {
        [SIGSEGV] = 0, [SIGBUS] = 1, [SIGILL] = 2, [SIGFPE] = 3, [SIGTRAP] = 4, [SIGSYS] = 5};
    return &t->signals.held[place[sig]];
}

static uint64_t held_count; /* held by all threads */

int signals_any_held(void)
{
    return __atomic_load_n(&held_count, __ATOMIC_RELAXED) != 0;
}

void signals_hold(struct thread *t, int sig, const siginfo_t *info)
{
    if (t->signals.held_signals &
        SIGNAL_BIT(sig)) /* only the first is kept, as the kernel does for pending signals */
        return;
    *held_slot(t, sig) = *info;
    t->signals.held_signals |= SIGNAL_BIT(sig);
    __atomic_fetch_add(&held_count, 1, __ATOMIC_RELAXED);
}

void signals_resend_held(struct thread *t)
{
    for (int sig = 1; t->signals.held_signals && sig <= SIGSYS; sig++)
        if (t->signals.held_signals & SIGNAL_BIT(sig)) {
            t->signals.held_signals &= ~SIGNAL_BIT(sig);
            __atomic_fetch_sub(&held_count, 1, __ATOMIC_RELAXED);
            sys4(SYS_rt_tgsigqueueinfo, process_id, t->tid, sig, held_slot(t, sig));
        }
}

void signals_restore_handlers(void)
{
    for (int sig = 1; sig <= LAST_SIGNAL && !uninstalled; sig++)
        if (is_installed(sig))
            kernel_action(sig, &signals_target[sig], NULL);
}

int signals_uninstalled(void)
{
    return uninstalled;
}

uint64_t signals_target_ignores(void)
{
    uint64_t ignored = 0;
    for (int sig = 1; sig <= LAST_SIGNAL && !uninstalled; sig++)
        if (is_fault(sig) && signals_target[sig].handler == (void *)SIG_IGN)
            ignored |= SIGNAL_BIT(sig);
    return ignored;
}

void signals_set_ignored(uint64_t which, int really)
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

/* The kernel has reset the agent's handler in a child by clone3 with CLONE_CLEAR_SIGHAND, where the target's
 * would be reset, too, but an ignored signal stay ignored. */
static void ignore_cleared(void)
{
    struct kernel_sigaction k;
    for (int sig = 1; sig <= LAST_SIGNAL; sig++)
        if (is_fault(sig) && signals_target[sig].handler == (void *)SIG_IGN &&
            !sys_failed(kernel_action(sig, NULL, &k)) && k.handler == (void *)SIG_DFL && !k.restorer)
            signals_set_ignored(SIGNAL_BIT(sig), 1);
}

void signals_uninstall(struct thread *t, int quiesced)
{
    if (uninstalled)
        return;
    ignore_cleared();
    /* Setting SIGTRAP to ignored discards instances that are pending for other threads: triggers of the
     * agent's, which would end the program. A child of a child by vfork has that child's dispositions. */
    int is_ours = is_installed(SIGTRAP);
    if (is_ours) {
        signals_set_ignored(SIGNAL_BIT(SIGTRAP), 1);
        signals_set_ignored(SIGNAL_BIT(SIGTRAP), 0);
    }
    signals_restore_handlers();
    if (is_ours && !quiesced && signals_target[SIGTRAP].handler == (void *)SIG_DFL)
        signals_set_ignored(SIGNAL_BIT(SIGTRAP), 1);
    uninstalled = 1;
    if (!t)
        return;
    stack_t none = {.ss_flags = SS_DISABLE};
    sys2(SYS_sigaltstack, t->signals.app_altstack.ss_flags & SS_DISABLE ? &none : &t->signals.app_altstack,
         0);
    signals_change_kernel_mask(SIG_BLOCK, signals_hidden(t, signals_kernel_mask()));
}

/* Installs the target's own alternate stack in the kernel, as the caller's parent had it. */
static void restore_target_altstack(void)
{
    stack_t now, none = {.ss_flags = SS_DISABLE};
    struct thread *was = sys_failed(sys2(SYS_sigaltstack, 0, &now)) ? NULL : thread_of_stack(now.ss_sp);
    if (was)
        sys2(SYS_sigaltstack,
             was->signals.app_altstack.ss_flags & SS_DISABLE ? &none : &was->signals.app_altstack, 0);
}

/* Sets the target's disposition of a signal that is the agent's in the kernel, or has a handler. */
static long install(int sig, const struct kernel_sigaction *new, int is_ours)
{
    int handled = new->handler != (void *)SIG_DFL &&new->handler != (void *)SIG_IGN;
    if (is_fault(sig)) {
        signals_target[sig] = *new;
        /* triggers must never interrupt a system call: SA_RESTART stays set for SIGTRAP */
        return sig == SIGTRAP && is_ours ? 0 : take_over(sig, handled ? new->flags : SA_RESTART);
    }
    if (sig == 32 || sig == 33)
        return kernel_action(sig, new, NULL);
    signals_target[sig] = *new;
    if (!handled)
        return kernel_action(sig, new, NULL);
    signals_last_handler[sig] = *new;
    return take_over(sig, new->flags);
}

long signals_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    struct kernel_sigaction now = {NULL, 0, NULL, 0}, asked;
    if (sig < 1 || sig > LAST_SIGNAL || (new && (sig == SIGKILL || sig == SIGSTOP)))
        return -EINVAL;
    long ret = kernel_action(sig, uninstalled ? new : NULL, &now);
    if (sys_failed(ret))
        return ret;
    int untracked = !uninstalled && process_is_untracked(),
        is_ours = now.handler == (void *)(uintptr_t)signal_entry,
        ignored = now.handler == (void *)SIG_IGN && signals_target[sig].handler == (void *)SIG_IGN;
    int was_reset = now.handler == (void *)SIG_DFL && now.restorer == (void *)(uintptr_t)signal_restorer &&
                    now.mask == ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
    /* During an exec the kernel ignores them (signals_set_ignored). */
    if (!uninstalled && (is_ours || was_reset || (is_fault(sig) && !untracked && ignored)))
        now = signals_target[sig];
    if (was_reset) /* the kernel has reset it (SA_RESETHAND) */
        now.handler = (void *)SIG_DFL;
    if (new && !uninstalled) {
        asked = *new;
        /* A system call instruction has read the agent's handler and now sets it: that means the target's own
         * disposition. */
        if (asked.handler == (void *)(uintptr_t)signal_entry)
            asked = signals_target[sig];
        asked.flags &= known_flags;
        asked.mask &= ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
        int handled = asked.handler != (void *)SIG_DFL && asked.handler != (void *)SIG_IGN;
        if (untracked && handled && asked.flags & SA_ONSTACK)
            restore_target_altstack();
        /* signals_target[] may be the parent's. */
        ret = untracked ? kernel_action(sig, &asked, NULL) : install(sig, &asked, is_ours);
        if (sys_failed(ret))
            return ret;
    }
    if (old)
        *old = now;
    return 0;
}

long signals_action_call(struct thread *t, const uint64_t *args)
{
    struct kernel_sigaction new, old;
    long ret = -EFAULT;
    if (uninstalled) /* the agent's handlers are gone: a fault of safe_copy would reach the target */
        return sys4(SYS_rt_sigaction, args[0], args[1], args[2], args[3]);
    if (args[3] != sizeof new.mask)
        return -EINVAL;
    size_t (*copy)(void *, const void *, size_t) = !t && process_is_untracked() ? process_copy : safe_copy;
    unsigned blocked = signals_unblock_faults(t);
    if (!args[1] || !copy(&new, (const void *)args[1], sizeof new))
        ret = signals_action((int)args[0], args[1] ? &new : NULL, args[2] ? &old : NULL);
    if (!sys_failed(ret) && args[2] && copy((void *)args[2], &old, sizeof old))
        ret = -EFAULT;
    signals_block_faults(blocked);
    return ret;
}
