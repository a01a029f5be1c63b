/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c - the clock without hardware counters: references of a thread per nanosecond of its CPU time.
 *
 * A trigger does not begin a recorded burst at once. First comes a stretch in which the same code is
 * translated so that it only counts its references (translator/x86_64/count.h). The first part of the stretch
 * warms up, the second is timed; then the recorded burst begins where the stretch has arrived. Everything
 * that can happen in a burst can happen in a stretch. An event that cuts the stretch short does not cost the
 * burst: it begins a little later, with what was counted until then.
 *
 * If time alone decided, bursts would begin more often in slow code. Weighting by a rate corrects that only
 * if it is the rate at that very place, since programs change between slow and fast code within microseconds.
 * Therefore the burst begins a random number K of references after the mark at which the time has elapsed,
 * with K up to COUNT_NEAR_REFS. Then the probability of beginning at a given reference is proportional to the
 * time of the parts between marks that end within the COUNT_NEAR_REFS before it, and that time is what is
 * reported (marks.c).
 *
 * Counting code does not read a clock. At a mark, every few thousand references, it calls C code, which does.
 * A timer of the thread interrupts the stretch if no mark is reached (in real time: timers of CPU time only
 * have the resolution of the kernel's tick). Its handler notes the time and write-protects a page that the
 * blocks of loops write to; the fault that follows is where the part ends. A system call that may wait is
 * never interrupted: the page is protected before it instead.
 *
 * Where every reference is counted (WIRE_MODE_COUNT) a stretch lasts as long as that mode. It is stopped
 * regularly to look for signals and at the mode, and recorded bursts come in between.
 */
#include <string.h>
#include <time.h>
#include "agent/clock/clock.h"
#include "agent/signals/signals.h"
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/translator/translator.h"
#include "base/random.h"

static int supported;
static uint64_t start_ns, start_ticks; /* at the start of the process */

void count_init(void)
{
    if (!arch_has_ticks())
        return;
    start_ns = sys_clock_ns(CLOCK_MONOTONIC);
    start_ticks = arch_ticks();
    supported = session->clock != WIRE_CLOCK_CPUTIME && (session->begins_full || !agent_records_all()) &&
                arch_count_init() == 0;
    agent_set_can_count(supported);
}

int count_is_alarm(const siginfo_t *info)
{
    return info->si_code == SI_TIMER && info->si_value.sival_ptr == &supported;
}

/* Prepares the thread for counting. 0, or -1. */
static int get_ready(struct thread *t)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGTRAP};
    event.sigev_value.sival_ptr = &supported;
    event._sigev_un._tid = (int)t->tid;
    if (!t->clock.has_timer)
        t->clock.has_timer = !sys_failed(sys3(SYS_timer_create, CLOCK_MONOTONIC, &event, &t->clock.timer));
    return t->clock.has_timer ? arch_count_prepare(t) : -1;
}

int count_wanted(struct thread *t, const ucontext_t *uc)
{
    int wanted = supported && !agent_records_all() && !t->timing.was_counted && arch_count_possible(uc);
    t->timing.was_counted = 0;
    /* For the whole stretch: the mode may change in it. */
    t->clock.endless = wanted && agent_counts_all();
    t->clock.burst_gap = 0;
    if (!wanted)
        return 0;
    uint64_t began = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int ready = get_ready(t) == 0;
    uint64_t ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    count_add(&proc->count.count_cpu_ns, ns);
    count_add(&proc->count.count_agent_ns, ns);
    return ready;
}

static void set_timer(struct thread *t, uint64_t ns)
{
    struct itimerspec when = {.it_value = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}};
    sys4(SYS_timer_settime, t->clock.timer, 0, &when, 0);
    t->clock.timed = ns != 0;
}

void count_thread_gone(struct thread *t)
{
    if (t->clock.has_timer)
        sys1(SYS_timer_delete, t->clock.timer);
    t->clock.has_timer = 0;
}

void count_alarm(struct thread *t, const ucontext_t *uc)
{
    if (!t->translation.counts) /* too late: the stretch has ended */
        return;
    t->clock.timed = 0;
    t->clock.alarm_cpu_ns = arch_in_cache(arch_pc(uc)) ? sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
    if (!t->clock.stop_requested)
        arch_count_request_stop(t);
    t->clock.stop_requested = 1;
}

/* Cancels the alarm, and removes one that is pending: a program that blocks SIGTRAP would find it, or the
 * program that it executes. */
static void cancel_alarm(struct thread *t)
{
    uint64_t pending = 0, trap = SIGNAL_BIT(SIGTRAP);
    if (!t->clock.timed)
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
    if (!t->translation.counts)
        return;
    cancel_alarm(t);
    if (!t->clock.stop_requested)
        arch_count_request_stop(t);
    t->clock.stop_requested = t->clock.paused = 1;
    t->clock.alarm_cpu_ns = 0;
}

/* Real time of the stretch so far that was not spent in the target's code. */
static uint64_t excluded_ns(const struct counting *c)
{
    return c->agent_ns + c->calls_ns + c->idle_ns;
}

static void begin_part(struct thread *t, uint64_t total)
{
    struct counting *c = &t->clock;
    c->part_total = total;
    c->part_agent_ns = c->agent_ns;
    c->part_calls_ns = c->calls_ns;
    c->part_idle_ns = c->idle_ns;
    c->part_cpu_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    c->approach = APPROACH_NOT_YET;
    c->marks = 1;
    c->part_ticks = arch_ticks();
    c->mark[0] = (struct count_mark){total, c->part_ticks, excluded_ns(c), count_page_faults()};
}

/* CPU time of the thread in all stretches until now, without the agent's own code. */
static uint64_t counted_ns(const struct counting *c, uint64_t now)
{
    uint64_t ns = now - c->cpu_start_ns;
    return c->counted_ns + (ns > c->agent_ns ? ns - c->agent_ns : 0);
}

/*
 * Plans the next recorded burst at a random point of the next stratum. The stratum's length is the budget's,
 * in CPU time of the program, converted by the thread's rate so far. Until that is known strata are short,
 * since slow code would take long for one of a typical rate. They have a burst with such a probability that
 * it represents one of that length; so threads that end before are sampled as often as others.
 */
static void plan_burst(struct thread *t, uint64_t total)
{
    struct counting *c = &t->clock;
    uint64_t us = counted_ns(c, sys_clock_ns(CLOCK_THREAD_CPUTIME_ID)) / 1000,
             gap_ns = __atomic_load_n(&session->gap_ns, __ATOMIC_RELAXED);
    int knows_rate = total > COUNT_RATE_REFS && us;
    c->per_us = knows_rate ? total / us + 1 : COUNT_FIRST_RATE;
    c->gap_refs = gap_ns / 1000 * c->per_us + 1;
    uint64_t length = knows_rate || c->gap_refs <= COUNT_RATE_REFS ? c->gap_refs : COUNT_RATE_REFS + 1,
             at = random_splitmix64(&t->timing.random) % c->gap_refs;
    c->without_burst = at >= length;
    c->burst_at = c->stratum_end + (c->without_burst ? length : at);
    c->stratum_end += length;
}

/* An endless stretch: time until the thread is stopped to look for signals. */
static uint64_t lap_ns(const struct counting *c, uint64_t total)
{
    uint64_t left = c->burst_at > total ? (c->burst_at - total) * 1000 / c->per_us : 0;
    return left < COUNT_LEAST_NS ? COUNT_LEAST_NS : left > COUNT_LAP_NS ? COUNT_LAP_NS : left;
}

static uint64_t aim_of(const struct counting *c, uint64_t total)
{
    return c->burst_at > total ? c->burst_at - total : 1;
}

void count_begin(struct thread *t)
{
    struct counting *c = &t->clock;
    uint64_t us = (sys_clock_ns(CLOCK_MONOTONIC) - start_ns) / 1000;
    c->ticks_per_us = us ? (arch_ticks() - start_ticks) / us : 0;
    c->ticks_per_us += !c->ticks_per_us;
    c->part = c->paused = 0;
    t->translation.counted_blocks = c->blocks = c->turns = c->warm_ns = c->warm_blocks = 0;
    c->refs = c->ns = c->near_refs = c->near_ns = c->call_ns = c->paging_ns = 0;
    c->calls_ns = c->idle_ns = c->call_cpu_ns = 0;
    c->reported_cpu_ns = c->reported_agent_ns = 0;
    c->cpu_start_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (c->stop_requested)
        arch_count_cancel_stop(t);
    c->stop_requested = 0;
    c->agent_ns = 0;
    if (c->endless && c->gap_refs == 0)
        plan_burst(t, c->total);
    set_timer(t, c->endless ? lap_ns(c, c->total) : COUNT_WARM_NS + COUNT_TIMED_NS + COUNT_NEAR_NS);
    t->translation.counter_aim = c->endless ? aim_of(c, c->total) : COUNT_MARK_REFS;
    begin_part(t, c->total);
    c->faults = c->mark[0].faults;
    c->agent_ns = c->part_agent_ns = c->part_cpu_ns - c->cpu_start_ns;
    count_add(&proc->count.counts, 1);
}

/* Adds the stretch's time to the process's counters. A stretch without an end does so at each stop, since the
 * collector ends counting by them. */
static void report_time(struct counting *c, uint64_t now)
{
    count_add(&proc->count.count_cpu_ns, now - c->cpu_start_ns - c->reported_cpu_ns);
    count_add(&proc->count.count_agent_ns, c->agent_ns - c->reported_agent_ns);
    c->reported_cpu_ns = now - c->cpu_start_ns;
    c->reported_agent_ns = c->agent_ns;
}

/* Elements of repeated string instructions that the counter does not include. Negative if most of the
 * instructions had no element, since each is counted as one. */
static int64_t string_refs(const struct thread *t)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < sizeof t->generated.strings / sizeof t->generated.strings[0]; i++)
        sum += (int64_t)(t->generated.strings[i].elements - t->generated.strings[i].counted);
    return sum;
}

int64_t count_string_hits(const struct thread *t)
{
    int64_t bytes = 0, line = session->line_bytes ? session->line_bytes : 1;
    for (unsigned i = 0; i < sizeof t->generated.strings / sizeof t->generated.strings[0]; i++)
        bytes += (int64_t)((t->generated.strings[i].elements - t->generated.strings[i].counted) << i);
    return string_refs(t) - bytes / line;
}

void count_take(struct thread *t, uint64_t counted)
{
    uint64_t more = counted - t->translation.counter_taken, strings = (uint64_t)string_refs(t),
             new_strings = strings - t->clock.string_refs_taken;
    t->translation.counter_taken = counted;
    t->clock.total += more;
    count_add(&proc->count.count_refs, more);
    if (new_strings)
        count_add(&proc->count.count_string_refs, new_strings);
    if (t->clock.endless)
        count_add(&proc->count.all_refs, more + new_strings);
    t->clock.string_refs_taken = strings;
}

/* CPU time of the part up to then, without the agent's own code and system calls. */
static uint64_t elapsed(const struct counting *c, uint64_t cpu_ns)
{
    uint64_t excluded = c->part_cpu_ns + c->agent_ns - c->part_agent_ns + c->calls_ns - c->part_calls_ns;
    return cpu_ns > excluded ? cpu_ns - excluded : 0;
}

static void add_blocks(const struct thread *t)
{
    count_add(&proc->count.count_blocks, t->translation.counted_blocks % COUNT_TURN);
    count_add(&proc->count.count_turns, t->translation.counted_blocks / COUNT_TURN);
}

/* Ends the warming part at a mark. An alarm would do, too, but its signal would leave the caches and
 * predictors cold for as long as the timed part lasts. */
static void mark_timed_part(struct thread *t)
{
    struct counting *c = &t->clock;
    c->part = 1;
    add_blocks(t);
    c->warm_ns = c->part_ns;
    c->warm_blocks = t->translation.counted_blocks;
    t->generated.counter[1] = 0;
    begin_part(t, c->total);
}

void count_marked(struct thread *t)
{
    struct counting *c = &t->clock;
    uint64_t now = arch_ticks(), aim = COUNT_MARK_REFS,
             cpu_ns = c->endless ? sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
    count_take(t, t->generated.counter[0]);
    struct count_mark *m = &c->mark[c->marks++ % COUNT_MARKS];
    *m = (struct count_mark){c->total, now, excluded_ns(c), c->part ? count_page_faults() : 0};
    t->translation.counted_blocks = t->generated.counter[1];
    uint64_t ns = count_ns_of(c, now - c->part_ticks),
             excluded = excluded_ns(c) - c->part_agent_ns - c->part_calls_ns - c->part_idle_ns;
    c->part_ns = ns > excluded ? ns - excluded : 0;
    if (c->approach)
        c->refs_to_burst -= c->refs_to_burst < COUNT_MARK_REFS ? c->refs_to_burst : COUNT_MARK_REFS;
    else if (c->part == 1 && c->part_ns >= COUNT_TIMED_NS && !c->endless) {
        c->approach = APPROACH_RUNS;
        c->refs_to_burst = 1 + random_splitmix64(&t->timing.random) % COUNT_NEAR_REFS;
    }
    if (c->endless || (c->approach && !c->refs_to_burst)) { /* the burst begins at the next block */
        c->approach = APPROACH_OVER;
        if (!c->stop_requested)
            arch_count_request_stop(t);
        c->stop_requested = 1;
        aim = COUNT_NO_AIM;
    } else if (c->part == 0 && c->part_ns >= COUNT_WARM_NS) {
        mark_timed_part(t);
        now = c->part_ticks;
    } else if (c->approach && c->refs_to_burst < aim) {
        aim = c->refs_to_burst;
    }
    arch_count_set_mark(t, NULL, aim);
    /* In a stretch without an end the thread may wait for a processor here. */
    c->agent_ns +=
        c->endless ? sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns : count_ns_of(c, arch_ticks() - now);
}

/* System calls are excluded, also from the time after which triggers fire (main/burst-events.c). A call that
 * lasts as long as a stretch would have all its triggers at its end, and the code that runs a stretch after
 * it would be sampled far too often. */
void count_call_begins(struct thread *t)
{
    struct counting *c = &t->clock;
    if (!t->translation.counts || c->endless)
        return;
    c->call_cpu_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    c->call_ticks = arch_ticks();
}

void count_call_ends(struct thread *t)
{
    struct counting *c = &t->clock;
    if (!t->translation.counts || !c->call_cpu_ns)
        return;
    uint64_t cpu_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - c->call_cpu_ns;
    uint64_t real_ns = count_ns_of(c, arch_ticks() - c->call_ticks);
    c->calls_ns += cpu_ns;
    c->idle_ns += real_ns > cpu_ns ? real_ns - cpu_ns : 0;
    c->call_cpu_ns = 0;
}

void count_end(struct thread *t)
{
    struct counting *c = &t->clock;
    uint64_t now = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID),
             ns = elapsed(c, c->alarm_cpu_ns ? c->alarm_cpu_ns : now);
    cancel_alarm(t);
    /* part_ns comes from the processor's clock, which goes on while other threads run. */
    if (c->approach == APPROACH_OVER && !c->endless && c->part_ns < ns + ns / 8) {
        count_near_times(t);
        ns = c->part_ns;
    }
    add_blocks(t);
    c->counted_ns = counted_ns(c, now);
    if (c->stop_requested)
        arch_count_cancel_stop(t);
    c->stop_requested = 0;
    if (c->part == 1 && ns >= COUNT_TIMED_NS / COUNT_LEAST_SHARE) {
        c->refs = c->total - c->part_total;
        c->ns = ns;
        c->blocks = t->translation.counted_blocks % COUNT_TURN;
        c->turns = t->translation.counted_blocks / COUNT_TURN;
        c->call_ns = c->calls_ns - c->part_calls_ns;
        c->paging_ns = c->near_refs ? count_paging_ns(t) : 0;
    }
    t->translation.counts = 0;
    c->alarm_cpu_ns = 0;
    t->timing.was_counted = !c->endless;
    report_time(c, now);
}

void count_forget(struct thread *t)
{
    t->translation.counts = t->timing.was_counted = 0;
    t->clock.refs = t->clock.ns = t->clock.near_refs = t->clock.near_ns = 0;
    t->clock.string_hits_before = count_string_hits(t);
    t->clock.string_total_before = t->clock.total;
}

/* An endless stretch: sets up the next stop, after *aim references or lap_ns. */
static void begin_lap(struct thread *t, uint64_t total, uint64_t *aim)
{
    report_time(&t->clock, sys_clock_ns(CLOCK_THREAD_CPUTIME_ID));
    set_timer(t, lap_ns(&t->clock, total));
    *aim = aim_of(&t->clock, total);
}

static void go_on(struct thread *t, ucontext_t *uc, uint64_t aim)
{
    if (aim) {
        add_blocks(t);
        arch_count_set_mark(t, uc, aim);
    }
    t->clock.alarm_cpu_ns = 0;
}

/* What is to be done. If the stretch goes on, sets up what comes next: *aim references away, if it is
 * changed. */
static enum count_verdict judge(struct thread *t, uint64_t total, int must_leave, uint64_t *aim)
{
    struct counting *c = &t->clock;
    if (c->endless) {
        if (!agent_counts_all() || must_leave)
            return COUNT_OVER;
        if (total >= c->burst_at && c->without_burst) {
            plan_burst(t, total);
        } else if (total >= c->burst_at) {
            c->burst_gap = c->skipped_gaps + c->gap_refs;
            plan_burst(t, total);
            return COUNT_RECORD;
        }
        begin_lap(t, total, aim);
        return COUNT_GO_ON;
    }
    if (c->approach == APPROACH_OVER)
        return COUNT_RECORD;
    uint64_t stopped = c->alarm_cpu_ns ? c->alarm_cpu_ns : sys_clock_ns(CLOCK_THREAD_CPUTIME_ID),
             wanted = c->part ? COUNT_TIMED_NS + COUNT_NEAR_NS : COUNT_WARM_NS, ns = elapsed(c, stopped);
    /* A pause does not end a part: code after system calls would be sampled too often. */
    int paused = c->paused;
    c->paused = 0;
    if (ns < (paused ? wanted : wanted / 2) && stopped - c->cpu_start_ns < COUNT_MOST_NS) {
        /* The time went into translating code, or to other threads. */
        set_timer(t, wanted - ns);
        c->agent_ns += sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - stopped;
        return COUNT_GO_ON;
    }
    if (c->part == 1)
        return COUNT_RECORD;
    c->part = 1;
    *aim = COUNT_MARK_REFS;
    set_timer(t, COUNT_TIMED_NS + COUNT_NEAR_NS);
    begin_part(t, total);
    c->faults = c->mark[0].faults;
    return COUNT_GO_ON;
}

enum count_verdict count_stop(struct thread *t, ucontext_t *uc, int must_leave)
{
    struct counting *c = &t->clock;
    uint64_t pending = 0, aim = 0;
    arch_count_cancel_stop(t);
    c->stop_requested = 0;
    sys2(SYS_rt_sigpending, &pending, sizeof pending);
    if (pending & ~t->generated.app_mask & ~FAULT_SIGNALS || t->signals.held_signals)
        return COUNT_SIGNAL;
    count_take(t, arch_count_value(uc));
    t->translation.counted_blocks = arch_count_blocks(t, uc);
    enum count_verdict verdict = judge(t, c->total, must_leave, &aim);
    if (verdict == COUNT_GO_ON)
        go_on(t, uc, aim);
    return verdict;
}

void count_not_recorded(struct thread *t, ucontext_t *uc)
{
    uint64_t aim;
    t->clock.skipped_gaps = t->clock.burst_gap;
    begin_lap(t, t->clock.total, &aim);
    go_on(t, uc, aim);
}

void count_recorded(struct thread *t)
{
    t->clock.skipped_gaps = 0;
}

int count_draws_long_tail(struct thread *t)
{
    struct counting *c = &t->clock;
    if (c->bursts_to_draw == 0) {
        c->bursts_to_draw = COUNT_LONG_TAIL_EVERY;
        c->bursts_to_long = random_splitmix64(&t->timing.random) % COUNT_LONG_TAIL_EVERY + 1;
    }
    c->bursts_to_draw--;
    return --c->bursts_to_long == 0;
}

uint64_t count_work_begins(const struct thread *t)
{
    if (!t->translation.counts)
        return 0;
    return t->clock.endless ? sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) : arch_ticks();
}

/* The part of the last `ns` of real time in which the thread did not run: real time since this part of the
 * stretch began, less CPU time and what was already noted as idle. */
static uint64_t idle_in(struct counting *c, uint64_t ns)
{
    uint64_t cpu_ns = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - c->part_cpu_ns,
             real_ns = count_ns_of(c, arch_ticks() - c->part_ticks),
             known_ns = cpu_ns + c->idle_ns - c->part_idle_ns,
             idle_ns = real_ns > known_ns ? real_ns - known_ns : 0;
    return idle_ns < ns ? idle_ns : ns;
}

void count_work_ends(struct thread *t, uint64_t began)
{
    struct counting *c = &t->clock;
    if (!began)
        return;
    if (c->endless) {
        c->agent_ns += sys_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
        return;
    }
    uint64_t ns = count_ns_of(c, arch_ticks() - began),
             idle_ns = ns > COUNT_LONG_WORK_NS ? idle_in(c, ns) : 0;
    c->idle_ns += idle_ns;
    c->agent_ns += ns - idle_ns + COUNT_WORK_NS;
}
