/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call-tracker.c - watching where there are several threads: whose system calls keep which pages open.
 *
 * A page that is closed while the kernel works for some thread on memory in it makes that call fail. A page
 * that a thread closes must therefore not be in use by a call of any other. Three things together make that
 * certain:
 *
 * The guard: from the second thread on, system calls of all threads are diverted to us (calls.c), whether a
 * page is closed or not. Each notes, before the call is made, what memory it may touch, opens what is closed
 * of it, and takes the note back when the call is over. Who closes a page looks at the notes.
 *
 * What is known: a guard that begins finds threads in calls made before. Nothing is closed until each thread
 * has been seen, since then, outside of any call - or is still in one that was noted.
 *
 * One lock: notes, the table of pages and mprotect are changed under it only.
 *
 * Where that costs too much, because the program does little but make calls, the guard rests (guard_rests),
 * and longer each time. Threads whose calls are what costs are let go then, each when it comes to us with
 * one.
 *
 * Only a thread itself has its calls diverted, in a handler or function of ours, where its signal mask is
 * known: Linux kills who makes a diverted call while SIGSYS is blocked, and libc blocks all signals, unseen
 * where calls are not diverted, while it makes a thread or a process, and when a thread ends. Anyone can end
 * it.
 *
 * While a thread is made (from pthread_create until it has come to thread_attach), all pages are open: its
 * first steps are libc's, with signals blocked and calls that nobody diverts.
 *
 * The lock is only taken in handlers, in C code called from the code cache, or natively between
 * watch_quiet_native and watch_quiet_end, and never while memory of the target's is touched: a fault would
 * want it, too.
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

static uint64_t rest_began_ns;   /* CPU time of the process */
static unsigned rests_for, rest; /* bursts that go unwatched: at the next rest, of this one */

int watch_faulted(void)
{
    if (!watch_holds_lock())
        return 0;
    watch_unlock();
    open_pages();
    return 1;
}

void settle_own_memory(void)
{
    for (const struct thread *t = threads; watch_many() && t; t = t->watch.next) {
        const struct watch_thread *w = &t->watch;
        lose_range(w->stack_low, w->stack_high);
        lose_range(w->fs_base - THREAD_POINTER_BELOW, w->fs_base + THREAD_POINTER_ABOVE);
        uint64_t low = (uint64_t)t->signals.app_altstack.ss_sp;
        if (!(t->signals.app_altstack.ss_flags & SS_DISABLE))
            lose_range(low, low + t->signals.app_altstack.ss_size);
    }
}

/* --- notes of calls --- */

void set_selector(struct thread *t)
{
    const struct watch_thread *w = &t->watch;
    int guarded = watch_used() && (guarding || !w->let_go);
    if (w->exits || w->let_through)
        return;
    if (!guarded)
        divert_disable(t);
    else if (divert_calls(t) == 0)
        t->divert.selector = !w->in_burst && !w->unfit ? CALLS_DIVERTED : CALLS_ALLOWED;
}

void is_seen(struct thread *t)
{
    struct watch_thread *w = &t->watch;
    for (unsigned i = 0; w->changes && i < w->memory.n; i++) {
        uint64_t low = w->memory.part[i].address, high = end_of(low, w->memory.part[i].bytes);
        lose_range(low, high); /* what came to be watched there in between */
        mapping_changes(low, high);
    }
    w->call = CALL_NONE;
    w->anything = w->changes = 0;
    w->memory.n = 0;
    w->guard = guard_number;
}

void watch_seen(struct thread *t, uint64_t mask)
{
    /* In a burst it may have been C code of ours, with the lock, that was interrupted by a trigger. */
    if (!session->watch || !watch_many() || t->state != THREAD_NATIVE)
        return;
    int blocked = (mask & (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS))) != 0;
    watch_lock();
    if (!t->watch.let_through) {
        is_seen(t);
        if (blocked && !t->watch.unfit) { /* a closed page would kill it */
            open_pages();
            lose_all();
        }
        t->watch.unfit = blocked;
        set_selector(t);
    }
    watch_unlock();
}

int watch_call_begins(struct thread *t, enum watch_call how, const struct memory *m)
{
    int opened = 0;
    watch_lock();
    is_seen(t);
    t->watch.anything = !m;
    if (m)
        t->watch.memory = *m;
    t->watch.call = how;
    if (!m) {
        opened = nclosed != 0;
        open_pages();
    }
    for (unsigned i = 0; m && i < m->n; i++)
        opened |= open_range(m->part[i].address, m->part[i].bytes);
    watch_unlock();
    return opened;
}

void watch_change_begins(struct thread *t, const struct memory *m)
{
    if (!watch_many())
        return;
    watch_lock();
    is_seen(t);
    t->watch.memory = *m;
    t->watch.changes = 1;
    t->watch.call = t->watch.in_burst ? CALL_OPEN_ENDED : CALL_IN_HANDLER;
    for (unsigned i = 0; i < m->n; i++) /* what came to be watched there since its lines were settled */
        lose_range(m->part[i].address, end_of(m->part[i].address, m->part[i].bytes));
    watch_unlock();
}

void watch_call_ends(struct thread *t)
{
    watch_lock();
    is_seen(t);
    watch_unlock();
}

void watch_diverted(struct thread *t)
{
    if (!watch_many())
        return;
    watch_lock();
    if (!guarding && ++t->watch.calls_at_rest >= REST_CALLS &&
        t->watch.calls_at_rest * watching()->fault_ns * REST_SHARE >
            sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - rest_began_ns) {
        t->watch.let_go = 1;
        set_selector(t);
    }
    watch_unlock();
}

void watch_lets_through(struct thread *t)
{
    watch_lock();
    t->watch.let_through = 1;
    t->divert.selector = CALLS_ALLOWED;
    open_pages();
    watch_unlock();
}

void watch_was_let_through(struct thread *t)
{
    watch_lock();
    t->watch.let_through = 0;
    is_seen(t);
    set_selector(t);
    close_pages();
    watch_unlock();
}

/* --- the guard --- */

/* What a thread does that was let go, or never came to us, is not known; nor that it made the call noted
 * last. */
static void guard_all_anew(void)
{
    guarding = 1;
    guard_number++;
    for (struct thread *t = threads; t; t = t->watch.next) {
        struct watch_thread *w = &t->watch;
        w->let_go = 0;
        w->calls_at_rest = 0;
        if (t->divert.selector == CALLS_ALLOWED && !w->in_burst && w->call == CALL_OPEN_ENDED)
            w->call = CALL_NONE;
    }
}

void guard_begins(struct thread *t)
{
    if (!watch_many() || !watch_used())
        return;
    if (divert_calls(t))
        return;
    if (!guarding)
        guard_all_anew();
    set_selector(t);
    t->watch.guard = guard_number;
}

void guard_ends(void)
{
    open_pages();
    guarding = 0;
    for (struct thread *t = threads; t; t = t->watch.next)
        if (t->divert.is_on)
            t->divert.selector = CALLS_ALLOWED;
}

void turn_off(enum wire_unwatched why)
{
    open_pages();
    lose_all();
    npages = 0;
    watching()->off = (uint32_t)why;
    guard_ends();
}

int divert_calls(struct thread *t)
{
    int result = divert_enable(t);
    if (result)
        turn_off(WIRE_UNWATCHED_KERNEL);
    return result;
}

void guard_rests(void)
{
    if (!guarding)
        return;
    for (unsigned i = 0; i < WIRE_MAX_WATCHES; i++)
        if (is_wanted(&watching()->watch[i]))
            return;
    open_pages();
    guarding = 0;
    rest_began_ns = sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    rests_for = rests_for ? rests_for * 2 : 1;
    if (rests_for > REST_MOST_BURSTS)
        rests_for = REST_MOST_BURSTS;
    rest = rests_for;
    count_add(&proc->count.watch_rests, 1);
}

void guard_meets_burst(struct thread *t)
{
    if (rest)
        rest--;
    else
        guard_begins(t);
}

int guard_rests_now(void)
{
    return rest != 0;
}

void guard_is_worth_it(void)
{
    rests_for /= 2;
}

void guard_forked(void)
{
    notes_forked();
    rests_for = rest = 0;
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
    if (!watch_many())
        guard_ends();
}

void watch_reap(void)
{
    struct thread *gone = NULL;
    if (!session->watch || !watch_many())
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
