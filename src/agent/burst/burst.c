/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst.c - bursts: buffers, entering, leaving, single steps.
 *
 * All of it runs in signal handlers with every signal blocked, on the thread's own signal stack.
 */
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "agent/burst/burst.h"
#include "agent/clock/clock.h"
#include "agent/code/code.h"
#include "agent/signals/signals.h"
#include "agent/sys/context.h"
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/translator/translator.h"

static uint32_t active; /* threads in a burst or step, whose faults and traps the agent must handle */

/* Threads with the trap flag that are in no burst: one that was created by a stepped call and has not reached
 * its first instruction; one that enters a burst after the handler of a signal. If the agent did not handle
 * SIGTRAP for them, as for the `active` ones, the kernel would end the program. */
static uint32_t stepping_native;

static int forbidden;

static const struct burst_ops *ops;

void burst_init(const struct burst_ops *o)
{
    ops = o;
}

/* Nonzero: the thread may enter the code cache, and is counted in `active`. */
static int may_enter(void)
{
    __atomic_fetch_add(&active, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&forbidden, __ATOMIC_SEQ_CST))
        return 1;
    __atomic_fetch_sub(&active, 1, __ATOMIC_SEQ_CST);
    return 0;
}

static uint64_t *buffer_address(int index)
{
    return (uint64_t *)(void *)(slot + session->buffer_offset + (uint64_t)index * session->buffer_stride);
}

static uint64_t has_guard_page; /* bit i: buffer i of the slot has its guard page */

void burst_attached(void)
{
    has_guard_page = 0;
}

/* Called when a buffer is used first: most processes end before they have had a burst. */
static void add_guard_page(int index)
{
    if (__atomic_load_n(&has_guard_page, __ATOMIC_RELAXED) >> index & 1)
        return;
    own_guard((char *)buffer_address(index) + session->buffer_bytes);
    __atomic_fetch_or(&has_guard_page, UINT64_C(1) << index, __ATOMIC_RELAXED);
}

static int take_buffer(void)
{
    for (uint32_t i = 0; i < session->nbuffers; i++) {
        uint32_t expected = WIRE_BUF_FREE;
        if (__atomic_load_n(&proc->buf_state[i], __ATOMIC_RELAXED) == WIRE_BUF_FREE &&
            __atomic_compare_exchange_n(&proc->buf_state[i], &expected, WIRE_BUF_OWNED, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return (int)i;
    }
    return -1;
}

static void start_buffer(struct thread *t, int index)
{
    add_guard_page(index);
    t->translation.buffer = index;
    uint64_t bytes = agent_records_all() ? session->full_bytes : session->buffer_bytes;
    t->translation.buffer_end = buffer_address(index) + session->buffer_bytes / sizeof(uint64_t);
    t->burst.buffer_start = t->translation.buffer_end - bytes / sizeof(uint64_t);
    t->burst.start_ns = sys_clock_ns(CLOCK_MONOTONIC);
    t->burst.cpu_start_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    sys2(SYS_arch_prctl, 0x1003 /* ARCH_GET_FS */, &t->burst.fs_base);
    t->burst.blocks_before = proc->count.blocks;
    t->burst.heap_start = __atomic_load_n(&proc->heap.head, __ATOMIC_RELAXED);
    t->burst.stack_words = 0;
}

/* Bytes from sp on in pages that are resident, at most `most`. What follows a stack may be memory whose
 * faults the target handles itself (userfaultfd), or that was never touched. */
static uint64_t resident_bytes(uint64_t sp, uint64_t most)
{
    uint64_t page = (sp & ~(uint64_t)(WIRE_PAGE - 1)) + WIRE_PAGE;
    uint8_t resident;
    while (page < sp + most && sys3(SYS_mincore, page, WIRE_PAGE, &resident) == 0 && resident & 1)
        page += WIRE_PAGE;
    return page - sp < most ? page - sp : most;
}

/* A recorded burst begins in the thread's buffer; the context is the target's own. */
static void copy_stack(struct thread *t, const ucontext_t *uc)
{
    if (!session->stacks)
        return;
    struct wire_stack *s = &proc->stack[t->translation.buffer];
    s->sp = arch_sp(uc);
    s->rbp = arch_frame_pointer(uc);
    uint64_t bytes = resident_bytes(s->sp, sizeof s->words);
    bytes -= safe_copy(s->words, (const void *)s->sp, bytes);
    t->burst.stack_words = bytes / sizeof s->words[0];
}

/* Memory of translations, buffers shared with the collector that were used, and structures of threads. */
static uint64_t memory_bytes(void)
{
    uint64_t used = 0,
             each = offsetof(struct thread, tables.jumps) + SIGNAL_STACK_BYTES + DISPATCH_STACK_BYTES;
    for (uint64_t left = __atomic_load_n(&has_guard_page, __ATOMIC_RELAXED); left; left &= left - 1)
        used++;
    return arch_memory() + used * session->buffer_stride + proc->template_used + threads_made() * each;
}

static uint64_t string_hits_since_last(const struct thread *t)
{
    int64_t hits = count_string_hits(t) - t->clock.string_hits_before;
    return hits > 0 ? (uint64_t)hits : 0;
}

/* CPU time that the burst cost. A long burst's time beyond this limit is the program's own: a string
 * instruction over megabytes, or the kernel providing pages for it (one of python3: 0.3 s). */
static uint64_t burst_cost_ns(const struct wire_desc *d)
{
    uint64_t most = BURST_MOST_NS + d->words * BURST_WORD_MOST_NS + d->new_blocks * BURST_BLOCK_MOST_NS;
    return d->cpu_end_ns - d->cpu_start_ns < most ? d->cpu_end_ns - d->cpu_start_ns : most;
}

static void hand_over(struct thread *t, enum wire_end end, uint32_t detail, const uint64_t *end_of_words,
                      uint32_t last_insns, uint32_t question, uint64_t cpu_ns)
{
    struct wire_desc *d = &proc->desc[t->translation.buffer];
    *d = (struct wire_desc){.question = question,
                            .full = t->burst.full != 0,
                            .seq = __atomic_add_fetch(&proc->next_seq, 1, __ATOMIC_RELAXED),
                            .tid = t->tid,
                            .end = (uint32_t)end,
                            .end_detail = detail,
                            .last_insns = last_insns,
                            .first_word =
                                (uint64_t)(t->burst.buffer_start - buffer_address(t->translation.buffer)),
                            .words = (uint64_t)(end_of_words - t->burst.buffer_start),
                            .burst = t->burst.number,
                            .start_ns = t->burst.start_ns,
                            .end_ns = sys_clock_ns(CLOCK_MONOTONIC),
                            .cpu_start_ns = t->burst.cpu_start_ns,
                            .cpu_end_ns = cpu_ns,
                            .fs_base = t->burst.fs_base,
                            .heap_start = t->burst.heap_start,
                            .heap_end = __atomic_load_n(&proc->heap.head, __ATOMIC_RELAXED),
                            .new_blocks = proc->count.blocks - t->burst.blocks_before,
                            .pc = t->burst.pc,
                            .gap_ns = t->timing.gap_ns,
                            .count_refs = t->clock.refs,
                            .count_ns = t->clock.ns,
                            .count_call_ns = t->clock.call_ns,
                            .warm_ns = t->clock.refs ? t->clock.warm_ns : 0,
                            .warm_blocks = t->clock.warm_blocks % COUNT_TURN,
                            .warm_turns = t->clock.warm_blocks / COUNT_TURN,
                            .paging_ns = t->clock.paging_ns,
                            .string_hits = string_hits_since_last(t),
                            .string_steps = t->clock.total - t->clock.string_total_before,
                            .count_blocks = t->clock.blocks,
                            .count_turns = t->clock.turns,
                            .near_refs = t->clock.near_refs,
                            .near_ns = t->clock.near_ns,
                            .count_before = t->clock.total,
                            .count_gap = t->clock.burst_gap,
                            .stack_words = t->burst.stack_words};
    ops->describe(t, d);
    count_forget(t);
    uint64_t memory = memory_bytes();
    if (memory > proc->count.memory_bytes)
        proc->count.memory_bytes = memory;
    count_add(&proc->count.burst_cpu_ns, burst_cost_ns(d));
    __atomic_store_n(&proc->buf_state[t->translation.buffer], WIRE_BUF_READY, __ATOMIC_RELEASE);
    t->translation.buffer = -1;
    doorbell();
}

/* Hands the buffer over; the thread has none afterwards. */
static void publish(struct thread *t, enum wire_end end, uint32_t detail, const uint64_t *end_of_words,
                    uint32_t last_insns, uint32_t question)
{
    hand_over(t, end, detail, end_of_words, last_insns, question, sys_clock_ns(CLOCK_THREAD_CPUTIME_ID));
    native_account(t);
}

/* For a thread that is in a system call: afterwards it continues in back_from_gate, which needs the
 * translator's lock. */
static void hand_over_if_waiting(struct thread *t)
{
    if (t->state == THREAD_BURST && !t->translation.inside && !t->translation.counts &&
        t->translation.buffer >= 0)
        hand_over(t, WIRE_END_SYSCALL, 0, t->generated.cursor, UINT32_MAX, 0, t->burst.cpu_start_ns);
}

/* Full mode: hands over what threads that are in system calls have recorded. They take another buffer when
 * the call returns. */
static void hand_over_waiting(void)
{
    arch_lock();
    threads_each(hand_over_if_waiting);
    arch_unlock();
}

/* A running thread's records cannot be handed over, but the CPU time they cover is counted. */
static void count_lost_buffers(struct thread *t)
{
    uint64_t now;
    if (t->state != THREAD_BURST || !t->translation.inside || t->translation.buffer < 0 ||
        t->tid == (uint32_t)sys0(SYS_gettid) || (now = thread_cpu_ns(t->tid)) == UINT64_MAX)
        return;
    count_add(&proc->count.lost_ns, now > t->burst.cpu_start_ns ? now - t->burst.cpu_start_ns : 0);
    count_add(&proc->count.lost_threads, 1);
}

void burst_process_ends(void)
{
    hand_over_waiting(); /* these threads do not end their bursts themselves */
    threads_each(count_lost_buffers);
}

/* Returns the buffer unread. */
static void discard_buffer(struct thread *t)
{
    if (t->translation.buffer >= 0)
        __atomic_store_n(&proc->buf_state[t->translation.buffer], WIRE_BUF_FREE, __ATOMIC_RELEASE);
    t->translation.buffer = -1;
}

/* Marks the thread native again; the caller takes care of the context. */
static void go_native(struct thread *t)
{
    if (t->state == THREAD_BURST)
        arch_leave(t);
    arch_mark_outside(t);
    if (t->state != THREAD_NATIVE)
        __atomic_fetch_sub(&active, 1, __ATOMIC_SEQ_CST);
    t->state = THREAD_NATIVE;
    ops->left(t);
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
    ops->probe_ended(t, end_of_words, last_insns);
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
        question = end != WIRE_END_EXIT ? ops->prepare_question(t, t->burst.number) : 0;
        publish(t, end, detail, end_of_words, last_insns, question);
    }
    if (end == WIRE_END_EXIT)
        native_account(t);
    go_native(t);
    ops->await_answer(t, question); /* after this the budget includes what this burst cost */
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

/* Full mode: waits until the collector has freed a buffer; -1: none will be freed, or not within most_ns.
 * Meanwhile the buffers of threads in system calls are handed over: there may be more threads than buffers,
 * and what those threads wait for may be this one. */
static int await_buffer(uint64_t most_ns)
{
    int index;
    uint64_t began = 0;
    for (;;) {
        uint32_t freed = __atomic_load_n(&proc->buf_freed, __ATOMIC_SEQ_CST);
        if ((index = take_buffer()) >= 0)
            break;
        if (!began)
            began = sys_clock_ns(CLOCK_MONOTONIC);
        else
            hand_over_waiting();
        if (sys_clock_ns(CLOCK_MONOTONIC) - began > most_ns)
            return -1;
        if (session->stop || collector_gone())
            return -1;
        struct timespec wait = {0, BUFFER_LOOK_NS};
        sys4(SYS_futex, &proc->buf_freed, FUTEX_WAIT, freed, &wait);
    }
    if (began)
        count_add(&proc->count.stalled_ns, sys_clock_ns(CLOCK_MONOTONIC) - began);
    return index;
}

int burst_next_buffer(struct thread *t, uint64_t *end_of_words)
{
    publish(t, WIRE_END_MORE, 0, end_of_words, UINT32_MAX, 0);
    int index = await_buffer(UINT64_MAX);
    if (index < 0)
        return -1;
    start_buffer(t, index);
    return 0;
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

static int take_buffer_for(struct thread *t)
{
    t->translation.buffer = agent_records_all() ? await_buffer(BUFFER_WAIT_NS) : take_buffer();
    if (t->translation.buffer >= 0)
        return 1;
    count_add(&proc->count.skipped_buffer, 1);
    if (collector_gone())
        agent_disable(WIRE_OFF_COLLECTOR);
    return 0;
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
    enum count_verdict verdict = count_stop(t, uc);
    if (verdict == COUNT_SIGNAL) { /* deliver it: the burst begins after its handler */
        arch_restore(t, uc);
        memcpy(&uc->uc_sigmask, &t->generated.app_mask, sizeof t->generated.app_mask);
        burst_end(t, WIRE_END_SIGNAL, 0, t->generated.cursor, UINT32_MAX);
    } else if (verdict == COUNT_RECORD && count_always() && !take_buffer_for(t)) {
        count_not_recorded(t, uc);
    } else if (verdict == COUNT_RECORD) {
        arch_restore(t, uc);
        count_end(t);
        count_recorded(t);
        t->timing.was_counted = 0;
        begin_recording(t, uc);
    }
}

int burst_enter(struct thread *t, ucontext_t *uc)
{
    uint64_t pc = arch_pc(uc);
    t->native.refused = WIRE_NATIVE_OFF;
    if (agent_off || session->stop || !signals_handlers_installed())
        return 0;
    t->native.refused = WIRE_NATIVE_GS;
    if (arch_gs_in_use()) {
        count_add(&proc->count.skipped_gs, 1);
        return 0;
    }
    t->native.refused = WIRE_NATIVE_SIGNAL;
    if (signal_prevents_entry(uc)) {
        count_add(&proc->count.skipped_busy, 1);
        return 0;
    }
    t->native.refused = WIRE_NATIVE_EXEC;
    if (!may_enter())
        return 0;
    t->native.refused = WIRE_NATIVE_OFF;
    uint64_t start, end;
    while (regions_find_changed(&start, &end))
        arch_code_changes(start, end - start);
    if (regions_check())
        arch_flush();
    ops->begins(t);
    signals_intercept_libc(); /* it may have installed its handlers since the last burst */
    /* Decided once: full mode may end while the thread waits for a buffer. What it then recorded, at no
     * random moment, would represent hours. */
    int full = agent_records_all();
    t->translation.counts = count_wanted(t, uc);
    /* With --clock count-always a stretch is long, and must not keep a buffer from others. */
    if (!(t->translation.counts && count_always())) {
        t->native.refused = WIRE_NATIVE_BUFFER;
        if (!take_buffer_for(t))
            goto out;
        if (full && !agent_records_all()) {
            discard_buffer(t);
            goto out;
        }
        start_buffer(t, t->translation.buffer);
    }
    t->timing.entered_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    arch_mark_inside(t);
    uint64_t code = begin_translated(t, pc, full);
    if (code) {
        if (!t->translation.counts)
            copy_stack(t, uc);
        ops->entered(t);
        enter_translated(t, uc, code);
        t->burst.always_translated = full || agent_always_translated();
        return 1;
    }
out:
    t->timing.entered_ns = 0;
    count_forget(t);
    arch_mark_outside(t);
    __atomic_fetch_sub(&active, 1, __ATOMIC_SEQ_CST);
    return 0;
}

int burst_enter_probe(struct thread *t, ucontext_t *uc, uint64_t *words, uint64_t *end)
{
    if (agent_off || session->stop || arch_gs_in_use() || signal_prevents_entry(uc))
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
        __atomic_fetch_sub(&active, 1, __ATOMIC_SEQ_CST);
        return 0;
    }
    t->generated.cursor = words;
    t->burst.is_probe = 1;
    t->burst.full = 0;
    enter_translated(t, uc, code);
    return 1;
}

int burst_step_begin(void)
{
    __atomic_fetch_add(&stepping_native, 1, __ATOMIC_SEQ_CST);
    if (!burst_forbidden())
        return 1;
    burst_step_end();
    return 0;
}

void burst_step_end(void)
{
    uint32_t now = __atomic_load_n(&stepping_native, __ATOMIC_SEQ_CST);
    while (now != 0 && !__atomic_compare_exchange_n(&stepping_native, &now, now - 1, 0, __ATOMIC_SEQ_CST,
                                                    __ATOMIC_SEQ_CST))
        ;
}

void burst_step_resolved(struct thread *t, const ucontext_t *uc)
{
    if (t->burst.step_makes_thread && !arch_call_made(uc, t->translation.syscall_pc))
        burst_step_end();
    t->burst.step_makes_thread = 0;
}

/* Takes a buffer again, if it was handed over before an exec that has failed. Nonzero: the thread has what it
 * needs. */
static int regain_buffer(struct thread *t)
{
    int index = t->translation.buffer < 0 && !t->burst.is_probe ? await_buffer(BUFFER_WAIT_NS) : -1;
    t->burst.step_executes = 0;
    if (index >= 0) {
        start_buffer(t, index);
        t->generated.cursor = t->burst.buffer_start;
    }
    return t->burst.is_probe || t->translation.buffer >= 0;
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
    else if (!session->stop && signals_handlers_installed() && !arch_gs_in_use())
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
            publish(t, WIRE_END_MORE, 0, t->generated.cursor, UINT32_MAX, 0);
        /* No need to check `forbidden`: who forbids bursts waits for this thread anyway. */
        if (t->burst.step_makes_thread)
            __atomic_fetch_add(&stepping_native, 1, __ATOMIC_SEQ_CST);
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

void burst_forbid(int more)
{
    __atomic_fetch_add(&forbidden, more, __ATOMIC_SEQ_CST);
}

int burst_forbidden(void)
{
    return __atomic_load_n(&forbidden, __ATOMIC_SEQ_CST) != 0;
}

int burst_none_active(void)
{
    return __atomic_load_n(&active, __ATOMIC_SEQ_CST) == 0 &&
           __atomic_load_n(&stepping_native, __ATOMIC_SEQ_CST) == 0;
}

void burst_forked(void)
{
    active = stepping_native = 0;
}
