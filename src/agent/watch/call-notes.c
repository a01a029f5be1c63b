/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call-notes.c - the list of threads, and the notes about their system calls, which decide whether a page
 * may be protected. call-tracker.c writes the notes; a thread that protects a page reads them, under the
 * same lock.
 */
#include "agent/divert/divert.h"
#include "agent/signals/signals.h"
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/watch/watch-internal.h"

struct thread *threads;
unsigned nthreads, starting;
int tracking;
uint64_t tracker_epoch = 1;
static uint64_t lock; /* thread pointer of its holder; 0: free */

int watch_used(void)
{
    return session && session->watch && !agent_off && !watching()->off;
}

int watch_several_threads(void)
{
    return __atomic_load_n(&nthreads, __ATOMIC_RELAXED) + __atomic_load_n(&starting, __ATOMIC_RELAXED) > 1;
}

/* Never 0, as the FS base may be. */
static uint64_t self(void)
{
    return arch_thread_pointer() | 1;
}

void watch_lock(void)
{
    if (!watch_several_threads()) /* a single thread may be in a burst whose end would find the lock taken */
        return;
    uint64_t nobody = 0;
    for (unsigned n = 0;
         !__atomic_compare_exchange_n(&lock, &nobody, self(), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED); n++) {
        nobody = 0;
        sys_wait_moment(n);
    }
}

void watch_unlock(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

int watch_holds_lock(void)
{
    return __atomic_load_n(&lock, __ATOMIC_RELAXED) == self();
}

static int in_call(const struct thread *t)
{
    return t->watch.call == CALL_OPEN_ENDED || t->watch.call == CALL_IN_HANDLER ||
           (t->watch.call == CALL_THROUGH && arch_call_in_progress(t));
}

/* It is known what the kernel may access for this thread, and its faults reach the agent. */
static int allows_protection(const struct thread *t)
{
    const struct watch_thread *w = &t->watch;
    if (w->blocks_fault_signals || w->creating || w->makes_undiverted || t->watch.hold_depth)
        return 0;
    if (in_call(t))
        return !w->memory_unknown;
    return w->epoch == tracker_epoch || w->in_burst || w->exits;
}

int watch_calls_in_progress(const struct thread *self)
{
    /* The handler of a trigger takes the lock, too. Watching is off: the stack is not protected. */
    static const uint64_t all = ~FAULT_SIGNALS | SIGNAL_BIT(SIGTRAP);
    uint64_t before = 0;
    int found = 0;
    if (!session->watch || !watch_several_threads())
        return 0;
    sys4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8);
    watch_lock();
    for (const struct thread *t = threads; t; t = t->watch.next)
        found |= t != self && !t->watch.exits && t->watch.call == CALL_OPEN_ENDED;
    watch_unlock();
    sys4(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8);
    return found;
}

int threads_allow_protection(void)
{
    if (!watch_used() || session->stop)
        return 0;
    if (!watch_several_threads())
        return 1;
    if (!tracking || starting)
        return 0;
    for (const struct thread *t = threads; t; t = t->watch.next)
        if (!allows_protection(t))
            return 0;
    return 1;
}

int page_in_use(const struct page *p)
{
    if (!watch_several_threads())
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

void notes_forked(void)
{
    threads = NULL;
    nthreads = starting = 0;
    lock = 0;
    tracking = 0;
}
