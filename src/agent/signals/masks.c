/* SPDX-License-Identifier: Apache-2.0 */
/*
 * masks.c - the signal mask and the alternate stack that the target has requested, and is shown. The kernel's
 * differ: some signals are never blocked, and the alternate stack is the agent's.
 *
 * The functions called *_call take the arguments of a system call and return what the kernel would. That
 * includes EFAULT, which comes after the effect if it is the old value that cannot be written. They access
 * the target's memory with safe_copy only.
 */
#include <errno.h>
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"

/* The kernel refuses smaller stacks (MINSIGSTKSZ). It requires more than this only with strict_sas_size, or
 * if the process has AMX state. */
#define ALTSTACK_LEAST 2048u

/* Of a call, before it is given up. */
#define TRIES 1000u

int signals_again(long ret, unsigned *tries, const void *variable, size_t bytes)
{
    const volatile char *bytes_of = variable;
    if (ret != -EFAULT || !variable || (*tries)++ == TRIES)
        return 0;
    (void)bytes_of[0];
    (void)bytes_of[bytes - 1];
    return 1;
}

uint64_t signals_kernel_mask(void)
{
    uint64_t mask = 0;
    unsigned tries = 0;
    while (signals_again(sys4(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8), &tries, &mask, sizeof mask))
        ;
    return mask;
}

long signals_change_kernel_mask(int how, uint64_t set)
{
    unsigned tries = 0;
    long ret;
    do
        ret = sys4(SYS_rt_sigprocmask, how, &set, NULL, 8);
    while (signals_again(ret, &tries, &set, sizeof set));
    return ret;
}

/* SIGTRAP stays unblocked, since threads that block every signal (libraries' worker threads do) would never
 * be sampled; SIGSEGV, since the kernel kills for a fault of safe_copy otherwise; and SIGSYS if calls may be
 * diverted. The target is shown the mask that it requested. */
static uint64_t never_blocked(void)
{
    uint64_t ours = SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGSEGV);
    if (session->watch)
        ours |= SIGNAL_BIT(SIGSYS);
    return ours;
}

/*
 * A handler is interrupted by others, and each has hidden signals of its own. The agent does not see that a
 * handler ends, by a return or by a jump. What was noted for it is out of date if other signals that were
 * blocked at the same time no longer are; then the level below counts. Signals of faults prove nothing: the
 * agent unblocks them now and then. Returns the level that is not out of date where the kernel's mask is
 * `mask`; -1: all are.
 */
static int level_at(const struct thread *t, uint64_t mask)
{
    int level = (int)t->signals.level;
    while (level >= 0 && t->signals.masks[level].blocked_with & ~mask & ~FAULT_SIGNALS)
        level--;
    return level;
}

uint64_t signals_hidden(const struct thread *t, uint64_t mask)
{
    int level = level_at(t, mask);
    return level < 0 ? 0 : t->signals.masks[level].hidden;
}

/* The mask that sigprocmask would make of `before`. */
static uint64_t changed_mask(int how, uint64_t before, uint64_t mask)
{
    uint64_t after = how == SIG_BLOCK ? before | mask : how == SIG_UNBLOCK ? before & ~mask : mask;
    return after & ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
}

/* The part of a requested mask that is really set. */
static uint64_t effective_mask(int how, uint64_t mask)
{
    return how == SIG_UNBLOCK ? mask : mask & ~never_blocked();
}

static void note_at(struct thread *t, int level, uint64_t hidden, uint64_t blocked_with)
{
    if (level == HIDDEN_LEVELS) {
        level--;
        memmove(&t->signals.masks[0], &t->signals.masks[1], (size_t)level * sizeof t->signals.masks[0]);
    }
    t->signals.masks[level] = (struct hidden_signals){hidden, blocked_with};
    t->signals.level = (unsigned)level;
}

void signals_note_hidden(struct thread *t, uint64_t also, uint64_t before, uint64_t after)
{
    int level = level_at(t, before);
    note_at(t, level < 0 ? 0 : level, signals_hidden(t, before) | also, after);
}

uint64_t signals_hide_in_handler(struct thread *t, uint64_t hide, uint64_t before, uint64_t mask)
{
    uint64_t after = mask & ~hide;
    if (after & ~before & ~FAULT_SIGNALS) /* else nothing would show that the handler has ended */
        note_at(t, level_at(t, before) + 1, signals_hidden(t, before) | (mask & hide), after);
    return after;
}

/* Notes the rest once that is done. before: the previous kernel mask. */
static void note_mask(struct thread *t, int how, uint64_t mask, uint64_t before)
{
    int level = level_at(t, before);
    note_at(t, level < 0 ? 0 : level, changed_mask(how, signals_hidden(t, before), mask & never_blocked()),
            changed_mask(how, before, effective_mask(how, mask)));
}

void signals_adopt_mask(struct thread *t, uint64_t hidden)
{
    uint64_t ours = never_blocked(), before = 0, pending = 0;
    sys2(SYS_rt_sigpending, &pending, sizeof pending);
    ours &= ~pending;
    sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &ours, &before, 8);
    note_at(t, 0, (before | hidden) & ours, before & ~ours);
}

void signals_inherit_mask(struct thread *t, const struct thread *creator)
{
    uint64_t mask = 0;
    if (creator) {
        sys4(SYS_rt_sigprocmask, SIG_BLOCK, 0, &t->signals.mask_before, 8);
        mask = t->signals.mask_before;
    }
    note_at(t, 0, creator ? signals_hidden(creator, mask) : 0, mask);
}

static const uint64_t faults_of_copy = SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS);

/* Blocks all signals but those of faults and traps; the mask so far. */
static uint64_t block_others(struct thread *t)
{
    static const uint64_t others = ~FAULT_SIGNALS;
    uint64_t saved = t->signals.mask_before;
    sys4(SYS_rt_sigprocmask, SIG_SETMASK, &others, &t->signals.mask_before, 8);
    uint64_t before = t->signals.mask_before;
    t->signals.mask_before = saved;
    return before;
}

/* The mask so far. The kernel is not given pointers to the stack: the target may have allocated it itself,
 * and its pages may be protected. A handler that interrupts this function and calls it restores the word. */
static uint64_t open_faults(struct thread *t)
{
    uint64_t here = 0, *at = t ? &t->signals.mask_before : &here, saved = *at;
    sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults_of_copy, at, 8);
    uint64_t before = *at;
    *at = saved;
    return before;
}

static unsigned faults_in(uint64_t mask)
{
    return (mask & SIGNAL_BIT(SIGSEGV) ? 1u : 0) | (mask & SIGNAL_BIT(SIGBUS) ? 2u : 0);
}

unsigned signals_unblock_faults(struct thread *t)
{
    return faults_in(open_faults(t));
}

void signals_block_faults(unsigned which)
{
    static const uint64_t masks[] = {0, SIGNAL_BIT(SIGSEGV), SIGNAL_BIT(SIGBUS), faults_of_copy};
    if (which)
        sys4(SYS_rt_sigprocmask, SIG_BLOCK, &masks[which], NULL, 8);
}

/* The checks that the kernel makes first. 0, or a negative error. */
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

static long write_mask(const uint64_t *args, uint64_t mask)
{
    return args[2] && safe_copy((void *)args[2], &mask, sizeof mask) ? -EFAULT : 0;
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
    /* A context that was saved where the agent did not see it has the kernel's mask, without what is hidden.
     */
    if (hides && how == SIG_SETMASK && set == before)
        set |= signals_hidden(t, before);
    /* What is really blocked, as in the target's handler of such a signal, stays so: contexts that it saved
     * there say the same, and may be restored where the agent does not see it. */
    uint64_t effective = effective_mask(how, set) | (how == SIG_SETMASK ? before & set : 0);
    *mask = changed_mask(how, before, hides ? effective : set);
    if (hides)
        note_mask(t, how, set, before);
    return ret;
}

long signals_mask_call(struct thread *t, const uint64_t *args)
{
    uint64_t set = 0, asked = t->signals.mask_asked;
    int how = (int)args[0];
    if (!args[1]) {
        uint64_t before = open_faults(t);
        long ret = read_mask(args, &set);
        ret = ret ? ret : write_mask(args, before | signals_hidden(t, before));
        signals_block_faults(faults_in(before));
        return ret;
    }
    /* No handler may interrupt this while what is noted and what the kernel has differ. */
    uint64_t before = block_others(t), after = before;
    long ret = read_mask(args, &set);
    if (!ret) {
        ret = write_mask(args, before | signals_hidden(t, before));
        note_mask(t, how, set, before);
        after = changed_mask(how, before, effective_mask(how, set));
    }
    t->signals.mask_asked = after;
    sys4(SYS_rt_sigprocmask, SIG_SETMASK, &t->signals.mask_asked, NULL, 8);
    t->signals.mask_asked = asked;
    return ret;
}

int altstack_autodisarms(const stack_t *s)
{
    return ((unsigned)s->ss_flags & (ALTSTACK_AUTODISARM | SS_DISABLE)) == ALTSTACK_AUTODISARM;
}

/* sigaltstack on a thread whose alternate stack in the kernel is the agent's. */
static long change_altstack(struct thread *t, const stack_t *new, stack_t *before, uint64_t sp)
{
    int keeps = (int)((unsigned)t->signals.app_altstack.ss_flags & ALTSTACK_AUTODISARM);
    int disarms = altstack_autodisarms(&t->signals.app_altstack);
    int disarmed = disarms && t->signals.altstack_now.ss_size != t->signals.kernel_altstack[1].ss_size;
    int disabled = disarmed || (t->signals.app_altstack.ss_flags & SS_DISABLE) != 0;
    uint64_t low = (uint64_t)t->signals.app_altstack.ss_sp;
    int inside = !disabled && !disarms && sp > low && sp - low <= t->signals.app_altstack.ss_size;
    memset(before, 0, sizeof *before); /* including the padding */
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
        /* The target has set a stack by a system call instruction. The agent's is installed again, unless the
         * target's is in use. */
        if (t->signals.altstack_now.ss_flags & SS_ONSTACK ||
            sys_failed(sys2(SYS_sigaltstack, &t->signals.kernel_altstack[1], 0)))
            return 0;
        t->signals.app_altstack = t->signals.altstack_now;
        t->signals.altstack_now = t->signals.kernel_altstack[1];
    }
    unsigned blocked = signals_unblock_faults(t);
    if (args[0] && safe_copy(&new, (const void *)args[0], sizeof new))
        ret = -EFAULT;
    else
        ret = change_altstack(t, args[0] ? &new : NULL, &before, sp);
    if (!ret && args[1] && safe_copy((void *)args[1], &before, sizeof before))
        ret = -EFAULT;
    signals_block_faults(blocked);
    *result = ret;
    return 1;
}
