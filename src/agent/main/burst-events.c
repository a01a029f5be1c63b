/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst-events.c - signals that are events of bursts: triggers, which begin them; single steps, after which
 * they go on; and faults in translated code, which end them or are the target's own.
 */
#include "agent/burst/burst.h"
#include "agent/code/code.h"
#include "agent/intercept/intercept.h"
#include "agent/main/main-internal.h"
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/threads/threads.h"
#include "agent/translator/translator.h"
#include "agent/watch/watch.h"

void restore_trap_mask(struct thread *t, ucontext_t *uc)
{
    if (t->burst.step_trap_blocked)
        set_mask_of(uc, mask_of(uc) | SIGNAL_BIT(SIGTRAP));
    t->burst.step_trap_blocked = 0;
}

void abandon_step(struct thread *t, ucontext_t *uc, enum wire_end end, uint32_t detail)
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

int clear_pending_entry(struct thread *t, ucontext_t *uc)
{
    if (!t->burst.enter_after_step)
        return 0;
    t->burst.enter_after_step = 0;
    arch_set_step(uc, 0);
    burst_step_end();
    return 1;
}

/* The handler may return late, or jump out. With the trap flag in its frame, the trap would come at a time
 * when nobody expects it, perhaps while another thread executes a program, and SIGTRAP is ignored for that:
 * the kernel would kill. */
void abandon_step_for_handler(struct thread *t, ucontext_t *uc)
{
    if (clear_pending_entry(t, uc)) {
        restore_trap_mask(t, uc);
        if (!agent_always_translated())
            thread_skip_planned(t);
    } else if (agent_always_translated() && t->state == THREAD_STEPPING) {
        abandon_step(t, uc, WIRE_END_SIGNAL, 0);
    }
}

/* Runs the next instruction natively under the trap flag; the burst is entered at the trap. If the handler of
 * a pending signal comes first, there is no such burst (abandon_step_for_handler). 0: not possible now. */
static int enter_after_next(struct thread *t, ucontext_t *uc)
{
    if (arch_step_would_kill(uc) || !burst_step_begin())
        return 0;
    t->burst.enter_after_step = 1;
    t->burst.step_trap_blocked |= (mask_of(uc) & SIGNAL_BIT(SIGTRAP)) != 0;
    set_mask_of(uc, mask_of(uc) & ~SIGNAL_BIT(SIGTRAP)); /* a blocked trap would kill */
    arch_set_step(uc, 1);
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

void trigger(struct thread *t, ucontext_t *uc, int asked)
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
    clear_pending_entry(t, uc);
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
void return_to_translated(struct thread *t, ucontext_t *uc)
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
    /* Whoever forbids them may wait for a diverted call of this thread. */
    if (!t->start.forbids_bursts && !watch_used())
        burst_await_allowed(t);
    if (burst_enter(t, uc)) {
        t->burst.consecutive_steps = 0;
        return;
    }
    /* After the next instruction there may be code that can be translated, unless there is no room for more
     * code. */
    int no_code = t->native.refused == WIRE_NATIVE_CODE ||
                  (t->native.refused == WIRE_NATIVE_SPACE && !arch_templates_full());
    unsigned most = arch_other_mode(uc) ? OTHER_MODE_STEPS_MOST : CONSECUTIVE_STEPS_MOST;
    if (no_code && t->burst.consecutive_steps < most) {
        t->burst.consecutive_steps++;
        if (enter_after_next(t, uc))
            return;
    }
    t->burst.consecutive_steps = 0;
    restore_trap_mask(t, uc);
    thread_arm(t);
}

void stepped(struct thread *t, ucontext_t *uc)
{
    arch_set_step(uc, 0);
    if (t && t->watch.makes_undiverted)
        calls_stepped(t, uc);
    if (t && t->state == THREAD_STEPPING) {
        burst_reenter(t, uc);
    } else if (t && t->state == THREAD_NATIVE && clear_pending_entry(t, uc)) {
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

/* Ends the burst with registers as the target has them and its own signal mask. */
static void end_restored(struct thread *t, ucontext_t *uc, enum wire_end why, uint32_t detail, uint64_t *end,
                         uint32_t insns)
{
    set_mask_of(uc, t->generated.app_mask);
    burst_end(t, why, detail, end, insns);
}

/* A signal of the target's waits for the burst's end. */
static int signal_waits(const struct thread *t)
{
    uint64_t pending = 0;
    sys2(SYS_rt_sigpending, &pending, sizeof pending);
    return (pending & ~t->generated.app_mask & ~FAULT_SIGNALS) || t->signals.held_signals;
}

/*
 * Full mode, and the buffer is full at a record of which the words up to `end` are written: they go on in the
 * next buffer, and so does the burst, unless a signal must be delivered first.
 */
static void next_buffer(struct thread *t, ucontext_t *uc, uint64_t *record, const uint64_t *end, int filtered)
{
    int must_leave = signal_waits(t);
    if (filtered && must_leave) {
        uint32_t insns = arch_restore(t, uc);
        end_restored(t, uc, WIRE_END_SIGNAL, 0, record, insns);
        return;
    }
    size_t words = (size_t)(end - record);
    uint64_t partial[BLOCK_WORDS + 8];
    memcpy(partial, record, words * sizeof *partial);
    if (burst_next_buffer(t, record) < 0) {
        arch_restore(t, uc);
        if (!session->stop)
            agent_disable(WIRE_OFF_COLLECTOR);
        end_restored(t, uc, WIRE_END_EXIT, 0, t->generated.cursor, 0);
        return;
    }
    memcpy(t->burst.buffer_start, partial, words * sizeof *partial);
    arch_moved_buffer(uc, t->burst.buffer_start);
    if (must_leave) {
        uint32_t insns = arch_restore(t, uc);
        end_restored(t, uc, WIRE_END_SIGNAL, 0, t->burst.buffer_start + words, words ? insns : 0);
    }
}

/* The buffer is full, or so many references were counted as were to be. */
static void buffer_full(struct thread *t, ucontext_t *uc, uint64_t *record, uint64_t *end, int filtered)
{
    if (t->translation.counts) {
        burst_counting_stopped(t, uc);
    } else if (t->burst.full && agent_records_all() && !session->stop && !agent_off && !burst_forbidden()) {
        next_buffer(t, uc, record, end, filtered);
    } else {
        uint32_t insns = arch_restore(t, uc);
        /* If nothing of the record that did not fit was written, the one before is the last. */
        end_restored(t, uc, WIRE_END_FULL, 0, end, filtered || end > record ? insns : UINT32_MAX);
    }
}

/* An instruction of the target's faults, which its handler, or the kernel, is to see as natively. */
static void target_fault(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc, uint64_t *record,
                         uint64_t *end, int filtered)
{
    uint64_t at = arch_pc(uc);
    uint32_t insns = arch_restore(t, uc);
    if (!t->translation.counts && !filtered) /* then there is no unfinished record */
        insns += (uint32_t)arch_record_partial(uc, record, insns);
    if ((uint64_t)info->si_addr == at) /* si_addr of SIGFPE and SIGILL is the instruction */
        info->si_addr = (void *)arch_pc(uc);
    /* The unfinished record has all words that its executed instructions refer to. */
    if (!t->translation.counts && end > t->translation.buffer_end)
        end = t->translation.buffer_end;
    end_restored(t, uc, WIRE_END_FAULT, (uint32_t)sig, end, insns);
}

int burst_fault(struct thread *t, int sig, siginfo_t *info, ucontext_t *uc)
{
    uint64_t *record = t->generated.cursor, *end = t->generated.cursor;
    int filtered = arch_filters_lines(uc);
    switch (arch_fault(t, uc, sig, (uint64_t)info->si_addr, &record, &end)) {
    case FAULT_LEAVE:
        burst_leave(t, uc);
        return 0;
    case FAULT_FULL:
        buffer_full(t, uc, record, end, filtered);
        return 0;
    case FAULT_STALE:
        t->generated.cursor = record;
        if (!arch_continue(t, uc))
            end_restored(t, uc, (enum wire_end)t->translation.leave_end, t->translation.leave_detail, record,
                         UINT32_MAX);
        return 0;
    case FAULT_CODE: /* executed natively, it faults by itself */
        arch_restore(t, uc);
        end_restored(t, uc, WIRE_END_CODE, 0, record, UINT32_MAX);
        /* In translated code the source check would fault again, endlessly. */
        t->burst.left_because = WIRE_END_INSTRUCTION;
        return 0;
    case FAULT_TARGET:
        target_fault(t, sig, info, uc, record, end, filtered);
        return 1;
    default:
        agent_disable(WIRE_OFF_TROUBLE);
        return 1;
    }
}
