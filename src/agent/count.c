/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c - the clock without counters: how many references a thread makes per nanosecond of its CPU time.
 *
 * A trigger does not begin a recorded burst at once, but a stretch in which the same code is translated such
 * that it counts its references and does nothing else (arch/x86_64/count.h). Its first part warms up; the
 * second is timed; then the recorded burst begins, where the stretch has come to. Everything that can happen
 * in a burst can happen in a stretch. What cuts it short does not cost the burst, which then begins a little
 * later, with what was counted till then.
 *
 * Counting code looks at no clock. A timer of the thread's (on real time: those on CPU time only have the
 * kernel's tick) interrupts it; the handler notes the time and closes a page that every block reads from, and
 * the fault that follows is where a part ends. A system call that may wait is never interrupted: the page is
 * closed before it instead.
 *
 * Counting always is one stretch without end, stopped now and then to look after signals, with recorded
 * bursts in between.
 */
#include <string.h>
#include <time.h>
#include "agent/agent.h"
#include "agent/sys.h"

static int possible;

void count_init(void)
{
    possible =
        session->clock != WIRE_CLOCK_CPUTIME && session->mode == WIRE_MODE_BURST && arch_count_init() == 0;
}

int count_always(void)
{
    return possible && session->clock == WIRE_CLOCK_COUNT_ALWAYS;
}

int count_is_alarm(const siginfo_t *info)
{
    return info->si_code == SI_TIMER && info->si_value.sival_ptr == &possible;
}

/* 0: the thread has all that it needs. */
static int get_ready(struct thread *t)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGTRAP};
    event.sigev_value.sival_ptr = &possible;
    event._sigev_un._tid = (int)t->tid;
    if (!t->has_count_timer)
        t->has_count_timer = !sys_failed(sys3(SYS_timer_create, CLOCK_MONOTONIC, &event, &t->count_timer));
    return t->has_count_timer ? arch_count_ready(t) : -1;
}

int count_wanted(struct thread *t, const ucontext_t *uc)
{
    int wanted = possible && !t->count.done && arch_count_can(uc);
    t->count.done = 0;
    if (!wanted)
        return 0;
    uint64_t began = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int ready = get_ready(t) == 0;
    uint64_t ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    count_add(&proc->count.count_cpu_ns, ns);
    count_add(&proc->count.count_away_ns, ns);
    return ready;
}

static void set_timer(struct thread *t, uint64_t ns)
{
    struct itimerspec when = {.it_value = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}};
    sys4(SYS_timer_settime, t->count_timer, 0, &when, 0);
    t->count.timed = ns != 0;
}

void count_thread_gone(struct thread *t)
{
    if (t->has_count_timer)
        sys1(SYS_timer_delete, t->count_timer);
    t->has_count_timer = 0;
}

void count_alarm(struct thread *t, const ucontext_t *uc)
{
    if (!t->count.on) /* it was late; else perhaps in the middle of a step */
        return;
    t->count.timed = 0;
    t->count.alarm_cpu_ns = arch_in_cache(arch_pc(uc)) ? sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
    if (!t->count.closed)
        arch_count_close(t);
    t->count.closed = 1;
}

/* Nothing is to interrupt the thread any more: not an alarm that waits either, which a program that blocks
 * SIGTRAP would find, or the one that it executes. */
static void disarm(struct thread *t)
{
    uint64_t pending = 0, trap = SIGNAL_BIT(SIGTRAP);
    if (!t->count.timed)
        return;
    set_timer(t, 0);
    sys2(SYS_rt_sigpending, &pending, sizeof pending);
    if (!(pending & trap))
        return;
    siginfo_t info;
    struct timespec at_once = {0, 0};
    if (!sys_failed(sys4(SYS_rt_sigtimedwait, &trap, &info, &at_once, sizeof trap)) && !count_is_alarm(&info))
        sys4(SYS_rt_tgsigqueueinfo, process_id, t->tid, SIGTRAP, &info);
}

void count_pause(struct thread *t)
{
    if (!t->count.on)
        return;
    disarm(t);
    if (!t->count.closed)
        arch_count_close(t);
    t->count.closed = 1;
    t->count.alarm_cpu_ns = 0;
}

static void begin_part(struct thread *t, uint64_t total)
{
    struct counting *c = &t->count;
    c->part_total = total;
    c->part_away_ns = c->away_ns;
    c->part_cpu_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Where the next recorded burst begins: at a random place of the next stratum, which is as long as the budget
 * wants it in CPU time, at the thread's rate so far. */
static void plan_burst(struct thread *t, uint64_t total)
{
    struct counting *c = &t->count;
    uint64_t ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID),
             gap_ns = __atomic_load_n(&session->gap_ns, __ATOMIC_RELAXED);
    c->per_us = total > COUNT_RATE_REFS && ns >= 1000 ? total / (ns / 1000) + 1 : COUNT_FIRST_RATE;
    c->gap_refs = gap_ns / 1000 * c->per_us + 1;
    c->burst_at = c->stratum_end + random_next(&t->random) % c->gap_refs;
    c->stratum_end += c->gap_refs;
}

/* Counting always: until the thread is looked at again. */
static uint64_t lap_ns(const struct counting *c, uint64_t total)
{
    uint64_t left = c->burst_at > total ? (c->burst_at - total) * 1000 / c->per_us : 0;
    return left < COUNT_LEAST_NS ? COUNT_LEAST_NS : left > COUNT_LAP_NS ? COUNT_LAP_NS : left;
}

void count_begin(struct thread *t)
{
    struct counting *c = &t->count;
    c->part = 0;
    c->refs = c->ns = 0;
    c->cpu_start_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (c->closed)
        arch_count_open(t);
    c->closed = 0;
    c->away_ns = 0;
    if (count_always() && c->gap_refs == 0)
        plan_burst(t, c->total);
    set_timer(t, count_always() ? lap_ns(c, c->total) : COUNT_WARM_NS);
    begin_part(t, c->total);
    c->away_ns = c->part_away_ns = c->part_cpu_ns - c->cpu_start_ns;
    count_add(&proc->count.counts, 1);
}

void count_take(struct thread *t, uint64_t counted)
{
    uint64_t more = counted - t->count.taken;
    t->count.taken = counted;
    t->count.total += more;
    count_add(&proc->count.count_refs, more);
}

/* CPU time that the part has taken up to then, without what was spent in code of ours. */
static uint64_t elapsed(const struct counting *c, uint64_t cpu_ns)
{
    uint64_t away = c->part_cpu_ns + c->away_ns - c->part_away_ns;
    return cpu_ns > away ? cpu_ns - away : 0;
}

void count_end(struct thread *t)
{
    struct counting *c = &t->count;
    uint64_t now = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID),
             ns = elapsed(c, c->alarm_cpu_ns ? c->alarm_cpu_ns : now);
    disarm(t);
    if (c->closed)
        arch_count_open(t);
    c->closed = 0;
    if (c->part == 1 && ns >= COUNT_TIMED_NS / COUNT_LEAST_SHARE) {
        c->refs = c->total - c->part_total;
        c->ns = ns;
    }
    c->on = 0;
    c->alarm_cpu_ns = 0;
    c->done = !count_always();
    count_add(&proc->count.count_cpu_ns, now - c->cpu_start_ns);
    count_add(&proc->count.count_away_ns, c->away_ns);
}

void count_forget(struct thread *t)
{
    t->count.on = t->count.done = 0;
    t->count.refs = t->count.ns = 0;
}

/* Whether the recorded burst is to begin now; if not, all is set for what comes next. */
static int is_over(struct thread *t, uint64_t total)
{
    struct counting *c = &t->count;
    if (count_always()) {
        if (total + c->per_us * COUNT_LEAST_NS / 1000 >= c->burst_at) {
            int taken = burst_take_buffer(t);
            c->burst_gap = c->gap_refs;
            plan_burst(t, total);
            if (taken)
                return 1;
        }
        set_timer(t, lap_ns(c, total));
        return 0;
    }
    uint64_t stopped = c->alarm_cpu_ns ? c->alarm_cpu_ns : sys_clock_ns(CLOCK_THREAD_CPUTIME_ID),
             wanted = c->part ? COUNT_TIMED_NS : COUNT_WARM_NS, ns = elapsed(c, stopped);
    if (ns < wanted / 2 && stopped - c->cpu_start_ns < COUNT_MOST_NS) {
        /* Code was translated meanwhile, or others ran. */
        set_timer(t, wanted - ns);
        c->away_ns += sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - stopped;
        return 0;
    }
    if (c->part == 1)
        return 1;
    c->part = 1;
    set_timer(t, COUNT_TIMED_NS);
    begin_part(t, total);
    return 0;
}

void count_stop(struct thread *t, ucontext_t *uc)
{
    struct counting *c = &t->count;
    uint64_t pending = 0;
    arch_count_open(t);
    c->closed = 0;
    sys2(SYS_rt_sigpending, &pending, sizeof pending);
    if (pending & ~t->app_mask & ~FAULT_SIGNALS) { /* let it in: the burst comes after it */
        arch_restore(t, uc);
        memcpy(&uc->uc_sigmask, &t->app_mask, sizeof t->app_mask);
        burst_end(t, WIRE_END_SIGNAL, 0, t->cursor, UINT32_MAX);
    } else {
        count_take(t, arch_counted(uc));
        if (is_over(t, c->total)) {
            arch_restore(t, uc);
            count_end(t);
            c->done = 0;
            burst_record(t, uc);
        }
    }
    c->alarm_cpu_ns = 0;
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
