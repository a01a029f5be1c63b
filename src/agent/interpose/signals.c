/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - libc's functions for dispositions, masks and alternate stacks. They do what glibc's do before
 * and after the system call, and leave the call itself to agent/signals, which keeps the state that the
 * target requested.
 */
#include <errno.h>
#include "agent/interpose/interpose.h"
#include "agent/life/life.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/watch/watch.h"

static int fail(int code)
{
    errno = code;
    return -1;
}

/* The kernel reads and writes structs on the stack, whose pages may be protected if the target allocated it.
 * With one thread all pages are unprotected meanwhile; with several threads see signals_again. */
static struct thread *hold(void)
{
    struct thread *t =
        agent_off || !session || !session->watch || watch_several_threads() ? NULL : thread_self();
    if (t)
        watch_hold(t);
    return t;
}

static void release(struct thread *t)
{
    if (t)
        watch_release(t);
}

long interposed_sigaction(const uint64_t *args)
{
    child_detach_copy();
    struct thread *t = hold();
    long ret = signals_action_call(t ? t : agent_off || !session ? NULL : thread_self(), args);
    release(t);
    return ret;
}

static int change_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    if (sig < 1 || sig > LAST_SIGNAL || sig == 32 || sig == 33) /* libc reserves these two for itself */
        return fail(EINVAL);
    child_detach_copy();
    struct thread *t = hold();
    long ret = signals_action(sig, new, old);
    release(t);
    return sys_failed(ret) ? fail((int)-ret) : 0;
}

/*
 * libc copies a struct sigaction before and after the system call. A bad pointer therefore faults, and the
 * target's handler may jump out, so nothing is held meanwhile. The accesses are in glibc's order, since
 * si_addr shows where the struct leaves accessible memory. Reading: all but the last 16 bytes of the mask,
 * the flags, the rest. Writing: 24 bytes, the flags, the rest.
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
        return fail(EINVAL);
    if (new)
        read_action(new, &k_new);
    if (change_action(sig, new ? &k_new : NULL, old ? &k_old : NULL))
        return -1;
    if (old)
        write_action(old, &k_old);
    return 0;
}

/* libc's other name for it. */
EXPORT int __sigaction(int sig, const struct sigaction *restrict new, struct sigaction *restrict old)
    __attribute__((alias("sigaction"), leaf, nothrow));

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

static uint64_t interrupting; /* signals for which siginterrupt was requested */

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

/* As in glibc: it reads the first word of the new mask itself, and copies the mask if it must remove its own
 * two signals. */
static long change_mask(int how, const sigset_t *set, sigset_t *old)
{
    static const uint64_t libcs = SIGNAL_BIT(32) | SIGNAL_BIT(33);
    const volatile uint64_t *words = (const volatile uint64_t *)(const void *)set;
    struct thread *t = agent_off || !session ? NULL : thread_self();
    uint64_t asked[sizeof(sigset_t) / sizeof(uint64_t)];
    if (!t)
        child_detach_copy();
    if (set && (asked[0] = words[0]) & libcs) {
        for (size_t i = 1; i < sizeof asked / sizeof asked[0]; i++)
            asked[i] = words[i];
        asked[0] &= ~libcs;
        set = (const sigset_t *)(const void *)asked;
    }
    uint64_t args[6] = {(uint64_t)how, (uint64_t)set, (uint64_t)old, 8};
    return t ? signals_mask_call(t, args) : sys4(SYS_rt_sigprocmask, how, set, old, 8);
}

EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    long ret = change_mask(how, set, old);
    return sys_failed(ret) ? fail((int)-ret) : 0;
}

EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
    return (int)-change_mask(how, set, old);
}

/* In a process that is not followed. If the alternate stack in the kernel is still the agent's, the one of
 * the thread that created the process is reported instead. */
static long untracked_altstack(const stack_t *new, stack_t *old)
{
    stack_t now;
    child_detach_copy();
    const struct thread *was =
        old && !sys_failed(sys2(SYS_sigaltstack, 0, &now)) ? thread_of_stack(now.ss_sp) : NULL;
    long ret = sys2(SYS_sigaltstack, new, old);
    if (ret == 0 && was)
        safe_copy(old, &was->signals.app_altstack, sizeof *old);
    return ret;
}

int interposed_sigaltstack(struct thread *t, uint64_t sp, const uint64_t *args, long *result)
{
    if (t)
        return signals_altstack_call(t, sp, args, result);
    *result = untracked_altstack((const stack_t *)args[0], (stack_t *)args[1]);
    return 1;
}

EXPORT int sigaltstack(const stack_t *restrict new, stack_t *restrict old)
{
    struct thread *t = agent_off || !session ? NULL : thread_self();
    uint64_t args[6] = {(uint64_t) new, (uint64_t)old};
    long ret;
    if (!interposed_sigaltstack(t, (uint64_t)__builtin_frame_address(0), args, &ret))
        ret = sys2(SYS_sigaltstack, new, old);
    return sys_failed(ret) ? fail((int)-ret) : 0;
}
