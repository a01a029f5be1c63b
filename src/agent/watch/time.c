/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time.c - the program's own CPU time, less what profiling took; and what watching may take.
 *
 * Time is that of the whole process: a line is touched again by whichever thread. What runs in translated
 * code has no time here: its references are counted.
 */
#include <time.h>
#include "agent/divert/divert.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/watch/watch-internal.h"

static uint64_t spent_ns;    /* since the last question */
static uint64_t overhead_ns; /* CPU time that was not the program's own, in all */
static uint64_t random_state;

uint64_t cpu_ns(void)
{
    return sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t watch_own_ns(void)
{
    return sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - __atomic_load_n(&overhead_ns, __ATOMIC_RELAXED);
}

/* ns may be negative. */
static void add_overhead(struct thread *t, uint64_t ns)
{
    t->watch.overhead_ns += ns;
    __atomic_fetch_add(&overhead_ns, ns, __ATOMIC_RELAXED);
}

void watch_burst_begins(struct thread *t)
{
    t->watch.burst_cpu_ns = cpu_ns();
    t->watch.burst_overhead_ns = t->watch.overhead_ns;
}

/* CPU time of the thread since watch_burst_begins that is not known as not its own yet. */
static uint64_t burst_overhead_ns(const struct thread *t)
{
    return cpu_ns() - t->watch.burst_cpu_ns - (t->watch.overhead_ns - t->watch.burst_overhead_ns);
}

uint64_t watch_burst_own_ns(const struct thread *t)
{
    return watch_own_ns() - burst_overhead_ns(t);
}

uint64_t watch_inside_refs(void)
{
    return __atomic_load_n(&proc->count.count_refs, __ATOMIC_RELAXED) +
           __atomic_load_n(&proc->count.watch_refs, __ATOMIC_RELAXED);
}

void watch_burst_so_far(struct thread *t)
{
    add_overhead(t, burst_overhead_ns(t));
}

void burst_is_over(struct thread *t)
{
    watch_burst_so_far(t);
    add_overhead(t, watching()->fault_ns * BURST_BACK_PERCENT / 100);
}

/* Of the process' own time, that of the other threads. */
static uint64_t others_ns(const struct thread *t)
{
    return watch_own_ns() - (cpu_ns() - t->watch.overhead_ns);
}

void fault_begins(struct thread *t)
{
    t->watch.others_ns = watch_many() ? others_ns(t) : 0;
}

/*
 * On a busy page a thread is held up a hundred times in the time that it would have taken; another one runs
 * on meanwhile. Were that time, eight threads with a table of 256 KB each would seem to need megabytes. Nor
 * is it time for the page's lines, whoever left them behind: others touch them unseen.
 */
void fault_goes_on(struct thread *t)
{
    if (!t->watch.others_ns)
        return;
    uint64_t now = others_ns(t);
    if (now > t->watch.others_ns) {
        watch_lock();
        lines_wait(t->tid, t->watch.probe_page, now - t->watch.others_ns);
        watch_unlock();
    }
    t->watch.others_ns = now;
}

int watch_was_in_fault(const struct thread *t)
{
    return t->watch.fault_end_ns && cpu_ns() - t->watch.fault_end_ns < FAULT_RETURN_NS;
}

void spending_starts_anew(void)
{
    spent_ns = 0;
}

/* Too much was spent since the last question: about half of the lines are given up, whichever they are. */
static void thin_out(struct thread *t)
{
    watch_lock();
    if (!random_state)
        random_state = session->seed ^ process_id;
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (is_wanted(&watching()->watch[i]) && random_next(&random_state) & 1)
            settle(&watching()->watch[i], WIRE_WATCH_LOST);
    for (unsigned i = 0; i < npages; i++)
        if (!page_is_wanted(&pages[i]))
            open_page(&pages[i]);
    guard_rests();
    __atomic_store_n(&spent_ns, __atomic_load_n(&watching()->allowance_ns, __ATOMIC_RELAXED) / 2,
                     __ATOMIC_RELAXED);
    if (!watch_many() && nclosed == 0)
        divert_disable(t);
    watch_unlock();
}

void watch_spend(struct thread *t, uint64_t ns)
{
    count_add(&proc->count.watch_cpu_ns, ns);
    add_overhead(t, ns);
    if (__atomic_add_fetch(&spent_ns, ns, __ATOMIC_RELAXED) >
        __atomic_load_n(&watching()->allowance_ns, __ATOMIC_RELAXED))
        thin_out(t);
}

void watch_time_forked(void)
{
    overhead_ns = 0; /* of CPU time that starts anew */
}
