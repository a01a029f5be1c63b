/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time.c - the program's own CPU time, without what profiling took.
 *
 * It is the time of the whole process, since a line may be touched again by any thread. Execution in
 * translated code has no time here: its references are counted instead.
 */
#include <time.h>
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/watch/watch-internal.h"

static uint64_t overhead_ns; /* CPU time that was not the program's own, in total */

uint64_t cpu_ns(void)
{
    return sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t watch_app_cpu_ns(void)
{
    return sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - __atomic_load_n(&overhead_ns, __ATOMIC_RELAXED);
}

uint64_t watch_thread_ns(const struct thread *t)
{
    return cpu_ns() - t->watch.overhead_ns;
}

uint64_t watch_burst_thread_ns(const struct thread *t)
{
    return t->watch.burst_cpu_ns - t->watch.burst_overhead_ns;
}

void add_overhead(struct thread *t, uint64_t ns)
{
    t->watch.overhead_ns += ns;
    __atomic_fetch_add(&overhead_ns, ns, __ATOMIC_RELAXED);
}

void watch_burst_begins(struct thread *t)
{
    t->watch.burst_cpu_ns = cpu_ns();
    t->watch.burst_overhead_ns = t->watch.overhead_ns;
}

/* CPU time of the thread since watch_burst_begins that add_overhead does not include yet. */
static uint64_t burst_overhead_ns(const struct thread *t)
{
    return cpu_ns() - t->watch.burst_cpu_ns - (t->watch.overhead_ns - t->watch.burst_overhead_ns);
}

uint64_t watch_burst_app_cpu_ns(const struct thread *t)
{
    return watch_app_cpu_ns() - burst_overhead_ns(t);
}

uint64_t watch_translated_refs(void)
{
    return __atomic_load_n(&proc->count.count_refs, __ATOMIC_RELAXED) +
           __atomic_load_n(&proc->count.watch_refs, __ATOMIC_RELAXED);
}

void watch_account_burst(struct thread *t)
{
    add_overhead(t, burst_overhead_ns(t));
}

void charge_burst_end(struct thread *t)
{
    watch_account_burst(t);
    add_overhead(t, watching()->fault_ns * BURST_RETURN_PERCENT / 100);
}

int watch_fault_just_ended(const struct thread *t)
{
    return t->watch.fault_end_ns && cpu_ns() - t->watch.fault_end_ns < FAULT_RETURN_NS;
}

void watch_time_forked(void)
{
    overhead_ns = 0; /* the child's CPU time starts at 0 */
}
