/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "collect/clock/trigger.h"
#include "base/random.h"
#include "collect/clock/pmu.h"
#include "collect/launch/process-time.h"
#include "collect/tunables.h"

struct triggers {
    uint32_t changes; /* changes of the process' requests that were served */
    uint64_t random;
    const struct counters *counters;
    struct refclock *clock;
    double references, first,
        cpu_ns;    /* counted so far, of all and of the first counter; and the CPU time of that */
    uint32_t used; /* elements of of[] that were ever used */
    struct {
        uint32_t tid;          /* 0: no event */
        uint32_t wanted;       /* last request that was served */
        int fd;                /* -1: could not be opened */
        struct pmu pmu;        /* if there are counters; fd is its first */
        double trigger_per_ns; /* references per ns of the current gap */
        uint64_t tick_ns;      /* period; 0: it does not tick */
        uint64_t ticks_from;   /* CLOCK_MONOTONIC, when ticking began */
    } of[WIRE_MAX_TRIGGERS];
};

static int open_event(uint32_t tid, uint64_t gap_ns)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = gap_ns,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .disabled = 1,
        .sigtrap = 1,
        .remove_on_exec = 1,
        .sig_data = WIRE_MAGIC,
    };
    return (int)syscall(SYS_perf_event_open, &attr, (pid_t)tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int triggers_available(void)
{
    struct utsname u;
    int major = 0, minor = 0;
    /* Earlier kernels accept the option, but kill a thread that happens to block SIGTRAP. */
    if (uname(&u) != 0 || sscanf(u.release, "%d.%d", &major, &minor) != 2 || major < 5 ||
        (major == 5 && minor < 18))
        return 0;
    /* In an hour: this checks whether the event can be opened, not whether it fires. */
    int fd = open_event(0, UINT64_C(3600000000000));
    if (fd < 0)
        return 0;
    close(fd);
    return 1;
}

struct triggers *triggers_new(const struct counters *counters, struct refclock *clock, uint64_t seed)
{
    struct triggers *t = calloc(1, sizeof(struct triggers));
    if (t != NULL) {
        t->counters = counters;
        t->clock = clock;
        t->random = seed;
    }
    return t;
}

static void forget(struct triggers *t, uint32_t i)
{
    if (t->of[i].tid != 0 && t->of[i].fd >= 0 && t->counters != NULL)
        pmu_close(&t->of[i].pmu);
    else if (t->of[i].tid != 0 && t->of[i].fd >= 0)
        close(t->of[i].fd);
    t->of[i].tid = 0;
}

void triggers_free(struct triggers *t)
{
    for (uint32_t i = 0; t != NULL && i < WIRE_MAX_TRIGGERS; i++)
        forget(t, i);
    free(t);
}

static uint64_t bounded_gap(uint64_t gap_ns)
{
    uint64_t most = UINT64_C(3600000000000);
    return gap_ns < TRIGGER_LEAST_NS ? TRIGGER_LEAST_NS : gap_ns > most ? most : gap_ns;
}

/* Nonzero if the thread still runs the program that made the request. Called once the event exists: a later
 * exec removes the event. */
static int same_program(uint32_t tid, uint64_t address, uint64_t cookie)
{
    uint64_t there = 0;
    struct iovec local = {&there, sizeof(there)}, remote = {(void *)(uintptr_t)address, sizeof(there)};
    return process_vm_readv((pid_t)tid, &local, 1, &remote, 1, 0) == sizeof(there) && there == cookie;
}

/* Counts the stretch of thread i that its overflow ended. 0 or -ENOMEM. */
static int count(struct triggers *t, uint32_t i)
{
    struct refclock_stretch s;
    double first;
    if (t->of[i].tid == 0 || t->of[i].fd < 0 || !pmu_ended(&t->of[i].pmu, &s, &first))
        return 0;
    s.tid = t->of[i].tid;
    s.trigger_per_ns = t->of[i].trigger_per_ns;
    t->references += s.references;
    t->first += first;
    t->cpu_ns += s.cpu_ns;
    return refclock_counted(t->clock, &s);
}

int triggers_count(struct triggers *t)
{
    int status = 0;
    for (uint32_t i = 0; t != NULL && t->counters != NULL && i < t->used && status == 0; i++)
        status = count(t, i);
    return status;
}

/* Events of the first counter in a gap, at the process' rate so far; *per_ns: that rate, of references. */
static uint64_t period_of(const struct triggers *t, uint64_t gap_ns, double *per_ns)
{
    /* Before anything was counted: a typical rate, and half of the references of the first counter's kind. */
    int known = t->cpu_ns > 0 && t->references > 0 && t->first > 0;
    *per_ns = known ? t->references / t->cpu_ns : 1;
    double events = (double)gap_ns * (known ? t->first / t->cpu_ns : 1.0 / t->counters->n);
    return events < 1 ? 1 : (uint64_t)events;
}

static int open_trigger(struct triggers *t, uint32_t i, uint32_t tid, uint64_t gap_ns)
{
    if (t->counters == NULL)
        return open_event(tid, gap_ns);
    uint64_t period = period_of(t, gap_ns, &t->of[i].trigger_per_ns);
    return pmu_open(&t->of[i].pmu, t->counters, tid, period) == 0 ? t->of[i].pmu.fd[0] : -1;
}

static void set_period(struct triggers *t, uint32_t i, struct wire_trigger *w, uint64_t period,
                       uint64_t tick_ns)
{
    ioctl(t->of[i].fd, PERF_EVENT_IOC_PERIOD, &period);
    t->of[i].tick_ns = tick_ns;
    __atomic_store_n(&w->tick_ns, tick_ns, __ATOMIC_RELEASE);
}

/* Starts a new gap now. */
static void set_gap(struct triggers *t, uint32_t i, struct wire_trigger *w, uint64_t gap_ns)
{
    uint64_t period = gap_ns;
    if (t->counters != NULL)
        period = period_of(t, gap_ns, &t->of[i].trigger_per_ns);
    set_period(t, i, w, period, 0);
    if (t->counters != NULL)
        pmu_begin(&t->of[i].pmu);
}

/* Whether the event of thread i should tick at this mean gap. */
static int may_tick(const struct triggers *t, uint64_t mean_gap_ns)
{
    return t->counters == NULL && mean_gap_ns >= TICKS_IN_GAP * TICK_LEAST_NS;
}

/* Sets the period of thread i's event, if it is wrong. */
static void set_tick(struct triggers *t, uint32_t i, struct wire_trigger *w, uint64_t mean_gap_ns,
                     uint64_t now_ns)
{
    double wanted = fmin((double)mean_gap_ns / TICKS_IN_GAP, TICK_MOST_NS),
           off = (double)t->of[i].tick_ns / wanted;
    if (off > 1 / TICK_MOST_OFF && off < TICK_MOST_OFF &&
        now_ns - t->of[i].ticks_from < TICK_GAPS * mean_gap_ns)
        return;
    /* Random, since activity of the program at the same period would always be hit, or never. */
    wanted *= 1 + TICK_SPREAD * (2 * (double)(random_splitmix64(&t->random) >> 11) * 0x1p-53 - 1);
    t->of[i].ticks_from = now_ns;
    set_period(t, i, w, (uint64_t)wanted, (uint64_t)wanted);
}

/* Opens the event and sets `armed`, if it is still requested. A thread that withdraws its request, and then
 * does not find WIRE_TRIGGER_OPENING here, relies on this order. */
static void open_wanted(struct triggers *t, uint32_t i, struct wire_proc *proc, uint32_t tid, uint64_t gap_ns)
{
    struct wire_trigger *w = &proc->trigger[i];
    if (__atomic_load_n(&w->tid, __ATOMIC_SEQ_CST) != tid)
        return;
    t->of[i].fd = open_trigger(t, i, tid, gap_ns);
    if (t->of[i].fd >= 0 && same_program(tid, w->cookie_at, proc->cookie) &&
        ioctl(t->of[i].fd, PERF_EVENT_IOC_ENABLE, 0) == 0)
        __atomic_store_n(&w->armed, tid, __ATOMIC_SEQ_CST);
}

/* Opens a new thread's event, unless the thread is about to execute another program. Should exec fail, it
 * asks again. */
static void open_held(struct triggers *t, uint32_t i, struct wire_proc *proc, uint32_t tid, uint64_t gap_ns)
{
    struct wire_trigger *w = &proc->trigger[i];
    uint32_t expected = WIRE_TRIGGER_FREE;
    t->of[i].tid = tid;
    t->of[i].fd = -1;
    t->used = i < t->used ? t->used : i + 1;
    if (!__atomic_compare_exchange_n(&w->hold, &expected, WIRE_TRIGGER_OPENING, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED))
        return;
    open_wanted(t, i, proc, tid, gap_ns);
    expected = WIRE_TRIGGER_OPENING; /* the thread stops waiting after a time */
    __atomic_compare_exchange_n(&w->hold, &expected, WIRE_TRIGGER_FREE, 0, __ATOMIC_SEQ_CST,
                                __ATOMIC_RELAXED);
    if (t->of[i].fd >= 0 && t->counters != NULL)
        pmu_begin(&t->of[i].pmu);
}

static void serve(struct triggers *t, uint32_t i, struct wire_proc *proc, uint64_t mean_gap_ns,
                  uint64_t now_ns)
{
    struct wire_trigger *w = &proc->trigger[i];
    uint32_t tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE);
    uint32_t wanted = __atomic_load_n(&w->requested, __ATOMIC_ACQUIRE);
    if (tid == t->of[i].tid && (tid == 0 || wanted == t->of[i].wanted))
        return;
    uint64_t gap_ns = bounded_gap(__atomic_load_n(&w->gap_ns, __ATOMIC_RELAXED));
    if (tid != t->of[i].tid || __atomic_load_n(&w->armed, __ATOMIC_ACQUIRE) != tid) {
        forget(t, i);
        t->of[i].tick_ns = 0;
        __atomic_store_n(&w->tick_ns, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&w->armed, 0, __ATOMIC_RELEASE);
        if (tid == 0)
            return;
        open_held(t, i, proc, tid, gap_ns);
    } else if (t->of[i].fd >= 0) {
        if (may_tick(t, mean_gap_ns) && !__atomic_load_n(&w->exact, __ATOMIC_RELAXED))
            set_tick(t, i, w, mean_gap_ns, now_ns);
        else
            set_gap(t, i, w, gap_ns);
    }
    t->of[i].wanted = wanted;
    __atomic_store_n(&w->served, wanted, __ATOMIC_RELEASE);
}

int triggers_pending(const struct triggers *t, const struct wire_proc *proc)
{
    return t != NULL && __atomic_load_n(&proc->triggers_changed, __ATOMIC_ACQUIRE) != t->changes;
}

/* The mean gap may have changed. */
static void keep_ticking(struct triggers *t, struct wire_proc *proc, uint64_t mean_gap_ns, uint64_t now_ns)
{
    int may = may_tick(t, mean_gap_ns);
    for (uint32_t i = 0; i < t->used; i++)
        if (t->of[i].tick_ns == 0)
            continue;
        else if (may)
            set_tick(t, i, &proc->trigger[i], mean_gap_ns, now_ns);
        else
            set_gap(t, i, &proc->trigger[i], bounded_gap(mean_gap_ns));
}

void triggers_serve(struct triggers *t, struct wire_proc *proc, uint64_t mean_gap_ns)
{
    if (t == NULL)
        return;
    uint32_t changes = __atomic_load_n(&proc->triggers_changed, __ATOMIC_ACQUIRE);
    uint64_t now_ns = monotonic_ns();
    keep_ticking(t, proc, mean_gap_ns, now_ns);
    if (!triggers_pending(t, proc))
        return;
    for (uint32_t i = 0; i < WIRE_MAX_TRIGGERS; i++)
        serve(t, i, proc, mean_gap_ns, now_ns);
    t->changes = changes;
}
