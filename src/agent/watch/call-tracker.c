/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call-tracker.c - watching with several threads: which pages must stay accessible because of system calls.
 *
 * If a page is protected while the kernel accesses memory in it for some thread, that thread's call fails.
 * So a thread that protects a page must be certain that no other thread's call uses it. Three things
 * together make that certain:
 *
 * Tracking: from the second thread on, system calls of all threads are diverted to the agent
 * (intercept/calls.c), whether a page is protected or not. Before a call is made, the thread notes what
 * memory it may access, and unprotects those pages. After the call it removes the note. A thread that
 * protects a page checks the notes.
 *
 * Epochs: when tracking begins, threads may be in calls that were made before. Nothing is protected until
 * each thread, since then, has been outside of any call (quiescent), or is still in one that was noted.
 *
 * One lock: notes and the table of pages are changed, and mprotect is called, only while it is held.
 *
 * Where this costs too much, because the program does little but make calls, tracking pauses
 * (tracker_pause), for longer each time. During a pause, a thread whose calls are what costs too much stops
 * having them diverted, when its next diverted call arrives.
 *
 * Only a thread itself starts having its calls diverted, in a handler or an interposed function, where its
 * signal mask is known: Linux kills a thread that makes a diverted call while SIGSYS is blocked, and libc
 * blocks all signals while it creates a thread or a process and when a thread ends, which is not seen where
 * calls are not diverted. Any thread can end diversion for another.
 *
 * While a thread is being created (from pthread_create until the new thread is attached), all pages are
 * unprotected: its first steps are libc's, with signals blocked and with calls that are not diverted.
 *
 * The lock is only taken in handlers, in C code called from the code cache, or natively between
 * watch_block_signals_native and watch_unblock_signals; and never while memory of the target is accessed,
 * since the handler of a fault would take it, too.
 */
#include <errno.h>
#include <time.h>
#include "agent/divert/divert.h"
#include "agent/memory.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/watch/watch-internal.h"

static uint64_t pause_began_ns; /* CPU time of the process */
/* Bursts without watching: in the next pause; left in this one. */
static unsigned next_pause_bursts, pause_bursts;

int watch_fault_in_lock(void)
{
    if (!watch_holds_lock())
        return 0;
    watch_unlock();
    unprotect_pages();
    return 1;
}

void censor_thread_memory(void)
{
    for (const struct thread *t = threads; watch_several_threads() && t; t = t->watch.next) {
        const struct watch_thread *w = &t->watch;
        censor_range(w->stack_low, w->stack_high);
        censor_range(w->fs_base - WIRE_TLS_BYTES, w->fs_base + WIRE_TLS_BYTES);
        uint64_t low = (uint64_t)t->signals.app_altstack.ss_sp;
        if (!(t->signals.app_altstack.ss_flags & SS_DISABLE))
            censor_range(low, low + t->signals.app_altstack.ss_size);
    }
}

/* --- notes of calls --- */

void set_selector(struct thread *t)
{
    const struct watch_thread *w = &t->watch;
    int divert_now = watch_used() && (tracking || !w->not_diverted);
    if (w->exits || w->makes_undiverted)
        return;
    if (!divert_now)
        divert_disable(t);
    else if (divert_calls(t) == 0)
        t->divert.selector = !w->in_burst && !w->blocks_fault_signals ? CALLS_DIVERTED : CALLS_ALLOWED;
}

void mark_quiescent(struct thread *t)
{
    struct watch_thread *w = &t->watch;
    for (unsigned i = 0; w->changes_mappings && i < w->memory.n; i++) {
        uint64_t low = w->memory.part[i].address, high = end_of(low, w->memory.part[i].bytes);
        censor_range(low, high); /* lines there may have been chosen since */
        mapping_changed(low, high);
    }
    w->call = CALL_NONE;
    w->memory_unknown = w->changes_mappings = 0;
    w->memory.n = 0;
    w->epoch = tracker_epoch;
}

void note_blocked_faults(struct thread *t, uint64_t mask)
{
    int blocked = (mask & (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS))) != 0;
    if (blocked && !t->watch.blocks_fault_signals) { /* a fault would kill it */
        unprotect_pages();
        censor_all();
        note_unnoticed_changes();
    }
    t->watch.blocks_fault_signals = blocked;
}

void watch_mark_quiescent(struct thread *t, uint64_t mask)
{
    /* In a burst the trigger may have interrupted C code of the agent that holds the lock. */
    if (!session->watch || !watch_several_threads() || t->state != THREAD_NATIVE)
        return;
    watch_lock();
    if (!t->watch.makes_undiverted) {
        mark_quiescent(t);
        note_blocked_faults(t, mask);
        set_selector(t);
    }
    watch_unlock();
}

int watch_call_begins(struct thread *t, enum watch_call how, const struct memory *m)
{
    int unprotected = 0;
    watch_lock();
    mark_quiescent(t);
    t->watch.memory_unknown = !m;
    if (m)
        t->watch.memory = *m;
    t->watch.call = how;
    if (!m) {
        unprotected = nprotected != 0;
        unprotect_pages();
    }
    for (unsigned i = 0; m && i < m->n; i++)
        unprotected |= unprotect_range(m->part[i].address, m->part[i].bytes);
    watch_unlock();
    return unprotected;
}

void watch_change_begins(struct thread *t, const struct memory *m)
{
    if (!watch_several_threads())
        return;
    watch_lock();
    mark_quiescent(t);
    t->watch.memory = *m;
    t->watch.changes_mappings = 1;
    t->watch.call = t->watch.in_burst ? CALL_OPEN_ENDED : CALL_IN_HANDLER;
    for (unsigned i = 0; i < m->n; i++) /* lines there may have been chosen since the others were settled */
        censor_range(m->part[i].address, end_of(m->part[i].address, m->part[i].bytes));
    watch_unlock();
}

void watch_call_ends(struct thread *t)
{
    watch_lock();
    mark_quiescent(t);
    watch_unlock();
}

void watch_diverted(struct thread *t)
{
    if (!watch_several_threads())
        return;
    watch_lock();
    if (!tracking && ++t->watch.calls_in_pause >= PAUSE_CALLS &&
        t->watch.calls_in_pause * watching()->fault_ns * PAUSE_SHARE >
            sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - pause_began_ns) {
        t->watch.not_diverted = 1;
        set_selector(t);
    }
    watch_unlock();
}

void watch_undiverted_begins(struct thread *t)
{
    watch_lock();
    t->watch.makes_undiverted = 1;
    t->divert.selector = CALLS_ALLOWED;
    unprotect_pages();
    watch_unlock();
}

void watch_undiverted_ends(struct thread *t)
{
    watch_lock();
    t->watch.makes_undiverted = 0;
    mark_quiescent(t);
    set_selector(t);
    protect_pages();
    watch_unlock();
}

/* --- tracking --- */

/* It is not known what a thread whose calls are not diverted does, nor whether it still is in the call
 * noted last. */
static void tracker_new_epoch(void)
{
    tracking = 1;
    tracker_epoch++;
    for (struct thread *t = threads; t; t = t->watch.next) {
        struct watch_thread *w = &t->watch;
        w->not_diverted = 0;
        w->calls_in_pause = 0;
        if (t->divert.selector == CALLS_ALLOWED && !w->in_burst && w->call == CALL_OPEN_ENDED)
            w->call = CALL_NONE;
    }
}

void tracker_start(struct thread *t)
{
    /* While threads are always in translated code nothing is watched. */
    if (!watch_several_threads() || !watch_used() || agent_always_translated())
        return;
    if (divert_calls(t))
        return;
    if (!tracking) {
        /* Other threads may have installed handlers by undiverted calls. */
        signals_intercept_direct();
        tracker_new_epoch();
    }
    set_selector(t);
    t->watch.epoch = tracker_epoch;
}

static void tracker_stop(void)
{
    unprotect_pages();
    tracking = 0;
    note_unnoticed_changes();
    for (struct thread *t = threads; t; t = t->watch.next)
        if (t->divert.is_on)
            t->divert.selector = CALLS_ALLOWED;
}

void disable_watching(enum wire_unwatched why)
{
    unprotect_pages();
    censor_all();
    npages = 0;
    watching()->off = (uint32_t)why;
    tracker_stop();
}

int divert_calls(struct thread *t)
{
    if (!t->divert.is_on && watch_several_threads()) /* installed while no calls were diverted */
        signals_intercept_direct();
    int result = divert_enable(t);
    if (result)
        disable_watching(WIRE_UNWATCHED_KERNEL);
    return result;
}

void tracker_pause(void)
{
    if (!tracking)
        return;
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (is_pending(&watching()->watch[i]))
            return;
    unprotect_pages();
    tracking = 0;
    note_unnoticed_changes();
    pause_began_ns = sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    next_pause_bursts = next_pause_bursts ? next_pause_bursts * 2 : 1;
    if (next_pause_bursts > PAUSE_MOST_BURSTS)
        next_pause_bursts = PAUSE_MOST_BURSTS;
    pause_bursts = next_pause_bursts;
    count_add(&proc->count.watch_pauses, 1);
}

void tracker_burst_begins(struct thread *t)
{
    if (pause_bursts)
        pause_bursts--;
    else
        tracker_start(t);
}

int tracker_is_paused(void)
{
    return pause_bursts != 0;
}

void tracker_shorten_pauses(void)
{
    next_pause_bursts /= 2;
}

void tracker_forked(void)
{
    notes_forked();
    next_pause_bursts = pause_bursts = 0;
}

/* --- threads that have ended --- */

void unlink_thread(const struct thread *gone)
{
    for (struct thread **at = &threads; *at; at = &(*at)->watch.next)
        if (*at == gone) {
            *at = gone->watch.next;
            nthreads--;
            break;
        }
    if (watch_several_threads())
        return;
    tracker_stop();
    /* From now on the last thread's calls are diverted only while pages are protected. Until they are again,
     * it may change their rights. */
    censor_all();
    npages = 0;
}

void watch_reap(void)
{
    struct thread *gone = NULL;
    if (!session->watch || !watch_several_threads())
        return;
    watch_lock();
    for (struct thread *t = threads, *next; t; t = next) {
        next = t->watch.next;
        if (t->ending && sys3(SYS_tgkill, process_id, t->tid, 0) == -ESRCH) {
            unlink_thread(t);
            t->watch.next = gone;
            gone = t;
        }
    }
    watch_unlock();
    while (gone) {
        struct thread *t = gone;
        gone = t->watch.next;
        thread_forget(t);
    }
}
