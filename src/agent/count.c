/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c - the clock without counters: how many references a thread makes per nanosecond of its CPU time.
 *
 * A trigger does not begin a recorded burst at once, but a stretch in which the same code is translated such
 * that it counts its references and does nothing else (arch/x86_64/count.h). Its first part, a short one,
 * tells how fast the thread is, and so how long the others may be; the second warms up; the third is timed;
 * then the recorded burst begins, where the stretch has come to. Everything that can happen in a burst can
 * happen in a stretch. What cuts it short does not cost the burst, which then begins a little later, with
 * what was counted till then.
 *
 * The cursor walks through memory of which all is one page of zeros, so that it hardly touches the caches
 * that the target uses, and it needs no look at a limit: it ends in a guard region.
 *
 *      | ... | warm: 10,000 bytes -> | guard     then     | ... | timed: 100,000 bytes -> | guard
 *
 * Counting always is one stretch without end, in laps through that memory, with recorded bursts in between.
 */
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "agent/agent.h"
#include "agent/sys.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif

static uint8_t *area; /* NULL: nothing is counted */
static int populated;

void count_init(void)
{
    if (session->clock == WIRE_CLOCK_CPUTIME || session->mode != WIRE_MODE_BURST)
        return;
    uint8_t *memory = sys_map(NULL, COUNT_AREA_BYTES + COUNT_GUARD_BYTES, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (!memory || sys_failed(sys3(SYS_mprotect, memory, COUNT_AREA_BYTES, PROT_READ)))
        return;
    sys3(SYS_madvise, memory, COUNT_AREA_BYTES + COUNT_GUARD_BYTES, MADV_DONTDUMP);
    area = memory;
}

/* A child has the mapping, but has to touch its pages anew. */
void count_forked(void)
{
    populated = 0;
}

int count_always(void)
{
    return area && session->clock == WIRE_CLOCK_COUNT_ALWAYS;
}

int count_wanted(struct thread *t)
{
    int wanted = area && !t->count.done;
    t->count.done = 0;
    return wanted;
}

/* Lets the cursor stand `refs` references before the guard. */
static void place_cursor(struct thread *t, uint64_t refs)
{
    t->count.start = (uint64_t)area + COUNT_AREA_BYTES - refs;
    t->count.idle_before = t->idle_rounds;
}

static void begin_part(struct thread *t, uint64_t refs)
{
    struct counting *c = &t->count;
    c->part_length = refs;
    place_cursor(t, refs);
    c->part_total = c->total;
    c->part_idle = t->idle_rounds;
    c->part_away_ns = c->away_ns;
    c->part_cpu_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Where the next recorded burst begins: at a random place of the next stratum, which is as long as the budget
 * wants it in CPU time, at the thread's rate so far. */
static void plan_burst(struct thread *t)
{
    struct counting *c = &t->count;
    uint64_t ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID),
             gap_ns = __atomic_load_n(&session->gap_ns, __ATOMIC_RELAXED);
    uint64_t per_us = c->total > COUNT_RATE_REFS && ns >= 1000 ? c->total / (ns / 1000) : COUNT_FIRST_RATE;
    c->gap_refs = gap_ns / 1000 * per_us + 1;
    c->burst_at = c->stratum_end + random_next(&t->random) % c->gap_refs;
    c->stratum_end += c->gap_refs;
}

/* Counting always: references until the next lap of the cursor. */
static uint64_t lap(const struct thread *t)
{
    uint64_t left = t->count.burst_at > t->count.total ? t->count.burst_at - t->count.total : 1;
    return left < COUNT_AREA_BYTES ? left : COUNT_AREA_BYTES;
}

/* References for a part: as many as said, less where the thread is so slow that it would take long. */
static uint64_t length(const struct thread *t, uint64_t most, uint64_t ns)
{
    uint64_t n = t->count.pace_ps ? ns * 1000 / t->count.pace_ps : most;
    return n > most ? most : n < COUNT_PART_REFS ? COUNT_PART_REFS : n;
}

/* What a reference, or a round without any, took in the part that ends. */
static void see_pace(struct thread *t)
{
    struct counting *c = &t->count;
    uint64_t ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - c->part_cpu_ns, away = c->away_ns - c->part_away_ns,
             moved = c->total - c->part_total + t->idle_rounds - c->part_idle;
    if (moved && ns > away)
        c->pace_ps = (ns - away) * 1000 / moved;
}

void count_begin(struct thread *t)
{
    struct counting *c = &t->count;
    /* Faults on its pages would be part of the time. */
    if (!__atomic_exchange_n(&populated, 1, __ATOMIC_RELAXED))
        sys3(SYS_madvise, area, COUNT_AREA_BYTES, MADV_POPULATE_READ);
    c->part = 0;
    c->refs = c->ns = 0;
    c->cpu_start_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    arch_begin_counting(t);
    c->away_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - c->cpu_start_ns;
    if (count_always() && c->gap_refs == 0)
        plan_burst(t);
    begin_part(t, count_always() ? lap(t) : COUNT_PART_REFS);
    t->cursor = (uint64_t *)c->start;
    count_add(&proc->count.counts, 1);
}

void count_take(struct thread *t, uint64_t cursor)
{
    struct counting *c = &t->count;
    uint64_t refs = cursor - c->start - (t->idle_rounds - c->idle_before);
    c->total += refs;
    c->start = cursor;
    c->idle_before = t->idle_rounds;
    count_add(&proc->count.count_refs, refs);
}

void count_end(struct thread *t, uint64_t cursor)
{
    struct counting *c = &t->count;
    count_take(t, cursor);
    see_pace(t);
    uint64_t now = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID), ns = now - c->part_cpu_ns,
             away = c->away_ns - c->part_away_ns, refs = c->total - c->part_total;
    if (c->part == COUNT_PARTS - 1 &&
        refs + t->idle_rounds - c->part_idle >= c->part_length / COUNT_LEAST_SHARE && ns > away) {
        c->refs = refs;
        c->ns = ns - away;
    }
    c->on = 0;
    c->done = !count_always();
    count_add(&proc->count.count_cpu_ns, now - c->cpu_start_ns);
    count_add(&proc->count.count_away_ns, c->away_ns);
}

void count_forget(struct thread *t)
{
    t->count.on = t->count.done = 0;
    t->count.refs = t->count.ns = 0;
}

/* What comes when the cursor has met the guard: nonzero if the count goes on. */
static int next_part(struct thread *t)
{
    struct counting *c = &t->count;
    if (!count_always()) {
        if (c->part == COUNT_PARTS - 1)
            return 0;
        see_pace(t);
        c->part++;
        begin_part(t, c->part == COUNT_PARTS - 1 ? length(t, COUNT_TIMED_REFS, COUNT_TIMED_NS)
                                                 : length(t, COUNT_WARM_REFS, COUNT_WARM_NS));
        return 1;
    }
    if (c->total >= c->burst_at) {
        int taken = burst_take_buffer(t);
        c->burst_gap = c->gap_refs;
        plan_burst(t);
        if (taken)
            return 0;
    }
    place_cursor(t, lap(t));
    return 1;
}

void count_full(struct thread *t, ucontext_t *uc, uint64_t cursor)
{
    uint64_t pending = 0;
    count_take(t, cursor);
    sys2(SYS_rt_sigpending, &pending, sizeof pending);
    if (pending & ~t->app_mask & ~FAULT_SIGNALS) { /* let it in: the burst comes after it */
        arch_restore(t, uc);
        memcpy(&uc->uc_sigmask, &t->app_mask, sizeof t->app_mask);
        burst_end(t, WIRE_END_SIGNAL, 0, (uint64_t *)cursor, UINT32_MAX);
        return;
    }
    if (next_part(t)) {
        arch_moved_buffer(t, uc, (uint64_t *)t->count.start);
        return;
    }
    arch_restore(t, uc);
    count_end(t, cursor);
    t->count.done = 0;
    burst_record(t, uc);
}

uint64_t count_away(const struct thread *t)
{
    return t->count.on ? sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
}

void count_back(struct thread *t, uint64_t away)
{
    if (away)
        t->count.away_ns += sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - away;
}
