/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst.c - bursts: entering, leaving, single steps.
 *
 * All of it runs in signal handlers with every signal blocked, on the thread's own signal stack.
 */
#include <string.h>
#include <time.h>
#include "agent/burst/burst-internal.h"
#include "agent/clock/clock.h"
#include "agent/code/code.h"
#include "agent/signals/signals.h"
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/threads/threads.h"
#include "agent/translator/translator.h"

void burst_init(const struct burst_ops *o)
{
    burst_ops = o;
}

/* Marks the thread native again; the caller takes care of the context. */
static void go_native(struct thread *t)
{
    if (t->state == THREAD_BURST)
        arch_leave(t);
    arch_mark_outside(t);
    if (t->state != THREAD_NATIVE)
        has_left();
    t->state = THREAD_NATIVE;
    burst_ops->left(t);
}

/* The thread returns to translated code at once (return_to_translated), or enters it at its next trigger. One
 * that left at its own request, or permanently (WIRE_END_EXIT), triggers itself when it may be in a burst
 * again. */
static void return_or_arm(struct thread *t, enum wire_end end)
{
    int stays = agent_always_translated();
    t->burst.must_return = stays && end != WIRE_END_EXIT;
    t->burst.left_because = (int)end;
    if (t->burst.always_translated && !stays)
        burst_plan_first(t);
    else if (!t->burst.must_return)
        thread_arm(t);
}

void burst_plan_first(struct thread *t)
{
    t->burst.always_translated = t->burst.must_return = 0;
    t->native.is_on = 0; /* it may be native from now on */
    t->timing.is_first = 1;
    t->timing.was_counted = 0;
    t->timing.entered_ns = 0;
    if (!t->ending)
        thread_arm(t);
}

static void end_probe(struct thread *t, const uint64_t *end_of_words, uint32_t last_insns)
{
    go_native(t);
    t->burst.is_probe = 0;
    burst_ops->probe_ended(t, end_of_words, last_insns);
    if (t->burst.trigger_pending)
        thread_arm(t);
    t->burst.trigger_pending = 0;
}

void burst_end(struct thread *t, enum wire_end end, uint32_t detail, uint64_t *end_of_words,
               uint32_t last_insns)
{
    if (t->burst.is_probe) {
        end_probe(t, end_of_words, last_insns);
        return;
    }
    int counting = t->translation.counts;
    uint32_t question = 0;
    if (t->state == THREAD_BURST) /* so that no other thread hands its buffer over */
        arch_mark_inside(t);
    if (counting) {
        count_end(t);
        discard_buffer(t);
    } else if (t->translation.buffer >= 0) {
        question = end != WIRE_END_EXIT ? burst_ops->prepare_question(t, t->burst.number) : 0;
        publish_buffer(t, end, detail, end_of_words, last_insns, question);
    }
    if (end == WIRE_END_EXIT)
        native_account(t);
    go_native(t);
    burst_ops->await_answer(t, question); /* after this the budget includes what this burst cost */
    return_or_arm(t, end);
}

void burst_left(struct thread *t)
{
    if (t->state == THREAD_NATIVE)
        return;
    t->burst.step_trap_blocked = t->burst.step_makes_thread = 0;
    if (t->burst.is_probe) {
        go_native(t);
        t->burst.is_probe = t->burst.trigger_pending = 0;
        return;
    }
    burst_end(t, WIRE_END_EXIT, 0, t->generated.cursor, UINT32_MAX);
}

static void enter_translated(struct thread *t, ucontext_t *uc, uint64_t code)
{
    memcpy(&t->generated.app_mask, &uc->uc_sigmask, sizeof t->generated.app_mask);
    if (t->burst.step_trap_blocked)
        t->generated.app_mask |= SIGNAL_BIT(SIGTRAP);
    t->burst.step_trap_blocked = 0;
    t->generated.burst_mask = ~FAULT_SIGNALS;
    memcpy(&uc->uc_sigmask, &t->generated.burst_mask, sizeof t->generated.burst_mask);
    if (t->translation.counts)
        arch_count_insert(t, uc);
    native_ends(t);
    arch_enter(t);
    t->state = THREAD_BURST;
    arch_set_pc(uc, code);
}

static uint64_t pending_signals(void)
{
    uint64_t pending = 0;
    sys2(SYS_rt_sigpending, &pending, sizeof pending);
    return pending;
}

/* The pending signals that would be delivered to the target now. */
static uint64_t deliverable(const ucontext_t *uc, uint64_t pending)
{
    uint64_t mask;
    memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    return pending & ~mask & ~FAULT_SIGNALS;
}

/* A pending signal would be delivered to the target now. Entering a burst would block it, but code that sends
 * itself a signal relies on its handler running before the call returns. */
int burst_signal_pending(const ucontext_t *uc)
{
    return deliverable(uc, pending_signals()) != 0;
}

/* That, or a pending signal of a fault that somebody sent and the target blocks: in translated code, where it
 * is not blocked, it would be delivered at once. */
static int signal_prevents_entry(const ucontext_t *uc)
{
    uint64_t pending = pending_signals();
    return (deliverable(uc, pending) | (pending & FAULT_SIGNALS & ~SIGNAL_BIT(SIGTRAP))) != 0;
}

/* The code cache is full. Stale code keeps no thread in it: every other thread needs room sooner or later,
 * too, and leaves. The last one then gets the whole cache. */
static uint64_t retry_after_others_left(struct thread *t, uint64_t pc)
{
    struct timespec moment = {0, ROOM_LOOK_NS};
    arch_mark_outside(t);
    sys2(SYS_nanosleep, &moment, 0);
    if (regions_are_stale())
        arch_flush();
    arch_mark_inside(t);
    uint64_t code = arch_translate(t, pc);
    t->translation.abort_pc = 0;
    return code;
}

static uint32_t why_no_code(const struct thread *t, int in_sequence)
{
    return in_sequence                                  ? WIRE_NATIVE_SEQUENCE
           : t->translation.leave_end == WIRE_END_SPACE ? WIRE_NATIVE_SPACE
                                                        : WIRE_NATIVE_CODE;
}

/* Prepares a recorded burst (full: of full mode), or the counting stretch before it, at pc, and returns its
 * code. 0: there is none, and the buffer is returned. */
static uint64_t begin_translated(struct thread *t, uint64_t pc, int full)
{
    uint64_t code = arch_translate(t, pc);
    int in_sequence = t->translation.abort_pc != 0;
    t->translation.abort_pc = 0; /* the kernel handles an interrupted sequence by itself */
    for (unsigned waited = 0;
         !code && agent_always_translated() && t->translation.leave_end == WIRE_END_SPACE &&
         !arch_templates_full() && waited < ROOM_LOOKS;
         waited++) {
        code = retry_after_others_left(t, pc);
    }
    if (!code) {
        t->native.refused = why_no_code(t, in_sequence);
        count_add(&proc->count.skipped_code, 1);
        discard_buffer(t);
        count_forget(t);
        return 0;
    }
    if (t->translation.counts) {
        count_begin(t);
        return code;
    }
    t->burst.pc = pc;
    t->burst.full = full;
    t->burst.steps = 0;
    t->burst.number = __atomic_add_fetch(&proc->next_burst, 1, __ATOMIC_RELAXED);
    t->generated.cursor = t->burst.buffer_start;
    count_add(&proc->count.bursts, 1);
    return code;
}

/* Begins the recorded burst after a counting stretch; the context is the target's own. */
static void begin_recording(struct thread *t, ucontext_t *uc)
{
    start_buffer(t, t->translation.buffer);
    uint64_t code = begin_translated(t, arch_pc(uc), agent_records_all());
    if (code) {
        copy_stack(t, uc);
        arch_set_pc(uc, code);
        return;
    }
    memcpy(&uc->uc_sigmask, &t->generated.app_mask, sizeof t->generated.app_mask);
    go_native(t);
    return_or_arm(t, WIRE_END_CODE);
}

void burst_counting_stopped(struct thread *t, ucontext_t *uc)
{
    enum count_verdict verdict = count_stop(t, uc, burst_forbidden());
    if (verdict == COUNT_SIGNAL) { /* deliver it: the burst begins after its handler */
        arch_restore(t, uc);
        memcpy(&uc->uc_sigmask, &t->generated.app_mask, sizeof t->generated.app_mask);
        burst_end(t, WIRE_END_SIGNAL, 0, t->generated.cursor, UINT32_MAX);
    } else if (verdict == COUNT_OVER) {
        arch_restore(t, uc);
        memcpy(&uc->uc_sigmask, &t->generated.app_mask, sizeof t->generated.app_mask);
        burst_end(t, WIRE_END_FULL, 0, t->generated.cursor, UINT32_MAX);
    } else if (verdict == COUNT_RECORD && t->clock.endless && !take_buffer(t, count_draws_long_tail(t))) {
        count_not_recorded(t, uc);
    } else if (verdict == COUNT_RECORD) {
        arch_restore(t, uc);
        count_end(t);
        count_recorded(t);
        t->timing.was_counted = 0;
        begin_recording(t, uc);
    }
}

/* Whether the thread may enter translated code here; if not, t->native.refused says why. */
static int entry_allowed(struct thread *t, const ucontext_t *uc)
{
    t->native.refused = WIRE_NATIVE_OFF;
    if (agent_off || session->stop)
        return 0;
    if (!signals_handlers_installed()) { /* the program's own, or ignored for an exec */
        if (burst_forbidden())
            t->native.refused = WIRE_NATIVE_EXEC;
        count_add(&proc->count.skipped_handlers, 1);
        return 0;
    }
    t->native.refused = WIRE_NATIVE_GS;
    if (arch_gs_in_use()) {
        count_add(&proc->count.skipped_gs, 1);
        return 0;
    }
    t->native.refused = WIRE_NATIVE_CODE;
    if (arch_other_mode(uc))
        return 0;
    t->native.refused = WIRE_NATIVE_SIGNAL;
    if (signal_prevents_entry(uc)) {
        count_add(&proc->count.skipped_busy, 1);
        return 0;
    }
    t->native.refused = WIRE_NATIVE_EXEC;
    return may_enter();
}

int burst_enter(struct thread *t, ucontext_t *uc)
{
    if (!entry_allowed(t, uc))
        return 0;
    t->native.refused = WIRE_NATIVE_OFF;
    uint64_t start, end;
    while (regions_find_changed(&start, &end))
        arch_code_changes(start, end - start);
    if (regions_check())
        arch_flush();
    burst_ops->begins(t);
    signals_intercept_direct(); /* handlers may have been installed since the last burst */
    /* Decided once: full mode may end while the thread waits for a buffer. What it then recorded, at no
     * random moment, would represent hours. */
    int full = agent_records_all();
    t->translation.counts = count_wanted(t, uc);
    /* A stretch without an end must not keep a buffer from others. */
    if (!(t->translation.counts && t->clock.endless)) {
        t->native.refused = WIRE_NATIVE_BUFFER;
        if (!take_buffer(t, 0))
            goto out;
        if (full && !agent_records_all()) {
            discard_buffer(t);
            full = 0;
            t->translation.counts = count_wanted(t, uc);
            if (!(t->translation.counts && t->clock.endless))
                goto out;
        } else {
            start_buffer(t, t->translation.buffer);
        }
    }
    t->timing.entered_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    arch_mark_inside(t);
    uint64_t code = begin_translated(t, arch_pc(uc), full);
    if (code) {
        if (!t->translation.counts)
            copy_stack(t, uc);
        burst_ops->entered(t);
        enter_translated(t, uc, code);
        t->burst.always_translated = full || agent_always_translated();
        return 1;
    }
out:
    t->timing.entered_ns = 0;
    count_forget(t);
    arch_mark_outside(t);
    has_left();
    return 0;
}

int burst_enter_probe(struct thread *t, ucontext_t *uc, uint64_t *words, uint64_t *end)
{
    if (agent_off || session->stop || arch_gs_in_use() || arch_other_mode(uc) || signal_prevents_entry(uc))
        return 0;
    if (!may_enter())
        return 0;
    if (regions_are_stale())
        arch_flush();
    t->translation.buffer = -1;
    t->burst.buffer_start = words;
    t->translation.buffer_end = end;
    arch_mark_inside(t);
    uint64_t code = arch_translate(t, arch_pc(uc));
    t->translation.abort_pc = 0;
    if (!code) {
        arch_mark_outside(t);
        has_left();
        return 0;
    }
    t->generated.cursor = words;
    t->burst.is_probe = 1;
    t->burst.full = 0;
    enter_translated(t, uc, code);
    return 1;
}

/* The context is the target's. Executes one instruction natively; burst_reenter follows. */
static void step(struct thread *t, ucontext_t *uc)
{
    uint64_t mask;
    memcpy(&mask, &uc->uc_sigmask, sizeof mask);
    t->burst.step_trap_blocked = (mask & SIGNAL_BIT(SIGTRAP)) != 0;
    mask &= ~SIGNAL_BIT(SIGTRAP); /* the kernel kills for a trap whose signal is blocked */
    memcpy(&uc->uc_sigmask, &mask, sizeof mask);
    if (t->state == THREAD_BURST)
        arch_leave(t);
    arch_mark_outside(t);
    t->state = THREAD_STEPPING;
    t->translation.return_triggers = 0;
    t->translation.leave_end = WIRE_END_CODE;
    arch_set_step(uc, 1);
}

/* Where nearly every reference is one of an instruction that is stepped, and not recorded, buffers and
 * counters fill too slowly to end what should end. */
static int steps_too_long(struct thread *t)
{
    int counts = t->translation.counts;
    if (t->burst.is_probe || (counts && !t->clock.endless))
        return 0;
    return ++t->burst.steps % BURST_STEPS_LOOK == 0 &&
           sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - (counts ? t->timing.entered_ns : t->burst.cpu_start_ns) >
               BURST_STEPS_NS;
}

void burst_reenter(struct thread *t, ucontext_t *uc)
{
    burst_step_resolved(t, uc);
    if (burst_signal_pending(uc) && !arch_step_would_kill(uc)) {
        int blocked = t->burst.step_trap_blocked;
        step(t, uc); /* the handler runs first, then the next instruction, then this function again */
        t->burst.step_trap_blocked |= blocked;
        return;
    }
    count_add(&proc->count.stepped, 1);
    if (regions_check())
        arch_flush();
    arch_mark_inside(t);
    uint64_t code = 0;
    if (signal_prevents_entry(uc))
        t->translation.leave_end = WIRE_END_SIGNAL;
    else if (steps_too_long(t))
        t->translation.leave_end = WIRE_END_FULL;
    else if (!session->stop && signals_handlers_installed() && !arch_gs_in_use() && !arch_other_mode(uc))
        code = arch_translate(t, arch_pc(uc));
    t->translation.abort_pc = 0;
    if (code && (t->translation.counts || regain_buffer(t))) {
        enter_translated(t, uc, code);
        return;
    }
    if (t->burst.step_trap_blocked) {
        uint64_t mask;
        memcpy(&mask, &uc->uc_sigmask, sizeof mask);
        mask |= SIGNAL_BIT(SIGTRAP);
        memcpy(&uc->uc_sigmask, &mask, sizeof mask);
        t->burst.step_trap_blocked = 0;
    }
    burst_end(t, (enum wire_end)t->translation.leave_end, t->translation.leave_detail, t->generated.cursor,
              UINT32_MAX);
}

void burst_leave(struct thread *t, ucontext_t *uc)
{
    arch_set_pc(uc, t->translation.exit_pc);
    memcpy(&uc->uc_sigmask, &t->generated.app_mask, sizeof t->generated.app_mask);
    if (t->translation.counts) /* it may not come back */
        count_take(t, arch_count_remove(t, uc));
    /* A pending alarm would replace the SIGTRAP of the step, or of the stepped instruction. */
    if (t->translation.leave_end == LEAVE_STEP || t->translation.leave_end == LEAVE_RETURN)
        count_pause(t);
    if (t->translation.leave_end == LEAVE_STEP) {
        if (t->burst.step_executes && t->translation.buffer >= 0)
            publish_buffer(t, WIRE_END_MORE, 0, t->generated.cursor, UINT32_MAX, 0);
        /* No need to check `forbidden`: who forbids bursts waits for this thread anyway. */
        if (t->burst.step_makes_thread)
            step_expected();
        step(t, uc);
        return;
    }
    if (t->translation.leave_end == LEAVE_RETURN) {
        arch_leave(t);
        arch_mark_outside(t);
        t->state = THREAD_STEPPING;
        t->translation.leave_end = WIRE_END_CODE;
        t->burst.step_trap_blocked = t->translation.return_trap_blocked;
        if (t->translation.return_triggers) { /* rt_sigreturn unblocks it */
            uint64_t mask;
            memcpy(&mask, &uc->uc_sigmask, sizeof mask);
            mask |= SIGNAL_BIT(SIGTRAP);
            memcpy(&uc->uc_sigmask, &mask, sizeof mask);
            thread_trigger(t);
        }
        return;
    }
    burst_end(t, (enum wire_end)t->translation.leave_end, t->translation.leave_detail, t->generated.cursor,
              t->translation.leave_insns);
}
