/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - lines whose next touch is waited for, by taking all access to their pages away.
 *
 * A burst leaves lines behind; the collector chooses a few of them (wire.h, struct wire_watching). Their
 * pages are closed while the program runs natively. A fault on a closed page is the touch that was waited
 * for, or one of a neighbour: then the page is opened, a short burst into a buffer of our own is recorded,
 * looked through for the watched lines right here, and the page closed again. The bursts for the collector,
 * which sees every touch in them anyway, begin with all pages open; where there are several threads, they
 * open what they meet, and the rest stays closed to the others.
 *
 * System calls would fail with EFAULT on a closed page: calls.c has them diverted. With several threads there
 * is more to it: watch-guard.c.
 *
 * All of it runs in signal handlers, or, between watch_quiet and watch_quiet_end, in functions that the
 * target called: a trigger in the midst of it would find tables and pages at odds.
 */
#include <linux/futex.h>
#include <sys/resource.h>
#include <time.h>
#include "agent/burst/burst.h"
#include "agent/divert/divert.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/watch/watch-internal.h"

int watch_closed(void)
{
    return nclosed != 0;
}

/* With one thread calls are diverted only while a page is closed; with several the guard decides. */
static void stop_diverting(struct thread *t)
{
    if (t && !watch_many())
        divert_disable(t);
}

void watch_pause(struct thread *t)
{
    if (!session || !session->watch)
        return;
    watch_lock();
    open_pages();
    npages = 0;
    stop_diverting(t);
    watch_unlock();
}

void watch_drop(struct thread *t)
{
    if (!session || !session->watch)
        return;
    watch_lock();
    open_pages();
    lose_all();
    npages = 0;
    stop_diverting(t);
    watch_unlock();
}

void watch_off(struct thread *t, enum wire_unwatched why)
{
    if (!session || !session->watch)
        return;
    watch_lock();
    turn_off(why);
    stop_diverting(t);
    watch_unlock();
}

void watch_enters(struct thread *t)
{
    if (!session || !session->watch)
        return;
    if (!watch_many()) {
        watch_pause(t);
        return;
    }
    watch_lock();
    is_seen(t);
    t->watch.in_burst = 1;
    guard_meets_burst(t);
    set_selector(t); /* calls made in the cache are noted there (calls_must_leave_burst) */
    watch_unlock();
}

void watch_leaves(struct thread *t)
{
    if (!session || !session->watch)
        return;
    if (!watch_many()) { /* perhaps since the burst began */
        t->watch.in_burst = 0;
        return;
    }
    watch_lock();
    is_seen(t);
    t->watch.in_burst = 0;
    t->watch.unfit |= (t->generated.app_mask & (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS))) !=
                      0; /* watch_close sees to it */
    set_selector(t);
    watch_unlock();
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

/* Whether a fault of this thread on a closed page would come to us. */
static int is_fit(const struct thread *t, uint64_t mask)
{
    return t && !t->ending && watch_used() && !session->stop &&
           !(mask & (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS)));
}

int watch_close(struct thread *t, uint64_t mask)
{
    if (watch_many()) {
        watch_seen(t, mask);
        watch_lock();
        close_pages();
        watch_unlock();
        return 1;
    }
    if (npages == 0 || t->watch.holds) /* watch_release does it */
        return 1;
    if (!is_fit(t, mask) || divert_calls(t)) {
        watch_drop(t);
        return 0;
    }
    close_pages();
    if (nclosed)
        t->divert.selector = CALLS_DIVERTED;
    else
        divert_disable(t);
    return 1;
}

/* The kernel gets no pointers to the stack, whose pages may be closed if the target made it. */
void watch_quiet(struct thread *t)
{
    static const uint64_t all = ~FAULT_SIGNALS | SIGNAL_BIT(SIGTRAP);
    if (t)
        sys4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &t->watch.quiet_mask, 8);
}

void watch_quiet_end(struct thread *t)
{
    if (!t)
        return;
    /* Who is to stay in the code cache has left it for us. */
    if (agent_always_translated() && !agent_off && !t->ending && t->state == THREAD_NATIVE &&
        !(t->watch.quiet_mask & SIGNAL_BIT(SIGTRAP)))
        thread_trigger(t);
    sys4(SYS_rt_sigprocmask, SIG_SETMASK, &t->watch.quiet_mask, 0, 8);
}

/* The lock will be taken on a stack that the target may have made itself, with pages that may be closed. */
static void keep_stack_open(void)
{
    uint64_t sp = (uint64_t)__builtin_frame_address(0), low = sp - NATIVE_STACK_BYTES;
    uint8_t byte;
    if (!watch_many())
        return;
    for (uint64_t at = sp; at >= low; at -= WIRE_PAGE) /* opens it before the lock is held here */
        safe_copy(&byte, (const void *)at, 1);
    watch_avoid(low, sp);
}

void watch_quiet_native(struct thread *t)
{
    for (;;) {
        if (__atomic_load_n(&t->state, __ATOMIC_RELAXED) != THREAD_NATIVE)
            thread_leave_burst(t);
        watch_quiet(t);
        if (__atomic_load_n(&t->state, __ATOMIC_RELAXED) == THREAD_NATIVE)
            break;
        watch_quiet_end(t); /* the next one had begun already */
    }
    keep_stack_open();
}

void watch_hold(struct thread *t)
{
    watch_quiet(t);
    t->watch.holds++;
    open_pages();
    stop_diverting(t);
    watch_quiet_end(t);
}

void watch_release(struct thread *t)
{
    watch_quiet(t);
    t->watch.holds--;
    if (!t->watch.holds && npages != 0 && t->state == THREAD_NATIVE) /* in a burst its end does it */
        watch_close(t, t->watch.quiet_mask);
    watch_quiet_end(t);
}

/* --- questions --- */

static int asking; /* a thread waits for an answer, or has not read it yet */

/* The lock is held. */
static int may_ask(const struct thread *t)
{
    return !t->watch.holds && !asking && is_fit(t, t->generated.app_mask) && threads_let_close();
}

uint32_t watch_asks(struct thread *t, uint64_t number)
{
    uint32_t asks = (uint32_t)(number << WIRE_TURN_BITS) | WIRE_TURN_ASKED;
    if (!session->watch)
        return 0;
    watch_burst_so_far(t); /* lines may be given up now */
    int fit = signals_handlers_installed() && !data_is_limited();
    watch_reap();
    if (watch_many())
        signals_intercept_libc();
    watch_call_ends(t); /* whichever was the burst's last */
    watch_lock();
    fit = fit && may_ask(t);
    if (fit) {
        asking = 1;
        mappings_are_asked_for();
        watching()->threads = nthreads;
        __atomic_store_n(&watching()->turn, asks, __ATOMIC_RELEASE);
    } else {
        count_add(&proc->count.watch_unasked, 1);
    }
    watch_unlock();
    if (!fit && !watch_many())
        watch_drop(t);
    return fit ? asks : 0;
}

/* Positive: there was an answer; 0: not in time; negative: there will be none. */
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
                return -1;
            if (now >= until + ANSWER_GIVE_UP_NS) { /* stopped in the midst of it: the table stays its own */
                w->off = WIRE_UNWATCHED_COLLECTOR;
                return -1;
            }
        }
        struct timespec wait = {0, 1000000};
        sys4(SYS_futex, &w->turn, FUTEX_WAIT, turn, &wait);
    }
}

void watch_ask(struct thread *t, uint32_t asks)
{
    if (!session->watch || (!asks && !watch_many()))
        return;
    uint64_t began = cpu_ns();
    int answer = asks ? wait_for_answer(asks) : 0;
    if (asks && answer <= 0)
        count_add(&proc->count.watch_unasked, 1);
    /* In a burst of the only thread's mappings may have changed: it takes the collector to tell. */
    if (asks && (answer < 0 || (answer == 0 && !watch_many())))
        watch_drop(t);
    watch_lock();
    if (answer > 0) {
        spending_starts_anew();
        settle_own_memory();
        list_pages(t, watch_burst_own_ns(t));
        guard_is_worth_it();
    }
    asking = asks ? 0 : asking;
    watch_unlock();
    watch_close(t, t->generated.app_mask);
    if (answer > 0)
        watch_spend(t, cpu_ns() - began);
    if (asks)
        burst_is_over(t);
}

void watch_forked(void)
{
    open_pages(); /* the parent did before it forked; a mistake there must not be the child's */
    npages = nclosed = 0;
    asking = 0;
    guard_forked();
    watch_time_forked();
}
