/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - threads come and go while pages may be closed.
 *
 * While a thread is made (from pthread_create until it has come to thread_attach), all pages are open: its
 * first steps are libc's, with signals blocked and calls that nobody diverts. One that ends is known until
 * the kernel has none of that id any more: its last steps are libc's, too, but diverted.
 */
#include <errno.h>
#include "agent/divert/divert.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/watch/watch-internal.h"

/* Signals that must not be blocked are not, though libc, in its first steps or last ones in making a thread,
 * put back the mask that the target believes in: it is told what it asked for. */
static void unblock(struct thread *t)
{
    uint64_t stuck = t->watch.quiet_mask & (SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGSYS) | SIGNAL_BIT(SIGTRAP));
    if (!stuck)
        return;
    t->watch.quiet_mask &= ~stuck;
    t->signals.hidden |= stuck;
    t->signals.blocked_with_hidden = t->watch.quiet_mask;
}

void watch_starts(struct thread *self, struct thread *t, uint64_t stack_bytes)
{
    t->watch.is_starting = 0;
    t->watch.stack_bytes = stack_bytes;
    if (!self || !session->watch)
        return;
    watch_quiet_native(self);
    watch_reap();
    watch_lock();
    starting++;
    t->watch.is_starting = 1;
    self->watch.creating++;
    open_pages();
    watch_unlock();
    watch_lock(); /* there are two now */
    if (!guard_rests_now())
        guard_begins(self);
    watch_unlock();
    unblock(self); /* blocked by a call while nobody diverted them */
    watch_quiet_end(self);
}

void watch_started(struct thread *self, struct thread *t, int failed)
{
    if (!self || !session->watch)
        return;
    watch_quiet_native(self);
    watch_lock();
    if (self->watch.creating)
        self->watch.creating--;
    if (failed && t->watch.is_starting) {
        starting--;
        mapping_changes(0, UINT64_MAX); /* of its stack, which nobody has told us of */
    }
    self->watch.let_through = 0;
    is_seen(self);
    set_selector(self);
    close_pages();
    watch_unlock();
    unblock(self);
    watch_quiet_end(self);
}

void watch_attached(struct thread *t)
{
    struct watch_thread *w = &t->watch;
    uint64_t here = (uint64_t)__builtin_frame_address(0);
    if (!session->watch)
        return;
    watch_quiet_native(t);
    watch_lock();
    w->call = CALL_NONE;
    w->memory.n = 0;
    w->changes = 0;
    w->anything = w->unfit = w->creating = w->let_through = w->exits = w->in_burst = w->let_go = 0;
    w->calls_at_rest = 0;
    w->overhead_ns = 0;
    w->fs_base = (uint64_t)__builtin_thread_pointer();
    w->stack_high = w->stack_low = 0;
    if (w->is_starting && w->fs_base > here && w->fs_base - here < w->stack_bytes) {
        w->stack_low = here > w->stack_bytes ? here - w->stack_bytes : 0;
        w->stack_high = w->fs_base + THREAD_POINTER_ABOVE;
    }
    w->next = threads;
    threads = t;
    nthreads++;
    starting -= (unsigned)w->is_starting;
    if (watch_many() && watch_used()) {
        if (t->index >= CALL_SLOTS || nthreads > WATCH_MOST_THREADS)
            turn_off(WIRE_UNWATCHED_THREADS);
        else if (divert_calls(t) == 0)
            set_selector(t);
        is_seen(t);
        settle_own_memory();
        close_pages();
    }
    watch_unlock();
    if (w->is_starting)
        unblock(t);
    watch_quiet_end(t);
}

void watch_not_attached(struct thread *t)
{
    if (t->watch.is_starting)
        __atomic_fetch_sub(&starting, 1, __ATOMIC_RELAXED);
}

/*
 * The kernel walks through the thread's list of robust mutexes when it ends, wherever they are. What else it
 * writes to is next to the thread pointer.
 */
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

void watch_exits(struct thread *t)
{
    int robust = has_robust_mutexes();
    watch_lock();
    is_seen(t);
    t->watch.exits = 1;
    t->divert.selector = CALLS_ALLOWED;
    if (robust) {
        t->watch.call = CALL_OPEN_ENDED;
        t->watch.anything = 1;
        open_pages();
    }
    watch_unlock();
}

int watch_detached(struct thread *t)
{
    if (!session->watch)
        return 0;
    watch_quiet_native(t);
    if (!watch_many())
        watch_pause(t);
    watch_lock();
    int still_diverted = t->divert.was_on && watch_many();
    if (!still_diverted)
        unlink_thread(t);
    watch_unlock();
    watch_quiet_end(t);
    return still_diverted;
}
