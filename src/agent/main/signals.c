/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - the dispatcher: every signal that reaches a followed thread comes here first.
 *
 * The kernel runs signal_entry on the thread's own signal stack with all signals blocked (signals/frame.h).
 * handle() finds out what the signal is: an event of the agent (trigger, single step, fault of a protected
 * page, end of a burst, diverted system call: burst-events.c and others), or the target's own (deliver.c).
 */
#include "agent/burst/burst.h"
#include "agent/clock/clock.h"
#include "agent/code/code.h"
#include "agent/divert/divert.h"
#include "agent/intercept/intercept.h"
#include "agent/interpose/interpose.h"
#include "agent/main/main-internal.h"
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/threads/threads.h"
#include "agent/translator/translator.h"
#include "agent/watch/watch.h"

#ifndef TRAP_PERF
#define TRAP_PERF 6 /* older libc does not name it */
#endif

/* The signal comes from the thread's timer, thread_trigger, or the collector's perf event. */
static int is_trigger(const siginfo_t *info)
{
    uint64_t data;
    memcpy(&data, (const char *)info + 24, sizeof data); /* si_perf_data, which libc does not name yet */
    return ((info->si_code == SI_TIMER || info->si_errno == THREAD_TRIGGERED) &&
            info->si_value.sival_ptr == session) ||
           (info->si_code == TRAP_PERF && data == WIRE_MAGIC);
}

/* If this is a fault of safe_copy or safe_probe, resumes after the access and returns nonzero. A signal that
 * somebody sent while they ran is none. */
static int recover(int sig, const siginfo_t *info, ucontext_t *uc)
{
    uint64_t resume;
    if ((sig != SIGSEGV && sig != SIGBUS) || info->si_code <= 0)
        return 0;
    /* A perf event's SIGTRAP that is pending while the agent's handler runs is delivered together with a
     * fault of safe_copy, although it is blocked (Linux, dequeue_synchronous_signal). The fault then seems
     * to have occurred at the first instruction of that SIGTRAP's handler, whose argument is the real
     * context. */
    ucontext_t *faulty = arch_pc(uc) == (uint64_t)signal_entry ? arch_entry_context(uc) : uc;
    if (safe_probe_recover(arch_pc(faulty), &resume)) {
        arch_set_pc(faulty, resume);
        return 1;
    }
    if (!safe_copy_recover(arch_pc(faulty), &resume))
        return 0;
    /* SIGBUS: memory beyond the end of a file is never protected, and to search for its page would fault
     * again, with SIGBUS blocked. */
    if (sig == SIGBUS || !watch_fault(NULL, (uint64_t)info->si_addr, arch_fault_writes(uc), NULL))
        arch_set_pc(faulty, resume);
    return 1;
}

/* A system call instruction of the program, in native execution, has changed the alternate stack: signals now
 * arrive on a stack of the program's, and the kernel kills it if a page there is protected. */
static void unprotect_signal_stack(struct thread *t, const ucontext_t *uc)
{
    uint64_t low = (uint64_t)uc->uc_stack.ss_sp;
    if (uc->uc_stack.ss_sp == t->signal_stack || in_handler(t, uc))
        return;
    if (uc->uc_stack.ss_flags & SS_DISABLE) /* anywhere below any stack pointer */
        watch_disable(t, WIRE_UNWATCHED_SIGNALS);
    else
        watch_never_protect(low, low + uc->uc_stack.ss_size);
}

/* A timer of the agent's must not make a system call of the target's return EINTR. A signal of the target's
 * that is pending has to: it may have come while the call waited. */
static void restart_interrupted_call(const struct thread *t, ucontext_t *uc)
{
    uint64_t pending = 0;
    if (!arch_after_eintr(uc))
        return;
    sys2(SYS_rt_sigpending, &pending, sizeof pending);
    if (!(pending & ~mask_of(uc) & ~SIGNAL_BIT(SIGTRAP)))
        arch_restart_call(uc, arch_at_gate(uc) ? (long)(int)t->generated.saved[4] : -1);
}

/* Whether a SIGTRAP is one of the agent's. It was handled then. */
static int trap(struct thread *t, siginfo_t *info, ucontext_t *uc)
{
    if (count_is_alarm(info)) {
        if (t && !in_handler(t, uc))
            count_alarm(t, uc);
        return 1;
    }
    if (is_trigger(info)) {
        if (!t || t->ending || in_handler(t, uc))
            return 1;
        if (info->si_code == SI_TIMER)
            restart_interrupted_call(t, uc);
        /* A trigger that was pending already has replaced the one that a return from a handler sent. */
        int returns = t->state == THREAD_STEPPING && t->translation.return_triggers;
        int asked = returns || (info->si_code != TRAP_PERF && info->si_errno == THREAD_TRIGGERED);
        if (!asked && !thread_is_due(t, info->si_code == TRAP_PERF, arch_pc(uc)))
            count_add(&proc->count.ticks, 1);
        else
            trigger(t, uc, asked);
        return 1;
    }
    if (arch_is_step(info, uc)) {
        stepped(t, uc);
        return 1;
    }
    return 0;
}

/* A signal of a fault arrives in a burst: nonzero if the target must not see it, or not yet. Otherwise the
 * burst has ended. */
static int fault_in_burst(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc)
{
    if (info->si_code <= 0 && !arch_at_gate(uc) &&
        (arch_in_cache(arch_pc(uc)) || region_is_agent(arch_pc(uc)))) {
        signals_hold(t, sig, info);
        return 1;
    }
    if (arch_in_cache(arch_pc(uc))) {
        if (!burst_fault(t, sig, info, uc))
            return 1;
        if (recover(sig, info, uc)) { /* in an interposed function */
            if (agent_always_translated() && !agent_off)
                thread_trigger(t);
            return 1;
        }
    } else if (arch_restore_gate(t, uc)) {
        burst_end(t, WIRE_END_SIGNAL, (uint32_t)sig, t->generated.cursor, UINT32_MAX);
    } else {
        /* The target jumped to where there is no code: its general registers are all its own already. */
        if (t->translation.counts)
            count_take(t, arch_count_remove(t, uc));
        set_mask_of(uc, t->generated.app_mask);
        burst_end(t, WIRE_END_FAULT, (uint32_t)sig, t->generated.cursor, UINT32_MAX);
    }
    return 0;
}

static uint64_t handle(int sig, siginfo_t *info, ucontext_t *uc, struct delivery *d)
{
    if (recover(sig, info, uc))
        return 0;
    /* The target has unmapped or protected memory of the agent: the fault is the target's to handle. */
    if ((sig == SIGSEGV || sig == SIGBUS) && info->si_code > 0 && watch_fault_in_lock())
        agent_disable(WIRE_OFF_TROUBLE);
    struct thread *t = thread_self();
    if (t)
        unprotect_signal_stack(t, uc);
    if (t && (sig == SIGSEGV || sig == SIGBUS) && info->si_code <= 0 && in_handler(t, uc)) {
        signals_hold(t, sig, info); /* sent by somebody, not a fault */
        return 0;
    }
    if (t && !in_handler(t, uc))
        watch_mark_quiescent(t, mask_of(uc));
    if (sig == SIGSYS && t && info->si_code == 2 /* SYS_USER_DISPATCH */) {
        calls_diverted(t, uc, info->si_arch != arch_audit_value());
        return 0;
    }
    if (sig == SIGSEGV && info->si_code > 0 &&
        ((t && calls_returned(t, uc)) ||
         (info->si_code == SEGV_ACCERR && watch_fault(t, (uint64_t)info->si_addr, arch_fault_writes(uc),
                                                      t && in_handler(t, uc) ? NULL : uc))))
        return 0;
    if (t)
        calls_interrupted(t, uc);
    if (!is_fault(sig)) {
        if (t && t->state == THREAD_BURST && arch_restore_gate(t, uc))
            burst_end(t, WIRE_END_SIGNAL, (uint32_t)sig, t->generated.cursor, UINT32_MAX);
        return deliver(t, sig, info, uc, d);
    }
    if (sig == SIGTRAP && trap(t, info, uc))
        return 0;
    if (t && t->state == THREAD_BURST) {
        if (fault_in_burst(t, sig, info, uc))
            return 0;
    } else if (t && t->state == THREAD_STEPPING) {
        abandon_step(t, uc, WIRE_END_FAULT, (uint32_t)sig);
    } else if (t && clear_pending_entry(t, uc)) {
        restore_trap_mask(t, uc);
    }
    if (t && info->si_code > 0)
        /* libc's part of an interposed call may have faulted, and the target's handler may jump out. */
        exec_undo(t);
    return deliver(t, sig, info, uc, d);
}

/* Sends the held signals again; they are delivered when this handler returns. */
static void resend_held_signals(const ucontext_t *uc)
{
    static const uint64_t faults = FAULT_SIGNALS;
    struct thread *t = signals_any_held() ? thread_self() : NULL;
    if (!t || !t->signals.held_signals || t->state != THREAD_NATIVE || in_handler(t, uc))
        return;
    sys4(SYS_rt_sigprocmask, SIG_BLOCK, &faults, 0, 8);
    signals_resend_held(t);
}

/* safe_copy may fault in the handler of a fault or trap. The mask of that handler leaves these signals out,
 * but the target may have blocked them itself, and the kernel kills for a fault whose signal is blocked. A
 * signal that somebody sent stays pending. */
static void unblock_memory_faults(int sig, const ucontext_t *uc)
{
    uint64_t pending = 0, faults = SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS);
    if (!is_fault(sig) || !(mask_of(uc) & faults))
        return;
    sys2(SYS_rt_sigpending, &pending, sizeof pending);
    faults &= ~pending;
    sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, 0, 8);
}

static uint64_t signal_c(int sig, siginfo_t *info, ucontext_t *uc, struct delivery *d)
{
    unblock_memory_faults(sig, uc);
    arch_finish_entry(uc);
    uint64_t handler = handle(sig, info, uc, d);
    resend_held_signals(uc);
    struct thread *t =
        agent_active && (agent_always_translated() || session->begins_full) ? thread_self() : NULL;
    if (!t || in_handler(t, uc))
        return handler;
    if (!agent_always_translated()) {
        /* Whatever the thread left the code cache for: it does not go back there at once. */
        if (t->burst.always_translated && t->state == THREAD_NATIVE && !agent_off)
            burst_plan_first(t);
        return handler;
    }
    if (t->burst.must_return && !handler)
        return_to_translated(t, uc);
    if (!handler)
        native_begins(t);
    return handler;
}

void signals_dispatch_init(void)
{
    signal_dispatcher = signal_c;
}
