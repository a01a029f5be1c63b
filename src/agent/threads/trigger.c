/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trigger.c - when a followed thread is interrupted for its next burst: by a perf event that the collector
 * opens, or by a POSIX timer on its CPU time.
 */
#include <sys/resource.h>
#include <time.h>
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/phases.h"
#include "agent/threads/threads.h"
#include "agent/translator/translator.h"
#include "base/random.h"

void trigger_create_timer(struct thread *t)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGTRAP};
    event.sigev_value.sival_ptr = session;
    event._sigev_un._tid = (int)t->tid;
    long made = sys3(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &t->timing.timer);
    t->timing.has_timer = !sys_failed(made);
    t->timing.timer_failed = !t->timing.has_timer;
    if (t->timing.timer_failed)
        proc->timer_errno = (uint32_t)-made;
}

void trigger_claim(struct thread *t)
{
    t->timing.trigger = NULL;
    t->timing.timer_tid = NULL;
    for (uint32_t i = 0; session->perf && i < WIRE_MAX_TRIGGERS; i++) {
        uint32_t expected = 0;
        if (__atomic_load_n(&proc->trigger[i].tid, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&proc->trigger[i].tid, &expected, t->tid, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            t->timing.trigger = &proc->trigger[i];
            t->timing.cookie = proc->cookie;
            t->timing.trigger->cookie_at = (uint64_t)&t->timing.cookie;
            __atomic_store_n(&t->timing.trigger->armed, 0, __ATOMIC_RELEASE); /* thread ids are reused */
            break;
        }
    }
}

/* Asks the collector for a trigger after gap_ns of CPU time. */
static void request_trigger(struct wire_trigger *trigger, uint64_t gap_ns, int exact)
{
    __atomic_store_n(&trigger->gap_ns, gap_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&trigger->exact, (uint32_t)exact, __ATOMIC_RELAXED);
    __atomic_fetch_add(&trigger->requested, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&proc->triggers_changed, 1, __ATOMIC_RELEASE);
    doorbell();
}

void thread_exec_begins(struct thread *t)
{
    struct timespec moment = {0, HOLD_LOOK_NS};
    if (!t || !t->timing.trigger)
        return;
    for (uint64_t waited = 0; waited < HOLD_MOST_NS; waited += HOLD_LOOK_NS) {
        uint32_t expected = WIRE_TRIGGER_FREE;
        if (__atomic_compare_exchange_n(&t->timing.trigger->hold, &expected, WIRE_TRIGGER_EXECUTING, 0,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) ||
            expected != WIRE_TRIGGER_OPENING)
            return;
        sys2(SYS_nanosleep, &moment, 0);
    }
    /* The collector is stopped, or has ended. */
    __atomic_store_n(&t->timing.trigger->hold, WIRE_TRIGGER_EXECUTING, __ATOMIC_RELEASE);
}

void thread_exec_failed(struct thread *t)
{
    if (!t || !t->timing.trigger)
        return;
    __atomic_store_n(&t->timing.trigger->hold, WIRE_TRIGGER_FREE, __ATOMIC_RELEASE);
    /* The collector was refused an event meanwhile. */
    if (__atomic_load_n(&t->timing.trigger->armed, __ATOMIC_ACQUIRE) != t->tid)
        request_trigger(t->timing.trigger, __atomic_load_n(&t->timing.trigger->gap_ns, __ATOMIC_RELAXED), 1);
}

static void set_timer(struct thread *t, uint64_t at)
{
    struct itimerspec when = {.it_value = {(time_t)(at / 1000000000u), (long)(at % 1000000000u)}};
    if (t->timing.has_timer)
        sys4(SYS_timer_settime, t->timing.timer, 1 /* TIMER_ABSTIME */, &when, 0);
}

/* A tick covers half of the time to each neighbouring tick: a burst planned there begins at this tick. If the
 * planned moment has passed without its tick, which then fell into the kernel, there is no burst for it, and
 * the next moment is drawn. */
static int tick_is_due(struct thread *t, uint64_t tick_ns, uint64_t now)
{
    uint64_t half = tick_ns / 2;
    /* No burst began at the last trigger, and none was planned since: the next one is a gap later. */
    if (t->timing.is_reached)
        return now >= t->timing.planned_ns + t->timing.gap_ns;
    while (!t->timing.takes_any_tick && t->timing.planned_ns + half < now) {
        phases_plan_next(t, t->timing.planned_ns, t->timing.gap_ns);
    }
    return now + half >= t->timing.planned_ns;
}

/* The collector would otherwise not know the thread. */
static void list_timer(struct thread *t)
{
    for (uint32_t i = 0; !t->timing.timer_tid && i < WIRE_MAX_TRIGGERS; i++) {
        uint32_t expected = 0;
        if (__atomic_compare_exchange_n(&proc->timer_tid[i], &expected, t->tid, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            t->timing.timer_tid = &proc->timer_tid[i];
    }
}

void trigger_release(struct thread *t)
{
    if (t->timing.timer_tid)
        __atomic_store_n(t->timing.timer_tid, 0, __ATOMIC_RELAXED);
    t->timing.timer_tid = NULL;
    if (!t->timing.trigger)
        return;
    __atomic_store_n(&t->timing.trigger->tid, 0, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&proc->triggers_changed, 1, __ATOMIC_RELEASE);
    doorbell();
}

/*
 * The kernel installs a thread's event whenever the thread gets a processor and removes it when the thread
 * loses it. For a thread that does little but wake others and wait for them, that takes a third of its time.
 * The thread's own timer costs nothing there, although it only fires at the kernel's tick. Events of counters
 * are kept, since they are the clock.
 */
static int event_costs_too_much(const struct thread *t, uint64_t now)
{
    struct rusage use;
    /* An event that is being opened is kept: until then this thread must not execute a program unannounced.
     */
    if (session->perf != WIRE_EVENTS_OF_TIME || !t->timing.has_timer || now < EVENT_TRIED_NS ||
        __atomic_load_n(&t->timing.trigger->armed, __ATOMIC_ACQUIRE) != t->tid ||
        sys_failed(sys2(SYS_getrusage, RUSAGE_THREAD, &use)))
        return 0;
    uint64_t switches = (uint64_t)use.ru_nvcsw + (uint64_t)use.ru_nivcsw;
    return switches * EVENT_SWITCH_NS > now / EVENT_MOST_SHARE;
}

/* Arms the trigger for the planned moment. anew: the event must be set again even if it ticks. */
static void arm_planned(struct thread *t, uint64_t now, int anew)
{
    if (t->timing.trigger && event_costs_too_much(t, now)) {
        trigger_release(t);
        t->timing.trigger = NULL;
        list_timer(t);
    }
    if (!t->timing.trigger) {
        if (t->timing.timer_failed) /* set, not added to: several threads may lack one */
            proc->count.disabled = WIRE_OFF_TIMER;
        set_timer(t, t->timing.planned_ns);
        return;
    }
    int armed = __atomic_load_n(&t->timing.trigger->armed, __ATOMIC_ACQUIRE) == t->tid;
    if (!armed || anew || __atomic_load_n(&t->timing.trigger->tick_ns, __ATOMIC_ACQUIRE) == 0)
        request_trigger(t->timing.trigger, t->timing.planned_ns - now, t->timing.exact);
    /* The timer is the fallback until the event is open, and should that fail. */
    set_timer(t, armed ? 0 : t->timing.planned_ns + BACKSTOP_NS);
}

/* ns * factor / divisor, all in nanoseconds and up to minutes. */
static uint64_t scaled(uint64_t ns, uint64_t factor, uint64_t divisor)
{
    return ns / 1000 * (factor / 1000) / (divisor / 1000 + 1) * 1000;
}

/*
 * A burst is planned when the previous one ends, and only then does the collector learn what that one cost: a
 * thread's first bursts, for which all code must be translated, cost ten times as much as later ones. If the
 * gap has grown since, the stratum grows, and moves the planned moment with it. Nonzero: that moment is still
 * to come.
 */
static int is_postponed(struct thread *t, uint64_t now)
{
    uint64_t gap = __atomic_load_n(&session->gap_ns, __ATOMIC_RELAXED);
    if (t->timing.was_counted || gap / GAP_GROWN_TIMES <= t->timing.gap_ns ||
        t->timing.planned_ns < t->timing.stratum_ns)
        return 0;
    t->timing.planned_ns =
        t->timing.stratum_ns + scaled(t->timing.planned_ns - t->timing.stratum_ns, gap, t->timing.gap_ns);
    t->timing.gap_ns = gap;
    t->timing.takes_any_tick = 0;
    if (t->timing.planned_ns < now + AGAIN_NS)
        return 0;
    t->timing.is_reached = 0;
    int exact = t->timing.exact;
    t->timing.exact = 0;
    arm_planned(t, now, exact);
    return 1;
}

/* Tells the collector where the thread was, unless the ring is full. */
static void report_tick(const struct thread *t, uint64_t pc, uint64_t cpu_ns)
{
    struct wire_ticks *ticks = &proc->ticks;
    uint64_t at = __atomic_load_n(&ticks->head, __ATOMIC_RELAXED);
    do {
        if (at - __atomic_load_n(&ticks->tail, __ATOMIC_ACQUIRE) >= WIRE_TICKS) {
            __atomic_fetch_add(&ticks->lost, 1, __ATOMIC_RELAXED);
            return;
        }
    } while (!__atomic_compare_exchange_n(&ticks->head, &at, at + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    struct wire_tick *tick = &ticks->ring[at % WIRE_TICKS];
    tick->pc = pc;
    tick->cpu_ns = cpu_ns;
    tick->at_ns = sys_clock_ns(CLOCK_MONOTONIC);
    tick->tid = t->tid;
    __atomic_store_n(&tick->number, at + 1, __ATOMIC_RELEASE);
}

static void take_sample(struct thread *t, uint64_t pc, uint64_t now)
{
    struct wire_trigger *trigger = t->timing.trigger;
    report_tick(t, pc, now);
    /* While gaps are short there is no more than one event for each burst. */
    if (trigger && __atomic_load_n(&trigger->tick_ns, __ATOMIC_ACQUIRE) != 0 && !t->timing.exact &&
        !t->timing.is_reached)
        phases_follow(t, pc, now);
}

int thread_is_due(struct thread *t, int event, uint64_t pc)
{
    if (agent_always_translated()) /* any trigger takes the thread back into translated code */
        return 1;
    uint64_t now = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (event && t->state == THREAD_NATIVE)
        take_sample(t, pc, now);
    if (is_postponed(t, now))
        return 0;
    if (!event)
        return 1;
    if (!t->timing.trigger) /* the thread uses its timer by now */
        return 0;
    if (event_costs_too_much(t, now)) {
        arm_planned(t, now, 0);
        return 0;
    }
    uint64_t tick_ns = __atomic_load_n(&t->timing.trigger->tick_ns, __ATOMIC_ACQUIRE);
    if (tick_ns == 0 || t->timing.exact)
        return __atomic_load_n(&t->timing.trigger->served, __ATOMIC_ACQUIRE) ==
               __atomic_load_n(&t->timing.trigger->requested, __ATOMIC_RELAXED);
    if (!tick_is_due(t, tick_ns, now))
        return 0;
    t->timing.is_reached = 1;
    return 1;
}

/* skip: the planned burst counts as having taken place. */
static void arm(struct thread *t, int skip)
{
    if (agent_off || session->mode == WIRE_MODE_IDLE)
        return;
    /* A thread that always stays in translated code needs no trigger while a burst runs; this is called again
     * at its end. */
    uint64_t gap = agent_always_translated()
                       ? t->state == THREAD_BURST ? NEVER_NS : REENTER_NS
                       : __atomic_load_n(&session->gap_ns, __ATOMIC_RELAXED); /* the budget changes it */
    if (!t->timing.was_counted)
        t->timing.gap_ns = gap;
    uint64_t now = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t from = skip && t->timing.planned_ns < now ? t->timing.planned_ns
                    : t->timing.entered_ns             ? t->timing.entered_ns
                                                       : now;
    if (t->timing.entered_ns && session->begins_full) { /* the burst's time is not the thread's own */
        t->timing.translated_ns += now - t->timing.entered_ns;
        from += now - t->timing.entered_ns;
    }
    t->timing.entered_ns = 0;
    phases_plan_next(t, from, gap);
    /* Moments that have passed in the same system call, where no burst can begin. */
    while (skip && t->timing.planned_ns < now)
        phases_plan_next(t, t->timing.planned_ns, gap);
    uint64_t at = t->timing.planned_ns;
    /* The burst lasted beyond the next planned moment. That burst begins as soon as possible: otherwise slow
     * code would be sampled too rarely. */
    t->timing.takes_any_tick = !skip && at < now + AGAIN_NS;
    if (t->timing.takes_any_tick)
        at = now + AGAIN_NS;
    t->timing.exact = t->timing.was_counted || t->timing.is_first;
    /* A counting stretch that was cut short must not cost the burst: it begins a little later. */
    if (t->timing.was_counted)
        at = now + AGAIN_NS + random_splitmix64(&t->timing.random) % AGAIN_NS;
    if (t->timing.is_first) { /* the first stratum is sampled, too */
        at = now + random_splitmix64(&t->timing.random) % gap;
        t->timing.stratum_ns = now;
        t->timing.is_first = 0;
    }
    t->timing.planned_ns = at;
    t->timing.is_reached = 0;
    arm_planned(t, now, t->timing.exact);
}

void thread_arm(struct thread *t)
{
    arm(t, 0);
}

void thread_skip_planned(struct thread *t)
{
    arm(t, 1);
}

void thread_trigger(struct thread *t)
{
    /* The code is not negative: beyond RLIMIT_SIGPENDING the kernel drops all other information of such a
     * signal. */
    siginfo_t info = {.si_signo = SIGTRAP, .si_code = SI_USER, .si_errno = THREAD_TRIGGERED};
    info.si_value.sival_ptr = session;
    sys4(SYS_rt_tgsigqueueinfo, process_id, t->tid, SIGTRAP, &info);
}

void thread_leave_burst(const struct thread *t)
{
    if (__atomic_load_n(&t->state, __ATOMIC_RELAXED) != THREAD_NATIVE)
        sys1(SYSCALL_LEAVE, LEAVE_MARK);
}

/* The collector may be opening an event for a request that has been withdrawn since (open_held in the
 * collector). */
static int is_event_closed(const struct wire_trigger *trigger)
{
    return __atomic_load_n(&trigger->hold, __ATOMIC_SEQ_CST) != WIRE_TRIGGER_OPENING &&
           __atomic_load_n(&trigger->armed, __ATOMIC_SEQ_CST) == 0;
}

int triggers_await_closed(void)
{
    struct timespec moment = {0, 1000000};
    uint32_t waited = 0;
    for (uint32_t i = 0; i < WIRE_MAX_TRIGGERS;)
        if (is_event_closed(&proc->trigger[i]))
            i++;
        else if (collector_gone())
            break;
        else if (waited++ == RETIRE_MS)
            return 0;
        else
            sys2(SYS_nanosleep, &moment, 0);
    return 1;
}

uint64_t thread_cpu_ns(uint32_t tid)
{
    struct timespec ts;
    long clock = (long)(~tid << 3 | 6); /* as pthread_getcpuclockid does */
    if (sys_failed(sys2(SYS_clock_gettime, (int)clock, &ts)))
        return UINT64_MAX;
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
