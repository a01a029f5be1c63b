/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allowance.c - the CPU time that watching may take from one question to the next. Where it takes more, lines
 * are given up, chosen at random: not those that cost the most, or the others would be no fair sample.
 */
#include <time.h>
#include "agent/divert/divert.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/watch/watch-internal.h"

static uint64_t spent_ns; /* since the last question */
static uint64_t random_state;

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
