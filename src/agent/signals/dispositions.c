/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispositions.c - what the target has asked to be done on its signals. It is told what it asked for; what
 * the kernel has is ours. Masks and alternate stacks: masks.c.
 *
 * SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and SIGSYS are always the agent's in the kernel; of the others
 * only those for which the target has a handler.
 */
#include <errno.h>
#include "agent/signals/signals.h"

struct kernel_sigaction signals_target[LAST_SIGNAL + 1];
static int handed_back = 1;       /* the kernel has the target's own: not yet ours, or again */
static unsigned long known_flags; /* those that the kernel stores; it drops others */

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

/* What libc has installed without us: its handlers return through our text, whose calls are not diverted. */
static void note(int sig, const struct kernel_sigaction *k)
{
    signals_target[sig] = *k;
    signals_target[sig].flags |= SA_RESTORER_FLAG;
    signals_target[sig].restorer = (void *)(uintptr_t)signal_restorer;
}

/* The flags that the kernel stores, found by asking for all of them while SIGSYS is not in use. */
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
    handed_back = 0;
    learn_flags();
    for (int sig = 1; sig <= LAST_SIGNAL; sig++) {
        struct kernel_sigaction k;
        if (sig == 32 || sig == 33 || sys_failed(kernel_action(sig, NULL, &k)))
            continue;
        /* Libraries may have asked for some before the agent came to life. */
        int handled = k.handler != (void *)SIG_DFL && k.handler != (void *)SIG_IGN;
        if (is_fault(sig) || handled)
            note(sig, &k);
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
        note(sig, &k);
        take_over(sig, k.flags);
    }
}

void signals_give_back(void)
{
    for (int sig = 1; sig <= LAST_SIGNAL && !handed_back; sig++) {
        struct kernel_sigaction k;
        if (!sys_failed(kernel_action(sig, NULL, &k)) && k.handler == (void *)(uintptr_t)signal_entry)
            kernel_action(sig, &signals_target[sig], NULL);
    }
}

int signals_handed_back(void)
{
    return handed_back;
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

int signals_fail(int code)
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

/* Sets what the target wants done on a signal that is the agent's in the kernel, or has a handler. */
static long install(int sig, const struct kernel_sigaction *new, int is_ours)
{
    int handled = new->handler != (void *)SIG_DFL &&new->handler != (void *)SIG_IGN;
    if (is_fault(sig)) {
        signals_target[sig] = *new;
        /* SIGTRAP's triggers are to interrupt no call. */
        return sig == SIGTRAP && is_ours ? 0 : take_over(sig, handled ? new->flags : SA_RESTART);
    }
    if (sig == 32 || sig == 33)
        return kernel_action(sig, new, NULL);
    signals_target[sig] = *new;
    if (!handled)
        return kernel_action(sig, new, NULL);
    return take_over(sig, new->flags);
}

long signals_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    struct kernel_sigaction now = {NULL, 0, NULL, 0}, asked;
    if (sig < 1 || sig > LAST_SIGNAL || (new && (sig == SIGKILL || sig == SIGSTOP)))
        return -EINVAL;
    child_settles();
    long ret = kernel_action(sig, handed_back ? new : NULL, &now);
    if (sys_failed(ret))
        return ret;
    int strange = !handed_back && child_is_strange(),
        is_ours = now.handler == (void *)(uintptr_t)signal_entry,
        ignored = now.handler == (void *)SIG_IGN && signals_target[sig].handler == (void *)SIG_IGN;
    int was_reset = now.handler == (void *)SIG_DFL && now.restorer == (void *)(uintptr_t)signal_restorer &&
                    now.mask == ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
    /* A program that is being executed has them ignored for a moment (signals_ignore). */
    if (!handed_back && (is_ours || was_reset || (is_fault(sig) && !strange && ignored)))
        now = signals_target[sig];
    if (was_reset) /* SA_RESETHAND, by the kernel */
        now.handler = (void *)SIG_DFL;
    if (new && !handed_back) {
        asked = *new;
        /* What a system call instruction was told of ours stands for the target's own. */
        if (asked.handler == (void *)(uintptr_t)signal_entry)
            asked = signals_target[sig];
        asked.flags &= known_flags;
        asked.mask &= ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
        int handled = asked.handler != (void *)SIG_DFL && asked.handler != (void *)SIG_IGN;
        if (strange && handled && asked.flags & SA_ONSTACK)
            hand_back_altstack();
        /* What is noted is, perhaps, the parent's. */
        ret = strange ? kernel_action(sig, &asked, NULL) : install(sig, &asked, is_ours);
        if (sys_failed(ret))
            return ret;
    }
    if (old)
        *old = now;
    return 0;
}

long signals_action_call(const uint64_t *args)
{
    struct kernel_sigaction new, old;
    child_settles();
    if (handed_back) /* a fault of safe_copy would be the target's */
        return sys4(SYS_rt_sigaction, args[0], args[1], args[2], args[3]);
    if (args[3] != sizeof new.mask)
        return -EINVAL;
    if (args[1] && safe_copy(&new, (const void *)args[1], sizeof new))
        return -EFAULT;
    long ret = signals_action((int)args[0], args[1] ? &new : NULL, args[2] ? &old : NULL);
    if (!sys_failed(ret) && args[2] && safe_copy((void *)args[2], &old, sizeof old))
        return -EFAULT;
    return ret;
}

/* The kernel's copies are on the stack, whose pages may be closed if the target made it: with one thread all
 * are opened meanwhile, with several no stack of a thread is closed. */
static struct thread *hold(void)
{
    struct thread *t = agent_off || !session || !session->watch || watch_many() ? NULL : thread_self();
    if (t)
        watch_hold(t);
    return t;
}

static void release(struct thread *t)
{
    if (t)
        watch_release(t);
}

long signals_action_held(const uint64_t *args)
{
    struct thread *t = hold();
    long ret = signals_action_call(args);
    release(t);
    return ret;
}

static int change_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    if (sig < 1 || sig > LAST_SIGNAL || sig == 32 || sig == 33) /* libc keeps those two for itself */
        return signals_fail(EINVAL);
    struct thread *t = hold();
    long ret = signals_action(sig, new, old);
    release(t);
    return sys_failed(ret) ? signals_fail((int)-ret) : 0;
}

/*
 * libc copies a struct sigaction before and after the system call, so a bad pointer faults, and the target's
 * own handler may jump out: nothing is held meanwhile. The order is glibc's, as si_addr tells where the
 * struct leaves accessible memory: all but the last 16 bytes of the mask, the flags, the rest; when writing,
 * 24 bytes, the flags, the rest.
 */
#define MASK_WORDS (sizeof(sigset_t) / sizeof(uint64_t))

static void read_action(const struct sigaction *from, struct kernel_sigaction *to)
{
    const volatile struct sigaction *f = from;
    const volatile uint64_t *mask = (const volatile uint64_t *)(const void *)&from->sa_mask;
    to->handler = (void *)f->sa_handler;
    to->mask = mask[0];
    for (size_t i = 1; i < MASK_WORDS - 2; i++)
        (void)mask[i];
    to->flags = (unsigned long)(long)f->sa_flags | SA_RESTORER_FLAG;
    for (size_t i = MASK_WORDS - 2; i < MASK_WORDS; i++)
        (void)mask[i];
    to->restorer = (void *)(uintptr_t)signal_restorer;
}

static void write_action(struct sigaction *to, const struct kernel_sigaction *from)
{
    volatile struct sigaction *t = to;
    volatile uint64_t *mask = (volatile uint64_t *)(void *)&to->sa_mask;
    t->sa_handler = (void (*)(int))from->handler;
    mask[0] = from->mask;
    for (size_t i = 1; i < 4; i++)
        mask[i] = 0;
    t->sa_flags = (int)from->flags;
    for (size_t i = 4; i < 6; i++)
        mask[i] = 0;
    t->sa_restorer = (void (*)(void))from->restorer;
    for (size_t i = 6; i < MASK_WORDS; i++)
        mask[i] = 0;
}

EXPORT int sigaction(int sig, const struct sigaction *restrict new, struct sigaction *restrict old)
{
    struct kernel_sigaction k_new, k_old;
    if (sig < 1 || sig > LAST_SIGNAL || sig == 32 || sig == 33)
        return signals_fail(EINVAL);
    if (new)
        read_action(new, &k_new);
    if (change_action(sig, new ? &k_new : NULL, old ? &k_old : NULL))
        return -1;
    if (old)
        write_action(old, &k_old);
    return 0;
}

typedef void (*handler_function)(int);

static handler_function simple(int sig, handler_function handler, unsigned long flags, uint64_t mask)
{
    struct kernel_sigaction new = {(void *)handler, flags | SA_RESTORER_FLAG,
                                   (void *)(uintptr_t)signal_restorer, mask},
                            old;
    if (handler == SIG_ERR) {
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
