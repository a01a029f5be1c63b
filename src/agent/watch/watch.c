/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - observes lines until their next touch, by protecting their pages.
 *
 * A burst ends with survivors: lines that it touched and whose next touch lies beyond it. The collector
 * chooses a few of them (wire.h, struct wire_watching), and their pages are protected while the program
 * runs natively. A fault of a protected page is the awaited touch, or a touch of another line in the page.
 * In the second case the page is unprotected, a probe burst is recorded into a buffer of the thread and
 * searched for the watched lines right here, and the page is protected again. Recorded bursts begin with
 * all pages unprotected, since the collector sees every touch in them. With several threads they unprotect
 * only the pages that they access, so that the other pages stay protected for the other threads.
 *
 * System calls would fail with EFAULT on a protected page, so they are diverted (intercept/calls.c). With
 * several threads it takes more than that: call-tracker.c.
 *
 * All of this runs in signal handlers; or in interposed functions between watch_block_signals and
 * watch_unblock_signals, since a trigger in between would find tables and pages in disagreement.
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

int watch_any_protected(void)
{
    return nprotected != 0;
}

/* With one thread, calls are only diverted while a page is protected. With several, the tracker decides. */
static void stop_diverting(struct thread *t)
{
    if (t && !watch_several_threads())
        divert_disable(t);
}

void watch_pause(struct thread *t)
{
    if (!session || !session->watch)
        return;
    watch_lock();
    unprotect_pages();
    npages = 0;
    stop_diverting(t);
    watch_unlock();
}

void watch_censor_all(struct thread *t)
{
    if (!session || !session->watch)
        return;
    watch_lock();
    unprotect_pages();
    censor_all();
    npages = 0;
    stop_diverting(t);
    watch_unlock();
}

void watch_disable(struct thread *t, enum wire_unwatched why)
{
    if (!session || !session->watch)
        return;
    watch_lock();
    disable_watching(why);
    stop_diverting(t);
    watch_unlock();
}

void watch_burst_entered(struct thread *t)
{
    if (!session || !session->watch)
        return;
    if (!watch_several_threads()) {
        watch_pause(t);
        return;
    }
    watch_lock();
    mark_quiescent(t);
    t->watch.in_burst = 1;
    tracker_burst_begins(t);
    set_selector(t); /* calls made in the code cache are noted there (calls_must_leave_burst) */
    watch_unlock();
}

void watch_burst_left(struct thread *t)
{
    if (!session || !session->watch)
        return;
    if (!watch_several_threads()) { /* perhaps only since the burst began */
        t->watch.in_burst = 0;
        return;
    }
    watch_lock();
    mark_quiescent(t);
    t->watch.in_burst = 0;
    if (!t->watch.blocks_fault_signals)
        note_blocked_faults(t, t->generated.app_mask);
    set_selector(t);
    watch_unlock();
}

/* A protected page does not count as data (RLIMIT_DATA). The target could use up the limit meanwhile, and
 * unprotecting the page would fail. */
static int data_is_limited(void)
{
    struct rlimit limit;
    return sys_failed(sys4(SYS_prlimit64, 0, RLIMIT_DATA, 0, &limit)) || limit.rlim_cur != RLIM_INFINITY;
}

/* Whether a fault of this thread on a protected page would reach the agent. */
static int faults_reach_agent(const struct thread *t, uint64_t mask)
{
    return t && !t->ending && watch_used() && !session->stop &&
           !(mask & (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS)));
}

int watch_reprotect(struct thread *t, uint64_t mask)
{
    if (watch_several_threads()) {
        watch_mark_quiescent(t, mask);
        watch_lock();
        protect_pages();
        watch_unlock();
        return 1;
    }
    if (npages == 0 || t->watch.hold_depth) /* watch_release does it */
        return 1;
    if (!faults_reach_agent(t, mask) || divert_calls(t)) {
        watch_censor_all(t);
        return 0;
    }
    protect_pages();
    if (nprotected)
        t->divert.selector = CALLS_DIVERTED;
    else
        divert_disable(t);
    return 1;
}

/* The kernel gets no pointers to the stack: the target may have allocated it itself, and its pages may be
 * protected. */
void watch_block_signals(struct thread *t)
{
    static const uint64_t all = ~FAULT_SIGNALS | SIGNAL_BIT(SIGTRAP);
    if (t)
        sys4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &t->watch.saved_mask, 8);
}

void watch_unblock_signals(struct thread *t)
{
    if (!t)
        return;
    /* A thread that always stays in translated code has left it for this. */
    if (agent_always_translated() && !agent_off && !t->ending && t->state == THREAD_NATIVE &&
        !(t->watch.saved_mask & SIGNAL_BIT(SIGTRAP)))
        thread_trigger(t);
    sys4(SYS_rt_sigprocmask, SIG_SETMASK, &t->watch.saved_mask, 0, 8);
}

/* The lock is about to be taken on a stack that the target may have allocated itself, whose pages may be
 * protected. */
static void keep_stack_unprotected(void)
{
    uint64_t sp = (uint64_t)__builtin_frame_address(0), low = sp - NATIVE_STACK_BYTES;
    uint8_t byte;
    if (!watch_several_threads())
        return;
    for (uint64_t at = sp; at >= low; at -= WIRE_PAGE) /* unprotects it now, before the lock is held */
        safe_copy(&byte, (const void *)at, 1);
    watch_never_protect(low, sp);
}

void watch_block_signals_native(struct thread *t)
{
    for (;;) {
        if (__atomic_load_n(&t->state, __ATOMIC_RELAXED) != THREAD_NATIVE)
            thread_leave_burst(t);
        watch_block_signals(t);
        if (__atomic_load_n(&t->state, __ATOMIC_RELAXED) == THREAD_NATIVE)
            break;
        watch_unblock_signals(t); /* the next burst had begun already */
    }
    keep_stack_unprotected();
}

void watch_hold(struct thread *t)
{
    watch_block_signals(t);
    t->watch.hold_depth++;
    unprotect_pages();
    stop_diverting(t);
    watch_unblock_signals(t);
}

void watch_release(struct thread *t)
{
    watch_block_signals(t);
    t->watch.hold_depth--;
    if (!t->watch.hold_depth && npages != 0 && t->state == THREAD_NATIVE) /* in a burst, its end does it */
        watch_reprotect(t, t->watch.saved_mask);
    watch_unblock_signals(t);
}

/* --- questions --- */

static int question_pending; /* a thread waits for an answer, or has not read it yet */

/* The caller holds the lock. */
static int may_ask(const struct thread *t)
{
    return !t->watch.hold_depth && !question_pending && faults_reach_agent(t, t->generated.app_mask) &&
           threads_allow_protection();
}

uint32_t watch_prepare_question(struct thread *t, uint64_t number)
{
    uint32_t question = (uint32_t)(number << WIRE_QUESTION_BITS) | WIRE_QUESTION_ASKED;
    if (!session->watch)
        return 0;
    watch_account_burst(t); /* lines may be censored now */
    /* After full mode nobody answers; while every reference is counted, lines are followed in tails only. */
    int may = !t->burst.full && !t->clock.burst_gap,
        fit = may && signals_handlers_installed() && !data_is_limited();
    watch_reap();
    if (watch_several_threads())
        signals_intercept_direct();
    watch_call_ends(t); /* the burst's last call */
    watch_lock();
    fit = fit && may_ask(t);
    if (fit) {
        question_pending = 1;
        mappings_note_question();
        watching()->threads = nthreads;
        __atomic_store_n(&watching()->question, question, __ATOMIC_RELEASE);
    } else if (may) {
        count_add(&proc->count.watch_unasked, 1);
    }
    watch_unlock();
    if (!fit && !watch_several_threads())
        watch_censor_all(t);
    return fit ? question : 0;
}

/* Positive: there is an answer; 0: not in time; negative: there will be none. */
static int wait_for_answer(uint32_t question)
{
    struct wire_watching *w = watching();
    uint64_t until = sys_clock_ns(CLOCK_MONOTONIC) + ANSWER_WAIT_NS;
    for (;;) {
        uint32_t state = __atomic_load_n(&w->question, __ATOMIC_ACQUIRE), asked = question;
        if (state == WIRE_QUESTION_NONE)
            return 1;
        uint64_t now = sys_clock_ns(CLOCK_MONOTONIC);
        if (now >= until) {
            if (__atomic_compare_exchange_n(&w->question, &asked, WIRE_QUESTION_NONE, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE))
                return 0;
            if (collector_gone())
                return -1;
            /* It was stopped while answering: the table stays in its hands. */
            if (now >= until + ANSWER_GIVE_UP_NS) {
                w->off = WIRE_UNWATCHED_COLLECTOR;
                return -1;
            }
        }
        struct timespec wait = {0, 1000000};
        sys4(SYS_futex, &w->question, FUTEX_WAIT, state, &wait);
    }
}

void watch_await_answer(struct thread *t, uint32_t question)
{
    if (!session->watch || (!question && !watch_several_threads()))
        return;
    uint64_t began = cpu_ns();
    int answer = question ? wait_for_answer(question) : 0;
    if (question && answer <= 0)
        count_add(&proc->count.watch_unasked, 1);
    /* In a burst of the only thread mappings may have changed unnoticed; only the collector could tell. */
    if (question && (answer < 0 || (answer == 0 && !watch_several_threads())))
        watch_censor_all(t);
    watch_lock();
    if (answer > 0) {
        reset_spending();
        censor_thread_memory();
        rebuild_pages(t, watch_burst_app_cpu_ns(t));
        tracker_shorten_pauses();
    }
    question_pending = question ? 0 : question_pending;
    watch_unlock();
    watch_reprotect(t, t->generated.app_mask);
    if (answer > 0)
        watch_charge(t, cpu_ns() - began);
    if (question)
        charge_burst_end(t);
}

void watch_forked(void)
{
    unprotect_pages(); /* the parent did so before it forked; a mistake there must not harm the child */
    npages = nprotected = 0;
    question_pending = 0;
    tracker_forked();
    watch_time_forked();
}
