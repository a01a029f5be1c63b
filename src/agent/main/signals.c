/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - the dispatcher: every signal that reaches a followed thread comes here first.
 *
 * The kernel runs signal_entry on the thread's own signal stack with all signals blocked (signals/frame.h).
 * handle() finds out what the signal is: an event of the agent (trigger, single step, fault of a protected
 * page, end of a burst, diverted system call), or the target's own. A signal of the target is delivered by
 * moving its frame to where the target would have had it (its stack or its alternate stack), setting the mask
 * that the target would have had, and jumping to its handler as if the kernel had called it. The handler may
 * read and change the context, return, or jump out.
 *
 * What the target has requested for its signals is kept in signals/dispositions.c.
 */
#include <string.h>
#include "agent/burst/burst.h"
#include "agent/clock/clock.h"
#include "agent/code/code.h"
#include "agent/divert/divert.h"
#include "agent/intercept/intercept.h"
#include "agent/interpose/interpose.h"
#include "agent/main/main.h"
#include "agent/signals/signals.h"
#include "agent/sys/context.h"
#include "agent/sys/process.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/translator/translator.h"
#include "agent/watch/watch.h"

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
 * that a return from the handler restores. */
static uint64_t mask_in_force(int sig, ucontext_t *uc)
{
    static const uint64_t faults = SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS);
    uint64_t mask, ours, before = mask_of(uc);
    if (is_fault(sig) || !arch_after_eintr(uc))
        return before;
    sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, &ours, 8); /* the mask may lie in a protected page */
    int waiting = arch_waiting_mask(uc, &mask);
    sys4(SYS_rt_sigprocmask, SIG_SETMASK, &ours, NULL, 8);
    return waiting && !(mask & SIGNAL_BIT(sig)) ? mask : before;
}

/* Where the frame of a followed thread is to be moved. */
static uint64_t followed_stack(const struct thread *t, uint64_t flags, const ucontext_t *uc,
                               struct delivery *d)
{
    if (!altstack_autodisarms(&t->signals.app_altstack))
        return handler_stack(&t->signals.app_altstack, flags, arch_sp(uc));
    if (uc->uc_stack.ss_size != t->signals.kernel_altstack[1].ss_size)
        return arch_sp(uc);
    d->altstack = &t->signals.kernel_altstack[0];
    return handler_stack(&t->signals.app_altstack, flags, arch_sp(uc));
}

static uint64_t deliver(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc, struct delivery *d)
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
    d->mask = mask_in_force(sig, uc) | act.mask;
    d->sp = (uint64_t)uc - 8;
    d->altstack = NULL;
    /* If a system call instruction has set another alternate stack than the agent's, the kernel has put the
     * frame where the target would have it. */
    int is_ours = t && uc->uc_stack.ss_sp == t->signal_stack;
    uint64_t sp = is_ours ? followed_stack(t, act.flags, uc, d) : untracked_stack(uc, act.flags);
    if (sp) {
        /* Handlers of asynchronous signals run with SIGSEGV blocked, where a fault of safe_copy would kill:
         * the pages of the frame must be accessible. */
        if (t)
            watch_never_protect(sp - FRAME_MOST_BYTES, sp);
        d->sp = arch_move_frame(&uc, &info, sp);
        /* No room for the frame, or no restorer to return through: the kernel sends SIGSEGV then. */
        if (!d->sp || !(act.flags & SA_RESTORER_FLAG)) {
            sig = SIGSEGV;
            default_action(sig, 1);
            set_mask_of(uc, mask_of(uc) & ~SIGNAL_BIT(SIGSEGV));
            return 0;
        }
        /* Installed by the target with its own system call. */
        if (act.restorer != (void *)(uintptr_t)signal_restorer)
            safe_copy((void *)d->sp, &act.restorer, sizeof act.restorer);
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

/* Blocks SIGTRAP again in the target's mask, if a step has unblocked it. */
static void restore_trap_mask(struct thread *t, ucontext_t *uc)
{
    if (t->burst.step_trap_blocked)
        set_mask_of(uc, mask_of(uc) | SIGNAL_BIT(SIGTRAP));
    t->burst.step_trap_blocked = 0;
}

/* Gives up a step that cannot complete; the thread is native from here on. */
static void abandon_step(struct thread *t, ucontext_t *uc, enum wire_end end, uint32_t detail)
{
    arch_set_step(uc, 0);
    burst_step_resolved(t, uc);
    restore_trap_mask(t, uc);
    burst_end(t, end, detail, t->generated.cursor, UINT32_MAX);
}

/* The SIGSYS of a diverted call is pending as well. Its handler needs the context as it is. */
static int diverted_call_pending(const struct thread *t)
{
    uint64_t pending = 0;
    if (!t->divert.was_on)
        return 0;
    sys2(SYS_rt_sigpending, &pending, sizeof pending);
    return (pending & SIGNAL_BIT(SIGSYS)) != 0;
}

/* Nonzero if the thread was to enter a burst after a step (enter_after_next). That is no longer planned when
 * this returns. */
static int clear_pending_entry(struct thread *t)
{
    if (!t->burst.enter_after_step)
        return 0;
    t->burst.enter_after_step = 0;
    burst_step_end();
    return 1;
}

/* Runs the next instruction natively under the trap flag, after the handler of a pending signal if there is
 * one; the burst is entered at the trap. 0: not possible now. If the handler jumps out, the trap never comes:
 * the timer is armed for that case, unless threads always stay in translated code, for then the handler is
 * recorded anyway. */
static int enter_after_next(struct thread *t, ucontext_t *uc)
{
    if (arch_step_would_kill(uc) || !burst_step_begin())
        return 0;
    t->burst.enter_after_step = 1;
    t->burst.step_trap_blocked |= (mask_of(uc) & SIGNAL_BIT(SIGTRAP)) != 0;
    set_mask_of(uc, mask_of(uc) & ~SIGNAL_BIT(SIGTRAP)); /* a blocked trap would kill */
    arch_set_step(uc, 1);
    if (!agent_always_translated())
        thread_arm(t);
    return 1;
}

static void mark_must_return(struct thread *t)
{
    t->burst.must_return = 1;
    t->burst.left_because = WIRE_END_SIGNAL;
}

/* The recording has changed from full mode to bursts, and this thread is native. A trigger from before, or a
 * step that was to lead back, begins no burst: those begin at random moments. */
static void plan_first_burst(struct thread *t, ucontext_t *uc)
{
    arch_set_step(uc, 0);
    restore_trap_mask(t, uc);
    if (t->burst.always_translated)
        burst_plan_first(t);
}

/* asked: by thread_trigger, not by the event or timer. */
static void trigger(struct thread *t, ucontext_t *uc, int asked)
{
    int full_mode_ended = session->begins_full && !agent_always_translated() &&
                          (asked || t->burst.always_translated); /* since the trigger was requested */
    count_add(&proc->count.triggers, 1);
    if (t->burst.is_probe) {
        /* The burst comes later: the time of a probe burst is not the program's. */
        t->burst.trigger_pending = 1;
        return;
    }
    if (t->state == THREAD_NATIVE &&
        (watch_fault_just_ended(t) || (!asked && !agent_always_translated() && arch_after_call(uc)))) {
        thread_skip_planned(t);
        return;
    }
    if (t->state == THREAD_BURST && (arch_in_cache(arch_pc(uc)) || region_is_agent(arch_pc(uc)))) {
        thread_arm(t);
        return;
    }
    if (t->state == THREAD_STEPPING)
        abandon_step(t, uc, WIRE_END_SIGNAL, 0);
    else if (t->state == THREAD_BURST) /* the target jumped out of a handler that ran in a burst */
        burst_end(t, WIRE_END_SIGNAL, 0, t->generated.cursor, UINT32_MAX);
    clear_pending_entry(t);
    /* A system call is about to be made. */
    if ((t->watch.makes_undiverted && arch_at_call(uc)) || diverted_call_pending(t)) {
        thread_arm(t);
        return;
    }
    if (t->watch.makes_undiverted)
        calls_stepped(t, uc);
    if (agent_always_translated()) {
        mark_must_return(t);
    } else if (full_mode_ended) {
        plan_first_burst(t, uc);
    } else if (agent_off || !burst_signal_pending(uc) || !enter_after_next(t, uc)) {
        if (!burst_enter(t, uc))
            thread_arm(t);
    }
}

/* The only place where a thread that always stays in translated code returns to it: at the end of the handler
 * in which it left the code cache or was triggered, before it executes anything. If it left for an
 * instruction that cannot be executed there, or a signal must be delivered first, it returns after the next
 * instruction. */
static void return_to_translated(struct thread *t, ucontext_t *uc)
{
    t->burst.must_return = 0;
    if (agent_off || t->ending || t->state != THREAD_NATIVE || t->burst.enter_after_step)
        return;
    if (t->translation.left_sequence) { /* it would reach the same sequence again and make no progress */
        t->translation.left_sequence = 0;
        t->native.refused = WIRE_NATIVE_SEQUENCE;
        thread_arm(t);
        return;
    }
    int at_it = t->burst.left_because == WIRE_END_SYSCALL || t->burst.left_because == WIRE_END_INSTRUCTION;
    if ((at_it || burst_signal_pending(uc)) && enter_after_next(t, uc))
        return;
    if (burst_enter(t, uc)) {
        t->burst.consecutive_steps = 0;
        return;
    }
    /* After the next instruction there may be code that can be translated, unless there is no room for more
     * code. */
    int no_code = t->native.refused == WIRE_NATIVE_CODE ||
                  (t->native.refused == WIRE_NATIVE_SPACE && !arch_templates_full());
    if (no_code && t->burst.consecutive_steps < CONSECUTIVE_STEPS_MOST) {
        t->burst.consecutive_steps++;
        if (enter_after_next(t, uc))
            return;
    }
    t->burst.consecutive_steps = 0;
    restore_trap_mask(t, uc);
    thread_arm(t);
}

/* The previous instruction was executed with the trap flag set. */
static void stepped(struct thread *t, ucontext_t *uc)
{
    arch_set_step(uc, 0);
    if (t && t->watch.makes_undiverted)
        calls_stepped(t, uc);
    if (t && t->state == THREAD_STEPPING) {
        burst_reenter(t, uc);
    } else if (t && t->state == THREAD_NATIVE && clear_pending_entry(t)) {
        if (agent_always_translated()) {
            mark_must_return(t);
        } else if (t->burst.always_translated) {
            plan_first_burst(t, uc);
        } else {
            restore_trap_mask(t, uc);
            burst_enter(t, uc);
        }
    } else if (!t && (uint32_t)sys0(SYS_getpid) == process_id) { /* a thread that the stepped call created */
        burst_step_end();
    } /* else: a process that the stepped call created, or a step that was given up */
}

/* A fault at an instruction in the code cache. Nonzero: it is the target's own. */
static int burst_fault(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc)
{
    uint64_t *record = t->generated.cursor, *end = t->generated.cursor;
    switch (arch_fault(t, uc, sig, (uint64_t)info->si_addr, &record, &end)) {
    case FAULT_LEAVE:
        burst_leave(t, uc);
        return 0;
    case FAULT_FULL:
        if (t->translation.counts) {
            burst_counting_stopped(t, uc);
            return 0;
        }
        if (t->burst.full && agent_records_all() && !session->stop && !agent_off && !burst_forbidden()) {
            uint64_t pending = 0;
            sys2(SYS_rt_sigpending, &pending, sizeof pending);
            size_t words = (size_t)(end - record);
            uint64_t partial[BLOCK_WORDS + 8];
            memcpy(partial, record, words * sizeof *partial);
            if (burst_next_buffer(t, record) == 0) {
                memcpy(t->burst.buffer_start, partial, words * sizeof *partial);
                arch_moved_buffer(uc, t->burst.buffer_start);
                if (!(pending & ~t->generated.app_mask & ~FAULT_SIGNALS) && !t->signals.held_signals)
                    return 0;
                /* Leave, so that the pending signal is delivered; the burst goes on after it. */
                uint32_t insns = arch_restore(t, uc);
                set_mask_of(uc, t->generated.app_mask);
                burst_end(t, WIRE_END_SIGNAL, 0, t->burst.buffer_start + words, words ? insns : 0);
                return 0;
            }
            arch_restore(t, uc);
            set_mask_of(uc, t->generated.app_mask);
            if (!session->stop)
                agent_disable(WIRE_OFF_COLLECTOR);
            burst_end(t, WIRE_END_EXIT, 0, t->generated.cursor, 0);
            return 0;
        }
        {
            uint32_t insns = arch_restore(t, uc);
            set_mask_of(uc, t->generated.app_mask);
            /* If nothing of the record that did not fit was written, the one before is the last. */
            burst_end(t, WIRE_END_FULL, 0, end, end > record ? insns : UINT32_MAX);
        }
        return 0;
    case FAULT_STALE:
        t->generated.cursor = record;
        if (arch_continue(t, uc))
            return 0;
        set_mask_of(uc, t->generated.app_mask);
        burst_end(t, (enum wire_end)t->translation.leave_end, t->translation.leave_detail, record,
                  UINT32_MAX);
        return 0;
    case FAULT_CODE: /* executed natively, it faults by itself */
        arch_restore(t, uc);
        set_mask_of(uc, t->generated.app_mask);
        burst_end(t, WIRE_END_CODE, 0, record, UINT32_MAX);
        /* In translated code the source check would fault again, endlessly. */
        t->burst.left_because = WIRE_END_INSTRUCTION;
        return 0;
    case FAULT_TARGET: {
        uint64_t at = arch_pc(uc);
        uint32_t insns = arch_restore(t, uc);
        if (!t->translation.counts) /* counting writes no records */
            insns += (uint32_t)arch_record_partial(uc, record, insns);
        set_mask_of(uc, t->generated.app_mask);
        if ((uint64_t)info->si_addr == at) /* si_addr of SIGFPE and SIGILL is the instruction */
            info->si_addr = (void *)arch_pc(uc);
        /* The unfinished record has all words that its executed instructions refer to. */
        if (!t->translation.counts && end > t->translation.buffer_end)
            end = t->translation.buffer_end;
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
    if (sig == SIGTRAP && count_is_alarm(info)) {
        if (t && !in_handler(t, uc))
            count_alarm(t, uc);
        return 0;
    }
    if (sig == SIGTRAP && is_trigger(info)) {
        if (!t || t->ending || in_handler(t, uc))
            return 0;
        /* A trigger that was pending already has replaced the one that a return from a handler sent. */
        int returns = t->state == THREAD_STEPPING && t->translation.return_triggers;
        int asked = returns || (info->si_code != TRAP_PERF && info->si_errno == THREAD_TRIGGERED);
        if (!asked && !thread_is_due(t, info->si_code == TRAP_PERF, arch_pc(uc)))
            count_add(&proc->count.ticks, 1);
        else
            trigger(t, uc, asked);
        return 0;
    }
    if (sig == SIGTRAP && arch_is_step(info, uc)) {
        stepped(t, uc);
        return 0;
    }
    if (t && t->state == THREAD_BURST) {
        if (info->si_code <= 0 && !arch_at_gate(uc) &&
            (arch_in_cache(arch_pc(uc)) || region_is_agent(arch_pc(uc)))) {
            signals_hold(t, sig, info);
            return 0;
        }
        if (arch_in_cache(arch_pc(uc))) {
            if (!burst_fault(t, sig, info, uc))
                return 0;
            if (recover(sig, info, uc)) { /* in an interposed function */
                if (agent_always_translated() && !agent_off)
                    thread_trigger(t);
                return 0;
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
    } else if (t && t->state == THREAD_STEPPING) {
        abandon_step(t, uc, WIRE_END_FAULT, (uint32_t)sig);
    } else if (t && clear_pending_entry(t)) {
        arch_set_step(uc, 0);
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
