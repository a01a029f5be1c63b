/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allowance.c - the CPU time that watching may take from one question to the next. If it takes more, lines
 * are censored, chosen at random: if the most expensive ones were chosen, the others would be a biased
 * sample.
 */
#include <time.h>
#include "agent/divert/divert.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/watch/watch-internal.h"
#include "base/random.h"

static uint64_t spent_ns; /* since the last question */
static uint64_t random_state;

void reset_spending(void)
{
    spent_ns = 0;
}

/* Too much was spent since the last question: censors about half of the lines, at random. */
static void censor_half(struct thread *t)
{
    watch_lock();
    if (!random_state)
        random_state = session->seed ^ process_id;
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (is_pending(&watching()->watch[i]) && random_splitmix64(&random_state) & 1)
            settle(&watching()->watch[i], WIRE_WATCH_CENSORED);
    for (unsigned i = 0; i < npages; i++)
        if (!page_is_pending(&pages[i]))
            unprotect_page(&pages[i]);
    tracker_pause();
    __atomic_store_n(&spent_ns, __atomic_load_n(&watching()->allowance_ns, __ATOMIC_RELAXED) / 2,
                     __ATOMIC_RELAXED);
    if (!watch_several_threads() && nprotected == 0)
        divert_disable(t);
    watch_unlock();
}

void watch_charge(struct thread *t, uint64_t ns)
{
    count_add(&proc->count.watch_cpu_ns, ns);
    add_overhead(t, ns);
    if (__atomic_add_fetch(&spent_ns, ns, __ATOMIC_RELAXED) >
        __atomic_load_n(&watching()->allowance_ns, __ATOMIC_RELAXED))
        censor_half(t);
}
