/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - threads begin and end while pages may be protected.
 *
 * While a thread is being created (from pthread_create until the new thread is attached), all pages are
 * unprotected: its first steps are libc's, with signals blocked and calls that are not diverted. A thread
 * that ends stays in the list until the kernel has no thread of that id any more: its last steps are
 * libc's, too, but diverted.
 */
#include <errno.h>
#include "agent/divert/divert.h"
#include "agent/signals/signals.h"
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/watch/watch-internal.h"

/* Unblocks the signals that must not be blocked, if libc has restored the mask that the target believes in,
 * in its first or last steps of creating a thread. They are noted as hidden. */
static void unblock(struct thread *t)
{
    uint64_t stuck = t->watch.saved_mask & (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS) | SIGNAL_BIT(SIGTRAP));
    if (!stuck)
        return;
    signals_note_hidden(t, stuck, t->watch.saved_mask, t->watch.saved_mask & ~stuck);
    t->watch.saved_mask &= ~stuck;
}

void watch_thread_creating(struct thread *self, struct thread *t, uint64_t stack_bytes)
{
    t->watch.being_created = 0;
    t->watch.stack_bytes = stack_bytes;
    if (!self || !session->watch)
        return;
    watch_block_signals_native(self);
    watch_reap();
    watch_lock();
    starting++;
    t->watch.being_created = 1;
    self->watch.creating++;
    unprotect_pages();
    watch_unlock();
    watch_lock(); /* now there are two threads */
    if (!tracker_is_paused())
        tracker_start(self);
    watch_unlock();
    unblock(self); /* blocked by a call that was not diverted */
    watch_unblock_signals(self);
}

void watch_thread_created(struct thread *self, struct thread *t, int failed)
{
    if (!self || !session->watch)
        return;
    watch_block_signals_native(self);
    watch_lock();
    if (self->watch.creating)
        self->watch.creating--;
    if (failed && t->watch.being_created) {
        starting--;
        note_unnoticed_changes(); /* of its stack, which libc has unmapped */
    }
    self->watch.makes_undiverted = 0;
    mark_quiescent(self);
    set_selector(self);
    protect_pages();
    watch_unlock();
    unblock(self);
    watch_unblock_signals(self);
}

void watch_thread_attached(struct thread *t)
{
    struct watch_thread *w = &t->watch;
    uint64_t here = (uint64_t)__builtin_frame_address(0);
    int created = w->being_created; /* not again in a forked child, where the thread is attached anew */
    w->fs_base = arch_thread_pointer();
    if (!session->watch)
        return;
    watch_block_signals_native(t);
    watch_lock();
    w->being_created = 0;
    w->call = CALL_NONE;
    w->memory.n = 0;
    w->changes_mappings = 0;
    w->memory_unknown = w->blocks_fault_signals = w->creating = w->makes_undiverted = w->exits = w->in_burst =
        w->not_diverted = 0;
    w->calls_in_pause = 0;
    w->overhead_ns = 0;
    w->stack_high = w->stack_low = 0;
    if (w->fs_base > here && w->fs_base - here < w->stack_bytes) {
        w->stack_low = here > w->stack_bytes ? here - w->stack_bytes : 0;
        w->stack_high = w->fs_base + WIRE_TLS_BYTES;
    }
    w->next = threads;
    threads = t;
    nthreads++;
    starting -= (unsigned)created;
    if (watch_several_threads() && watch_used()) {
        if (t->index >= CALL_SLOTS || nthreads > WATCH_MOST_THREADS)
            disable_watching(WIRE_UNWATCHED_THREADS);
        else
            set_selector(t);
        mark_quiescent(t);
        censor_thread_memory();
        protect_pages();
    }
    watch_unlock();
    if (created)
        unblock(t);
    watch_unblock_signals(t);
}

void watch_thread_not_attached(struct thread *t)
{
    if (t->watch.being_created)
        __atomic_fetch_sub(&starting, 1, __ATOMIC_RELAXED);
    t->watch.being_created = 0;
}

/* When the thread ends, the kernel goes through its list of robust mutexes, wherever they are. Everything
 * else that it writes is next to the thread pointer. */
static int has_robust_mutexes(void)
{
    struct {
        void *next;
        long offset;
        void *pending;
    } head, *at = NULL;
    size_t bytes = 0;
    if (sys_failed(sys3(SYS_get_robust_list, 0, &at, &bytes)) || !at || safe_copy(&head, at, sizeof head))
        return 0;
    return head.next != at || head.pending;
}

void watch_thread_exiting(struct thread *t)
{
    int robust = has_robust_mutexes();
    watch_lock();
    mark_quiescent(t);
    t->watch.exits = 1;
    t->divert.selector = CALLS_ALLOWED;
    if (robust) {
        t->watch.call = CALL_OPEN_ENDED;
        t->watch.memory_unknown = 1;
        unprotect_pages();
    }
    watch_unlock();
}

int watch_thread_detached(struct thread *t)
{
    if (!session->watch)
        return 0;
    watch_block_signals_native(t);
    if (!watch_several_threads())
        watch_pause(t);
    watch_lock();
    int still_diverted = t->divert.was_on && watch_several_threads();
    if (!still_diverted)
        unlink_thread(t);
    watch_unlock();
    watch_unblock_signals(t);
    return still_diverted;
}
