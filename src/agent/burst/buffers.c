/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffers.c - the buffers of bursts: taken from those that the process shares with the collector, filled by
 * translated code, handed over with a description.
 *
 * A buffer belongs to one thread from the moment at which it is taken until it is handed over or discarded.
 * In full mode a thread that finds none waits for the collector.
 */
#include <linux/futex.h>
#include <time.h>
#include "agent/burst/burst-internal.h"
#include "agent/clock/clock.h"
#include "agent/sys/context.h"
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/threads/threads.h"
#include "agent/translator/translator.h"

const struct burst_ops *burst_ops;

static uint64_t *buffer_address(int index)
{
    return (uint64_t *)(void *)(slot + session->buffer_offset + (uint64_t)index * session->buffer_stride);
}

static uint64_t has_guard_page; /* bit i: buffer i of the slot has its guard page */

static int is_looked_for; /* one of the threads that wait for a buffer looks now and then */

void burst_attached(void)
{
    has_guard_page = 0;
    is_looked_for = 0;
}

/* Called when a buffer is used first: most processes end before they have had a burst. 0: not possible. */
static int add_guard_page(int index)
{
    if (__atomic_load_n(&has_guard_page, __ATOMIC_RELAXED) >> index & 1)
        return 1;
    if (own_guard((char *)buffer_address(index) + wire_buffer_bytes(session, (uint32_t)index)))
        return 0;
    __atomic_fetch_or(&has_guard_page, UINT64_C(1) << index, __ATOMIC_RELAXED);
    return 1;
}

/* wants_long: the long one, if it is free. Otherwise that is taken last. */
static int find_buffer(int wants_long)
{
    for (uint32_t n = 0; n < session->nbuffers; n++) {
        uint32_t i = wants_long ? session->nbuffers - 1 - n : n;
        uint32_t expected = WIRE_BUF_FREE;
        if (__atomic_load_n(&proc->buf_state[i], __ATOMIC_RELAXED) != WIRE_BUF_FREE ||
            !__atomic_compare_exchange_n(&proc->buf_state[i], &expected, WIRE_BUF_OWNED, 0, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        if (add_guard_page((int)i))
            return (int)i;
        __atomic_store_n(&proc->buf_state[i], WIRE_BUF_FREE, __ATOMIC_RELEASE);
    }
    return -1;
}

void start_buffer(struct thread *t, int index)
{
    t->translation.buffer = index;
    uint64_t all = wire_buffer_bytes(session, (uint32_t)index), bytes = session->buffer_bytes;
    if (agent_records_all())
        bytes = session->full_bytes;
    else if (t->burst.wants_long_tail)
        bytes = all;
    t->translation.buffer_end = buffer_address(index) + all / sizeof(uint64_t);
    t->burst.buffer_start = t->translation.buffer_end - bytes / sizeof(uint64_t);
    t->burst.start_ns = sys_clock_ns(CLOCK_MONOTONIC);
    t->burst.cpu_start_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    sys2(SYS_arch_prctl, 0x1003 /* ARCH_GET_FS */, &t->burst.fs_base);
    t->generated.fs_base = t->burst.fs_base;
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

void copy_stack(struct thread *t, const ucontext_t *uc)
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
    burst_ops->describe(t, d);
    count_forget(t);
    uint64_t memory = memory_bytes();
    if (memory > proc->count.memory_bytes)
        proc->count.memory_bytes = memory;
    count_add(&proc->count.burst_cpu_ns, burst_cost_ns(d));
    /* Drawn last, so that the thread is hardly ever preempted between this and handing over: buffers are
     * taken in this order. */
    d->seq = __atomic_add_fetch(&proc->next_seq, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&proc->buf_state[t->translation.buffer], WIRE_BUF_READY, __ATOMIC_RELEASE);
    t->translation.buffer = -1;
    doorbell();
}

void publish_buffer(struct thread *t, enum wire_end end, uint32_t detail, const uint64_t *end_of_words,
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

void discard_buffer(struct thread *t)
{
    if (t->translation.buffer >= 0)
        __atomic_store_n(&proc->buf_state[t->translation.buffer], WIRE_BUF_FREE, __ATOMIC_RELEASE);
    t->translation.buffer = -1;
}

/* The collector has a buffer to free. */
static int is_one_ready(void)
{
    for (uint32_t i = 0; i < session->nbuffers; i++)
        if (__atomic_load_n(&proc->buf_state[i], __ATOMIC_RELAXED) == WIRE_BUF_READY)
            return 1;
    return 0;
}

/* Lets a thread that waits for a buffer look again. */
static void wake_one_waiting(void)
{
    __atomic_fetch_add(&proc->buf_freed, 1, __ATOMIC_SEQ_CST);
    sys3(SYS_futex, &proc->buf_freed, FUTEX_WAKE, 1);
}

/* What that thread does; 0: no collector will free a buffer. The buffers of threads in system calls are
 * handed over if the collector has none: there may be more threads than buffers, and what those threads wait
 * for may be this one. */
static int look_for_buffers(uint64_t waited_ns)
{
    if (!is_one_ready())
        hand_over_waiting();
    return waited_ns < BUFFER_LOOK_NS || !collector_gone();
}

/* Full mode: waits until the collector has freed a buffer; -1: none will be freed, or not within most_ns. */
static int await_buffer(uint64_t most_ns)
{
    int index, looks = 0;
    uint64_t began = 0;
    for (;;) {
        uint32_t freed = __atomic_load_n(&proc->buf_freed, __ATOMIC_SEQ_CST);
        if ((index = find_buffer(0)) >= 0)
            break;
        uint64_t now = sys_clock_ns(CLOCK_MONOTONIC);
        if (!began)
            began = now;
        looks = looks || !__atomic_exchange_n(&is_looked_for, 1, __ATOMIC_ACQUIRE);
        if (now - began > most_ns || session->stop || (looks && !look_for_buffers(now - began)))
            break;
        struct timespec wait = {0, looks ? BUFFER_LOOK_NS : BUFFER_OTHERS_LOOK_NS};
        sys4(SYS_futex, &proc->buf_freed, FUTEX_WAIT, freed, &wait);
    }
    if (looks) { /* another one has to, now */
        __atomic_store_n(&is_looked_for, 0, __ATOMIC_RELEASE);
        wake_one_waiting();
    }
    if (began && index >= 0)
        count_add(&proc->count.stalled_ns, sys_clock_ns(CLOCK_MONOTONIC) - began);
    return index;
}

int take_buffer(struct thread *t, int wants_long_tail)
{
    t->burst.wants_long_tail = wants_long_tail;
    t->translation.buffer = agent_records_all() ? await_buffer(BUFFER_WAIT_NS) : find_buffer(wants_long_tail);
    if (t->translation.buffer >= 0)
        return 1;
    count_add(&proc->count.skipped_buffer, 1);
    if (collector_gone())
        agent_disable(WIRE_OFF_COLLECTOR);
    return 0;
}

int regain_buffer(struct thread *t)
{
    int index = t->translation.buffer < 0 && !t->burst.is_probe ? await_buffer(BUFFER_WAIT_NS) : -1;
    t->burst.step_executes = 0;
    if (index >= 0) {
        start_buffer(t, index);
        t->generated.cursor = t->burst.buffer_start;
    }
    return t->burst.is_probe || t->translation.buffer >= 0;
}

int burst_next_buffer(struct thread *t, uint64_t *end_of_words)
{
    publish_buffer(t, WIRE_END_MORE, 0, end_of_words, UINT32_MAX, 0);
    int index = await_buffer(UINT64_MAX);
    if (index < 0)
        return -1;
    start_buffer(t, index);
    return 0;
}
