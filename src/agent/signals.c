/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - every signal that reaches the target goes through here first.
 *
 * The kernel runs signal_entry on the thread's own signal stack with all signals blocked. If the
 * signal is the target's, the frame moves to where the target would have had it (its stack, or its
 * alternate stack), the mask becomes what it would have been, and the target's handler is jumped to
 * as if the kernel had called it: it may look at the context, change it, return, or jump out.
 *
 * For that the agent keeps the target's dispositions. SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and SIGSYS
 * are always the agent's in the kernel; of the others only those for which the target has a handler.
 */
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include "agent/agent.h"
#include "agent/sys.h"

#define SA_RESTORER_FLAG 0x04000000ul
#define LAST_SIGNAL 64

struct kernel_sigaction {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

/* Where a handler of the target is to be started. signal_entry knows the offsets. */
struct delivery {
    long sig;
    siginfo_t *info;
    ucontext_t *uc;
    uint64_t sp;   /* as at its first instruction */
    uint64_t mask; /* while it runs */
};

_Static_assert(sizeof(struct delivery) == 40, "signal_entry makes room for it");

static struct kernel_sigaction target[LAST_SIGNAL + 1];
static int handed_back; /* the kernel has the target's own again */

extern const char signal_entry[] HIDDEN, signal_restorer[] HIDDEN; /* arch */
HIDDEN uint64_t signal_c(int sig, siginfo_t *info, ucontext_t *uc, struct delivery *d);

static long kernel_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    return sys4(SYS_rt_sigaction, sig, new, old, 8);
}

static int is_fault(int sig)
{
    return (FAULT_SIGNALS & SIGNAL_BIT(sig)) != 0;
}

static uint64_t mask_of(const ucontext_t *uc)
{
    uint64_t mask;
    memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    return mask;
}

static void set_mask_of(ucontext_t *uc, uint64_t mask)
{
    memcpy(&uc->uc_sigmask, &mask, sizeof mask);
}

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
        k.mask = ~SIGNAL_BIT(SIGSEGV); /* safe_copy may fault in the handler, */
    if (sig == SIGSEGV)
        k.flags |= SA_NODEFER; /* also in that of a fault */
    return kernel_action(sig, &k, NULL);
}

int signals_init(void)
{
    for (int sig = 1; sig <= LAST_SIGNAL; sig++)
        if (is_fault(sig)) {
            kernel_action(sig, NULL, &target[sig]);
            if (sys_failed(take_over(sig, SA_RESTART)))
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

/* What was noted is out of date if others that were blocked along with them are not any more: a jump out of a
 * handler or a return from one has put back an older mask behind libc's back. */
uint64_t signals_hidden(const struct thread *t, uint64_t mask)
{
    return t->hidden_beside & ~mask ? 0 : t->hidden;
}

void signals_hand_back(struct thread *t)
{
    if (handed_back)
        return;
    handed_back = 1;
    for (int sig = 1; sig <= LAST_SIGNAL; sig++) {
        struct kernel_sigaction k;
        if (!sys_failed(kernel_action(sig, NULL, &k)) && k.handler == (void *)(uintptr_t)signal_entry)
            kernel_action(sig, &target[sig], NULL);
    }
    if (!t)
        return;
    stack_t none = {.ss_flags = SS_DISABLE};
    sys2(SYS_sigaltstack, t->app_altstack.ss_flags & SS_DISABLE ? &none : &t->app_altstack, 0);
    sys4(SYS_rt_sigprocmask, SIG_BLOCK, &t->hidden, 0, 8);
}

/* Has the kernel do what it does by default, once this handler returns. */
static void default_action(int sig, int again)
{
    struct kernel_sigaction k = {NULL, SA_RESTORER_FLAG, (void *)(uintptr_t)signal_restorer, 0};
    kernel_action(sig, &k, NULL);
    if (again)
        sys3(SYS_tgkill, sys0(SYS_getpid), sys0(SYS_gettid), sig);
}

static uint64_t deliver(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc, struct delivery *d)
{
    struct kernel_sigaction act = target[sig];
    int raised_by_kernel = info->si_code > 0;
    if (raised_by_kernel && is_fault(sig) && t && signals_hidden(t, mask_of(uc)) & SIGNAL_BIT(sig))
        act.handler = (void *)SIG_DFL; /* one that is blocked kills */
    if (act.handler == (void *)SIG_IGN && !raised_by_kernel)
        return 0;
    if (act.handler == (void *)SIG_DFL || act.handler == (void *)SIG_IGN) {
        /* A fault comes again at the same place; a trap and a sent signal do not. */
        default_action(sig, !raised_by_kernel || sig == SIGTRAP || sig == SIGSYS);
        return 0;
    }
    if (is_fault(sig) && act.flags & (unsigned)SA_RESETHAND)
        target[sig].handler = (void *)SIG_DFL;
    d->mask = mask_of(uc) | act.mask;
    d->sp = (uint64_t)uc - 8;
    if (t) {
        uint64_t sp = arch_sp(uc), low = (uint64_t)t->app_altstack.ss_sp, size = t->app_altstack.ss_size;
        if (act.flags & SA_ONSTACK && !(t->app_altstack.ss_flags & SS_DISABLE) &&
            !(sp > low && sp <= low + size))
            sp = low + size;
        /* Handlers of asynchronous signals run with SIGSEGV blocked, where a fault of safe_copy would kill.
         */
        watch_avoid(sp - FRAME_MOST_BYTES, sp);
        d->sp = arch_move_frame(&uc, &info, sp);
        if (!d->sp) { /* no room for the frame: what the kernel does then */
            sig = SIGSEGV;
            default_action(sig, 1);
            set_mask_of(uc, mask_of(uc) & ~SIGNAL_BIT(SIGSEGV));
            return 0;
        }
    }
    d->sig = sig;
    d->info = info;
    d->uc = uc;
    if (!(act.flags & SA_NODEFER))
        d->mask |= SIGNAL_BIT(sig);
    if (t) {
        d->mask &= ~SIGNAL_BIT(SIGTRAP);
        if (d->mask & (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS)) && watch_closed())
            watch_drop(t); /* with those blocked, a closed page would kill */
        if (agent_stays() && !agent_off)
            thread_trigger(t); /* the handler is recorded, too */
    }
    return (uint64_t)act.handler;
}

/* A step that will not come to its end: native from here on. */
static void abandon_step(struct thread *t, ucontext_t *uc, enum wire_end end, uint32_t detail)
{
    arch_set_step(uc, 0);
    if (t->step_trap_blocked)
        set_mask_of(uc, mask_of(uc) | SIGNAL_BIT(SIGTRAP));
    t->step_trap_blocked = 0;
    burst_end(t, end, detail, t->cursor, UINT32_MAX);
}

static void trigger(struct thread *t, ucontext_t *uc)
{
    count_add(&proc->count.triggers, 1);
    if (t->mini) {
        t->trigger_waits = 1;
        return;
    }
    if (t->state == THREAD_BURST && (arch_in_cache(arch_pc(uc)) || region_is_agent(arch_pc(uc)))) {
        thread_arm(t);
        return;
    }
    if (t->state == THREAD_STEPPING)
        abandon_step(t, uc, WIRE_END_SIGNAL, 0);
    else if (t->state == THREAD_BURST) /* jumped out of a handler that was run in a burst */
        burst_end(t, WIRE_END_SIGNAL, 0, t->cursor, UINT32_MAX);
    t->enter_after_step = 0;
    if (!agent_off && burst_must_wait(uc)) {
        /* Its handler runs first, then one instruction, then we are here again; unless the handler jumps
         * out: the timer is for that. */
        t->enter_after_step = 1;
        arch_set_step(uc, 1);
        thread_arm(t);
        return;
    }
    if (!burst_enter(t, uc))
        thread_arm(t);
}

/* The instruction before was run with the trap flag set. */
static void stepped(struct thread *t, ucontext_t *uc)
{
    arch_set_step(uc, 0);
    if (t && t->state == THREAD_STEPPING) {
        burst_reenter(t, uc);
    } else if (t && t->state == THREAD_NATIVE && t->enter_after_step) {
        t->enter_after_step = 0;
        burst_enter(t, uc);
    } /* else: a child made by the step, or a step that was given up */
}

/* A fault at an instruction in the code cache. Returns nonzero if it is the target's own. */
static int burst_fault(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc)
{
    uint64_t *record = t->cursor, *end = t->cursor;
    switch (arch_fault(t, uc, sig, (uint64_t)info->si_addr, &record, &end)) {
    case FAULT_LEAVE:
        burst_leave(t, uc);
        return 0;
    case FAULT_FULL:
        if (t->count.on) {
            count_stop(t, uc);
            return 0;
        }
        if (session->mode == WIRE_MODE_FULL && !session->stop) {
            uint64_t pending = 0;
            sys2(SYS_rt_sigpending, &pending, sizeof pending);
            size_t words = (size_t)(end - record);
            uint64_t partial[BLOCK_WORDS + 8];
            memcpy(partial, record, words * sizeof *partial);
            if (burst_next_buffer(t, record) == 0) {
                memcpy(t->buffer_start, partial, words * sizeof *partial);
                arch_moved_buffer(t, uc, t->buffer_start);
                if (!(pending & ~t->app_mask & ~FAULT_SIGNALS))
                    return 0;
                /* Let the waiting signal in, then come back. */
                uint32_t insns = arch_restore(t, uc);
                set_mask_of(uc, t->app_mask);
                burst_end(t, WIRE_END_SIGNAL, 0, t->buffer_start + words, words ? insns : 0);
                return 0;
            }
            arch_restore(t, uc);
            set_mask_of(uc, t->app_mask);
            agent_disable(WIRE_OFF_COLLECTOR);
            burst_end(t, WIRE_END_EXIT, 0, t->cursor, 0);
            return 0;
        }
        {
            uint32_t insns = arch_restore(t, uc);
            set_mask_of(uc, t->app_mask);
            burst_end(t, WIRE_END_FULL, 0, end, insns);
        }
        return 0;
    case FAULT_CODE: /* natively it faults by itself */
        arch_restore(t, uc);
        set_mask_of(uc, t->app_mask);
        burst_end(t, WIRE_END_CODE, 0, record, UINT32_MAX);
        return 0;
    case FAULT_TARGET: {
        uint64_t at = arch_pc(uc);
        uint32_t insns = arch_restore(t, uc);
        if (!t->count.on) /* counting writes no records */
            insns += (uint32_t)arch_record_partial(uc, record, insns);
        set_mask_of(uc, t->app_mask);
        if ((uint64_t)info->si_addr == at) /* SIGFPE and SIGILL tell the instruction */
            info->si_addr = (void *)arch_pc(uc);
        /* All words of the unfinished record that its executed instructions refer to are there. */
        if (!t->count.on && end > t->buffer_end)
            end = t->buffer_end;
        burst_end(t, WIRE_END_FAULT, (uint32_t)sig, end, insns);
        return 1;
    }
    default:
        agent_disable(WIRE_OFF_TROUBLE);
        return 1;
    }
}

static int in_handler(const struct thread *t, const ucontext_t *uc)
{
    return arch_sp(uc) - (uint64_t)t->signal_stack <= SIGNAL_STACK_BYTES;
}

/* The thread's timer, or the collector's perf event. */
static int is_trigger(const siginfo_t *info)
{
    uint64_t data;
    memcpy(&data, (const char *)info + 24, sizeof data); /* si_perf_data, which libc does not name yet */
    return (info->si_code == SI_TIMER && info->si_value.sival_ptr == session) ||
           (info->si_code == 6 /* TRAP_PERF */ && data == WIRE_MAGIC);
}

uint64_t signal_c(int sig, siginfo_t *info, ucontext_t *uc, struct delivery *d)
{
    uint64_t resume;
    if (sig == SIGSEGV || sig == SIGBUS) {
        /* A perf event's SIGTRAP that waits while our handler runs comes in together with a fault of
         * safe_copy, though it is blocked (Linux' dequeue_synchronous_signal), and is what the fault
         * then seems to have happened in. */
        ucontext_t *faulty = arch_pc(uc) == (uint64_t)signal_entry ? arch_entry_context(uc) : uc;
        if (safe_copy_recover(arch_pc(faulty), &resume)) {
            if (!watch_fault(NULL, (uint64_t)info->si_addr, NULL))
                arch_set_pc(faulty, resume);
            return 0;
        }
    }
    struct thread *t = thread_self();
    if (sig == SIGSYS && t && info->si_code == 2 /* SYS_USER_DISPATCH */) {
        calls_diverted(t, uc, info->si_arch != arch_audit());
        return 0;
    }
    if (sig == SIGSEGV && ((t && calls_back(t, uc)) ||
                           (info->si_code == SEGV_ACCERR &&
                            watch_fault(t, (uint64_t)info->si_addr, t && in_handler(t, uc) ? NULL : uc))))
        return 0;
    if (t)
        calls_interrupted(t, uc);
    if (!is_fault(sig)) {
        if (t && t->state == THREAD_BURST && arch_restore_gate(t, uc))
            burst_end(t, WIRE_END_SIGNAL, (uint32_t)sig, t->cursor, UINT32_MAX);
        return deliver(t, sig, info, uc, d);
    }
    if (sig == SIGTRAP && count_is_alarm(info)) {
        if (t && !in_handler(t, uc))
            count_alarm(t, uc);
        return 0;
    }
    if (sig == SIGTRAP && is_trigger(info)) {
        if (t && !t->ending && !in_handler(t, uc))
            trigger(t, uc);
        return 0;
    }
    if (sig == SIGTRAP && info->si_code == TRAP_TRACE) {
        stepped(t, uc);
        return 0;
    }
    if (t && t->state == THREAD_BURST) {
        if (arch_in_cache(arch_pc(uc))) {
            if (!burst_fault(t, sig, info, uc))
                return 0;
        } else if (arch_restore_gate(t, uc)) {
            burst_end(t, WIRE_END_SIGNAL, (uint32_t)sig, t->cursor, UINT32_MAX);
        } else {
            /* The target jumped to where there is no code: all its general registers are its own already. */
            if (t->count.on)
                count_take(t, arch_count_out(t, uc));
            set_mask_of(uc, t->app_mask);
            burst_end(t, WIRE_END_FAULT, (uint32_t)sig, t->cursor, UINT32_MAX);
        }
    } else if (t && t->state == THREAD_STEPPING) {
        abandon_step(t, uc, WIRE_END_FAULT, (uint32_t)sig);
    }
    return deliver(t, sig, info, uc, d);
}

/* --- what the target calls --- */

static int fail(int code)
{
    errno = code;
    return -1;
}

static int change_action_open(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    if (sig < 1 || sig > LAST_SIGNAL || sig == 32 || sig == 33)
        return fail(EINVAL);
    struct kernel_sigaction now = {NULL, 0, NULL, 0};
    long ret = kernel_action(sig, NULL, &now);
    if (sys_failed(ret))
        return fail((int)-ret);
    if (!handed_back && (is_fault(sig) || now.handler == (void *)(uintptr_t)signal_entry))
        now = target[sig];
    if (new) {
        int handled = new->handler != (void *)SIG_DFL &&new->handler != (void *)SIG_IGN;
        if (handed_back) {
            ret = kernel_action(sig, new, NULL);
        } else if (is_fault(sig)) {
            target[sig] = *new;
        } else if (handled) {
            target[sig] = *new;
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

/* With all pages open, since the kernel's copies are on the stack. */
static int change_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    struct thread *t = agent_off || !session || !session->watch ? NULL : thread_self();
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

EXPORT handler_function signal(int sig, handler_function handler)
{
    return simple(sig, handler, SA_RESTART, sig >= 1 && sig <= LAST_SIGNAL ? SIGNAL_BIT(sig) : 0);
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
        long ret = sys2(SYS_sigaltstack, new, old);
        return sys_failed(ret) ? fail((int)-ret) : 0;
    }
    uint64_t sp = (uint64_t)__builtin_frame_address(0), low = (uint64_t)t->app_altstack.ss_sp;
    int disabled = (t->app_altstack.ss_flags & SS_DISABLE) != 0;
    int inside = !disabled && sp > low && sp <= low + t->app_altstack.ss_size;
    stack_t before = t->app_altstack;
    before.ss_flags = disabled ? SS_DISABLE : inside ? SS_ONSTACK : 0;
    if (new) {
        int mode = new->ss_flags & ~(int)(1u << 31); /* SS_AUTODISARM */
        unsigned long least = getauxval(51 /* AT_MINSIGSTKSZ */);
        if (inside)
            return fail(EPERM);
        if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE)
            return fail(EINVAL);
        if (mode == SS_DISABLE)
            t->app_altstack = (stack_t){.ss_flags = SS_DISABLE};
        else if (new->ss_size < (least ? least : 2048))
            return fail(ENOMEM);
        else
            t->app_altstack = (stack_t){.ss_sp = new->ss_sp, .ss_size = new->ss_size};
    }
    if (old)
        *old = before;
    return 0;
}
