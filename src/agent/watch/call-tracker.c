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
#include <time.h>
#include "agent/divert/divert.h"
#include "agent/memory.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/watch/watch-internal.h"

struct thread *threads; /* a list */
unsigned nthreads, starting;
static uint64_t lock; /* the thread pointer of who has it; 0: free */
static int guarding;  /* 0: not yet, for good, or it rests */
static uint64_t guard_number = 1;
static uint64_t rest_began_ns;   /* CPU time of the process */
static unsigned rests_for, rest; /* bursts that go unwatched: at the next rest, of this one */

int watch_many(void)
{
    return __atomic_load_n(&nthreads, __ATOMIC_RELAXED) + __atomic_load_n(&starting, __ATOMIC_RELAXED) > 1;
}

void watch_lock(void)
{
    if (!watch_many()) /* the one thread may be in a burst, whose end finds the lock taken */
        return;
    uint64_t nobody = 0;
    while (!__atomic_compare_exchange_n(&lock, &nobody, (uint64_t)__builtin_thread_pointer(), 0,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        nobody = 0;
        sys0(SYS_sched_yield);
    }
}

void watch_unlock(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

int watch_faulted(void)
{
    if (__atomic_load_n(&lock, __ATOMIC_RELAXED) != (uint64_t)__builtin_thread_pointer())
        return 0;
    watch_unlock();
    open_pages();
    return 1;
}

/* --- what keeps pages open --- */

static int in_call(const struct thread *t)
{
    return t->watch.call == CALL_OPEN_ENDED || t->watch.call == CALL_IN_HANDLER ||
           (t->watch.call == CALL_THROUGH && arch_call_in_progress(t));
}

/* Nothing is unknown of what the kernel may touch for this thread, and its faults come to us. */
static int lets_close(const struct thread *t)
{
    const struct watch_thread *w = &t->watch;
    if (w->unfit || w->creating || w->let_through || t->watch.holds)
        return 0;
    if (in_call(t))
        return !w->anything;
    return w->guard == guard_number || w->in_burst || w->exits;
}

int watch_calls_last(const struct thread *self)
{
    int last = 0;
    if (!session->watch || !watch_many())
        return 0;
    watch_lock();
    for (const struct thread *t = threads; t; t = t->watch.next)
        last |= t != self && !t->watch.exits && t->watch.call == CALL_OPEN_ENDED;
    watch_unlock();
    return last;
}

int threads_let_close(void)
{
    if (!watch_used() || session->stop)
        return 0;
    if (!watch_many())
        return 1;
    if (!guarding || starting)
        return 0;
    for (const struct thread *t = threads; t; t = t->watch.next)
        if (!lets_close(t))
            return 0;
    return 1;
}

int page_in_use(const struct page *p)
{
    if (!watch_many())
        return 0;
    for (const struct thread *t = threads; t; t = t->watch.next) {
        if (t->burst.is_probe && t->watch.probe_page == p->address)
            return 1;
        for (unsigned i = 0; in_call(t) && i < t->watch.memory.n; i++)
            if (page_overlaps(p, t->watch.memory.part[i].address, t->watch.memory.part[i].bytes))
                return 1;
    }
    return 0;
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

static uint64_t span_end(const struct span *s)
{
    return s->address + s->bytes < s->address ? UINT64_MAX : s->address + s->bytes;
}

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
        uint64_t low = w->memory.part[i].address, high = span_end(&w->memory.part[i]);
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
        lose_range(m->part[i].address, span_end(&m->part[i]));
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

int guard_rests_now(void)
{
    return rest != 0;
}

void guard_is_worth_it(void)
{
    rests_for /= 2;
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
    if (rest)
        rest--;
    else
        guard_begins(t);
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

void guard_forked(void)
{
    threads = NULL;
    nthreads = starting = 0;
    lock = 0;
    guarding = 0;
    rests_for = rest = 0;
}
