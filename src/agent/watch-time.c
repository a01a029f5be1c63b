/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch-time.c - the program's own CPU time, less what profiling took; and what watching may take.
 */
#include <time.h>
#include "agent/sys.h"
#include "agent/watch.h"

static uint64_t spent_ns;    /* since the last question */
static uint64_t overhead_ns; /* CPU time that was not the program's own, in all */
static struct {              /* when the burst in progress was begun: */
    uint64_t cpu_ns, overhead_ns, counted_ns;
} burst;
static uint64_t random_state;

uint64_t cpu_ns(void)
{
    return sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t watch_own_ns(void)
{
    return cpu_ns() - overhead_ns;
}

void watch_burst_begins(void)
{
    burst.cpu_ns = cpu_ns();
    burst.overhead_ns = overhead_ns;
    burst.counted_ns = proc->count.count_cpu_ns;
}

/* Own CPU time since watch_burst_begins: of references counted before the burst. Those of the burst are few.
 */
static uint64_t counted_ns(void)
{
    return (proc->count.count_cpu_ns - burst.counted_ns) * COUNT_NATIVE_PERCENT / 100;
}

uint64_t watch_burst_own_ns(void)
{
    return burst.cpu_ns - burst.overhead_ns + counted_ns();
}

void burst_is_over(void)
{
    overhead_ns = burst.overhead_ns + (cpu_ns() - burst.cpu_ns) - counted_ns() + 2 * watching()->fault_ns;
}

void spending_starts_anew(void)
{
    spent_ns = 0;
}

/* Too much was spent since the last question: about half of the lines are given up, whichever they are. */
static void thin_out(void)
{
    if (!random_state)
        random_state = session->seed ^ process_id;
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (is_wanted(&watching()->watch[i]) && random_next(&random_state) & 1)
            settle(&watching()->watch[i], WIRE_WATCH_LOST);
    for (unsigned i = 0; i < npages; i++)
        if (!page_is_wanted(&pages[i]))
            open_page(&pages[i]);
    spent_ns = __atomic_load_n(&watching()->allowance_ns, __ATOMIC_RELAXED) / 2;
}

void watch_spend(uint64_t ns)
{
    count_add(&proc->count.watch_cpu_ns, ns);
    spent_ns += ns;
    overhead_ns += ns;
    if (spent_ns > __atomic_load_n(&watching()->allowance_ns, __ATOMIC_RELAXED))
        thin_out();
}

void watch_time_forked(void)
{
    overhead_ns = 0; /* of CPU time that starts anew */
}
