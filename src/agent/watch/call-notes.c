/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call-notes.c - the threads that there are, and which of them may be inside which system call: what keeps
 * pages open. call-tracker.c writes the notes; who closes a page reads them, under the same lock.
 */
#include "agent/divert/divert.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/watch/watch-internal.h"

struct thread *threads;
unsigned nthreads, starting;
int guarding;
uint64_t guard_number = 1;
static uint64_t lock; /* the thread pointer of who has it; 0: free */

int watch_used(void)
{
    return session && session->watch && !agent_off && !watching()->off;
}

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

int watch_holds_lock(void)
{
    return __atomic_load_n(&lock, __ATOMIC_RELAXED) == (uint64_t)__builtin_thread_pointer();
}

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

void notes_forked(void)
{
    threads = NULL;
    nthreads = starting = 0;
    lock = 0;
    guarding = 0;
}
