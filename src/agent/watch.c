/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - lines whose next touch is waited for, by taking all access to their pages away.
 *
 * A burst leaves lines behind; the collector chooses a few of them (wire.h, struct wire_watching). Their
 * pages are closed while the program runs natively. A fault on a closed page is the touch that was waited
 * for, or one of a neighbour: then the page is opened, a short burst into a buffer of our own is recorded,
 * looked through for the watched lines right here, and the page closed again. During the bursts for the
 * collector all pages are open, since it sees every touch in them anyway.
 *
 * System calls would fail with EFAULT on a closed page: calls.c has them diverted while any page is closed.
 *
 * Only in processes with one thread: another could be asleep in a system call into memory that we close.
 *
 * All of it runs in signal handlers, or, between watch_quiet and watch_quiet_end, in functions that the
 * target called: a trigger in the midst of it would find tables and pages at odds.
 */
#include <linux/futex.h>
#include <sys/resource.h>
#include <time.h>
#include "agent/sys.h"
#include "agent/watch.h"

int watch_used(void)
{
    return session && session->watch && !agent_off && !watching()->off;
}

int watch_closed(void)
{
    return nclosed != 0;
}

void watch_open(struct thread *t)
{
    open_pages();
    if (t)
        calls_divert(t, 0);
}

void watch_pause(struct thread *t)
{
    if (!session || !session->watch)
        return;
    watch_open(t);
    npages = 0;
}

void watch_drop(struct thread *t)
{
    if (!session || !session->watch)
        return;
    watch_open(t);
    lose_all();
    npages = 0;
}

void watch_off(struct thread *t, enum wire_unwatched why)
{
    if (!session || !session->watch)
        return;
    watch_drop(t);
    watching()->off = (uint32_t)why;
}

/*
 * A closed page does not count as data (RLIMIT_DATA): what the target could take in its place, the page would
 * lack when it is opened again.
 */
static int data_is_limited(void)
{
    struct rlimit limit;
    return sys_failed(sys4(SYS_prlimit64, 0, RLIMIT_DATA, 0, &limit)) || limit.rlim_cur != RLIM_INFINITY;
}

/* Whether a fault on a closed page would come to us, and no other thread could stumble on one. */
static int may_close(const struct thread *t, uint64_t mask)
{
    return t && !t->ending && watch_used() && !session->stop && threads_followed() == 1 &&
           !(mask & (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS)));
}

int watch_close(struct thread *t, uint64_t mask)
{
    if (npages == 0)
        return 1;
    if (t->watch_hold) { /* watch_release does it */
        watch_open(t);
        return 1;
    }
    if (!may_close(t, mask) || calls_divert(t, 1)) {
        watch_drop(t);
        return 0;
    }
    for (unsigned i = 0; i < npages; i++)
        if (page_is_wanted(&pages[i]))
            close_page(&pages[i]);
    if (nclosed == 0)
        calls_divert(t, 0);
    return 1;
}

/* The kernel gets no pointers to the stack, whose pages may be closed if the target made it. */
void watch_quiet(struct thread *t)
{
    static const uint64_t all = ~FAULT_SIGNALS | SIGNAL_BIT(SIGTRAP);
    if (t)
        sys4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &t->quiet_mask, 8);
}

void watch_quiet_end(struct thread *t)
{
    if (t)
        sys4(SYS_rt_sigprocmask, SIG_SETMASK, &t->quiet_mask, 0, 8);
}

void watch_hold(struct thread *t)
{
    watch_quiet(t);
    t->watch_hold++;
    if (nclosed)
        watch_open(t);
    watch_quiet_end(t);
}

void watch_release(struct thread *t)
{
    watch_quiet(t);
    t->watch_hold--;
    if (!t->watch_hold && npages != 0 && t->state == THREAD_NATIVE) /* in a burst its end does it */
        watch_close(t, t->quiet_mask);
    watch_quiet_end(t);
}

/* --- questions --- */

uint32_t watch_asks(struct thread *t, uint64_t number)
{
    uint32_t asks = (uint32_t)(number << WIRE_TURN_BITS) | WIRE_TURN_ASKED;
    if (!session->watch)
        return 0;
    if (t->watch_hold || !may_close(t, t->app_mask) || !signals_ours() || data_is_limited()) {
        count_add(&proc->count.watch_unasked, 1);
        watch_drop(t);
        return 0;
    }
    __atomic_store_n(&watching()->turn, asks, __ATOMIC_RELEASE);
    return asks;
}

/* Nonzero if there was an answer. */
static int wait_for_answer(uint32_t asks)
{
    struct wire_watching *w = watching();
    uint64_t until = sys_clock_ns(CLOCK_MONOTONIC) + ANSWER_WAIT_NS;
    for (;;) {
        uint32_t turn = __atomic_load_n(&w->turn, __ATOMIC_ACQUIRE), asked = asks;
        if (turn == WIRE_TURN_AGENT)
            return 1;
        uint64_t now = sys_clock_ns(CLOCK_MONOTONIC);
        if (now >= until) {
            if (__atomic_compare_exchange_n(&w->turn, &asked, WIRE_TURN_AGENT, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE))
                return 0;
            if (collector_gone())
                return 0;
            if (now >= until + ANSWER_GIVE_UP_NS) { /* stopped in the midst of it: the table stays its own */
                w->off = WIRE_UNWATCHED_COLLECTOR;
                return 0;
            }
        }
        struct timespec wait = {0, 1000000};
        sys4(SYS_futex, &w->turn, FUTEX_WAIT, turn, &wait);
    }
}

void watch_ask(struct thread *t, uint32_t asks)
{
    if (!asks)
        return;
    uint64_t began = cpu_ns();
    spending_starts_anew();
    if (!wait_for_answer(asks)) {
        count_add(&proc->count.watch_unasked, 1);
        watch_drop(t); /* mappings may have changed in the burst: it takes the collector to tell */
    } else {
        list_pages();
        watch_close(t, t->app_mask);
        watch_spend(cpu_ns() - began);
    }
    burst_is_over();
}

void watch_forked(void)
{
    npages = nclosed = 0; /* the parent opened them before it forked */
    watch_time_forked();
}
