/* SPDX-License-Identifier: Apache-2.0 */
/*
 * masks.c - the signal mask and the alternate stack that the target has asked for. It is told what it asked
 * for; what the kernel has differs: some signals are never blocked, and the alternate stack is ours.
 *
 * The functions called *_call take the arguments of a system call, and return what the kernel would: also
 * EFAULT, which comes after the effect where it is the old value that cannot be written back. They read and
 * write memory of the target's with safe_copy only.
 */
#include <errno.h>
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"

/* Smaller ones the kernel refuses; larger ones than this only a kernel with strict_sas_size, or one that has
 * given the process AMX state. */
#define ALTSTACK_LEAST 2048u

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

/* What was noted is out of date if others that were blocked along with them are not any more: a jump out of a
 * handler or a return from one has put back an older mask behind libc's back. */
uint64_t signals_hidden(const struct thread *t, uint64_t mask)
{
    return t->signals.blocked_with_hidden & ~mask ? 0 : t->signals.hidden;
}

uint64_t signals_changed_mask(int how, uint64_t before, uint64_t mask)
{
    uint64_t after = how == SIG_BLOCK ? before | mask : how == SIG_UNBLOCK ? before & ~mask : mask;
    return after & ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
}

uint64_t signals_effective(int how, uint64_t mask)
{
    return how == SIG_UNBLOCK ? mask : mask & ~never_blocked();
}

void signals_note_mask(struct thread *t, int how, uint64_t mask, uint64_t before)
{
    t->signals.hidden = signals_changed_mask(how, signals_hidden(t, before), mask & never_blocked());
    t->signals.blocked_with_hidden = signals_changed_mask(how, before, signals_effective(how, mask));
}

/* What the kernel checks first. 0, or a negative error. */
static long read_mask(const uint64_t *args, uint64_t *set)
{
    if (args[3] != sizeof *set)
        return -EINVAL;
    if (!args[1])
        return 0;
    if (safe_copy(set, (const void *)args[1], sizeof *set))
        return -EFAULT;
    return (uint32_t)args[0] > SIG_SETMASK ? -EINVAL : 0;
}

static long write_mask(const uint64_t *args, uint64_t told)
{
    return args[2] && safe_copy((void *)args[2], &told, sizeof told) ? -EFAULT : 0;
}

long signals_mask_in(struct thread *t, uint64_t *mask, int hides, const uint64_t *args)
{
    uint64_t set = 0, before = *mask;
    int how = (int)args[0];
    long ret = read_mask(args, &set);
    if (ret)
        return ret;
    ret = write_mask(args, before | (hides ? signals_hidden(t, before) : 0));
    if (!args[1])
        return ret;
    *mask = signals_changed_mask(how, before, hides ? signals_effective(how, set) : set);
    if (hides)
        signals_note_mask(t, how, set, before);
    return ret;
}

long signals_mask_call(struct thread *t, const uint64_t *args)
{
    uint64_t set = 0;
    int how = (int)args[0];
    long ret = read_mask(args, &set);
    if (ret)
        return ret;
    /* The stack may be one that the target made, whose pages may be closed to the kernel. A handler that
     * interrupts this function, and calls it, finds and leaves both words as they are. */
    uint64_t asked = t->signals.mask_asked, before_saved = t->signals.mask_before;
    ret = sys4(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &t->signals.mask_before, 8);
    uint64_t before = t->signals.mask_before;
    t->signals.mask_before = before_saved;
    if (ret)
        return ret;
    /* The old mask is written and all is noted before a signal can come in, whose handler may jump out. */
    ret = write_mask(args, before | signals_hidden(t, before));
    if (args[1]) {
        signals_note_mask(t, how, set, before);
        t->signals.mask_asked = signals_effective(how, set);
        sys4(SYS_rt_sigprocmask, how, &t->signals.mask_asked, NULL, 8);
        t->signals.mask_asked = asked;
    }
    return ret;
}

int altstack_autodisarms(const stack_t *s)
{
    return ((unsigned)s->ss_flags & (ALTSTACK_AUTODISARM | SS_DISABLE)) == ALTSTACK_AUTODISARM;
}

/* As sigaltstack does it, on a thread whose alternate stack in the kernel is ours. */
static long change_altstack(struct thread *t, const stack_t *new, stack_t *before, uint64_t sp)
{
    int keeps = (int)((unsigned)t->signals.app_altstack.ss_flags & ALTSTACK_AUTODISARM);
    int disarms = altstack_autodisarms(&t->signals.app_altstack);
    int disarmed = disarms && t->signals.altstack_now.ss_size != t->signals.kernel_altstack[1].ss_size;
    int disabled = disarmed || (t->signals.app_altstack.ss_flags & SS_DISABLE) != 0;
    uint64_t low = (uint64_t)t->signals.app_altstack.ss_sp;
    int inside = !disabled && !disarms && sp > low && sp - low <= t->signals.app_altstack.ss_size;
    memset(before, 0, sizeof *before); /* with its padding */
    if (!disarmed) {
        before->ss_sp = t->signals.app_altstack.ss_sp;
        before->ss_size = t->signals.app_altstack.ss_size;
    }
    before->ss_flags = (disabled ? SS_DISABLE : inside ? SS_ONSTACK : 0) | (disarmed ? 0 : keeps);
    if (!new)
        return 0;
    int mode = new->ss_flags & ~(int)ALTSTACK_AUTODISARM;
    keeps = (int)((unsigned)new->ss_flags &ALTSTACK_AUTODISARM);
    if (inside)
        return -EPERM;
    if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE)
        return -EINVAL;
    if (mode == SS_DISABLE)
        t->signals.app_altstack = (stack_t){.ss_flags = SS_DISABLE | keeps};
    else if (new->ss_size < ALTSTACK_LEAST)
        return -ENOMEM;
    else
        t->signals.app_altstack = (stack_t){.ss_sp = new->ss_sp, .ss_size = new->ss_size, .ss_flags = keeps};
    if (disarmed)
        sys2(SYS_sigaltstack, &t->signals.kernel_altstack[1], 0);
    return 0;
}

int signals_altstack_call(struct thread *t, uint64_t sp, const uint64_t *args, long *result)
{
    stack_t new, before;
    long ret = sys2(SYS_sigaltstack, 0, &t->signals.altstack_now);
    if (sys_failed(ret))
        return 0;
    if (t->signals.altstack_now.ss_sp != t->signal_stack) {
        /* The target has set one by a system call instruction. Ours comes back, but not while that is in use.
         */
        if (t->signals.altstack_now.ss_flags & SS_ONSTACK ||
            sys_failed(sys2(SYS_sigaltstack, &t->signals.kernel_altstack[1], 0)))
            return 0;
        t->signals.app_altstack = t->signals.altstack_now;
        t->signals.altstack_now = t->signals.kernel_altstack[1];
    }
    if (args[0] && safe_copy(&new, (const void *)args[0], sizeof new)) {
        *result = -EFAULT;
        return 1;
    }
    ret = change_altstack(t, args[0] ? &new : NULL, &before, sp);
    if (!ret && args[1] && safe_copy((void *)args[1], &before, sizeof before))
        ret = -EFAULT;
    *result = ret;
    return 1;
}
