/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - pthread_create and thrd_create: a new thread starts in the agent, which attaches it. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include "agent/interpose/interpose.h"
#include "agent/life/life.h"
#include "agent/sys/process.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/watch/watch.h"

static void *start(void *thread)
{
    struct thread *t = thread_begins(thread);
    return t->start.routine(t->start.argument);
}

static int start_c11(void *thread)
{
    struct thread *t = thread_begins(thread);
    return t->start.c11(t->start.argument);
}

/* Size of the stack of a thread with these attributes. Nonzero: they cannot be read. */
static int stack_bytes(const pthread_attr_t *attributes, size_t *bytes)
{
    pthread_attr_t its, usual;
    *bytes = 0;
    if (attributes) {
        if (safe_copy(&its, attributes, sizeof its))
            return -1;
        pthread_attr_getstacksize(&its, bytes);
    } else if (pthread_attr_init(&usual) == 0) {
        pthread_attr_getstacksize(&usual, bytes);
        pthread_attr_destroy(&usual);
    }
    return 0;
}

/* Reading first unprotects the page, if it is protected. */
static int is_writable(const void *p, size_t bytes)
{
    char byte;
    const char *first = p, *last = first + bytes - 1;
    return !safe_copy(&byte, first, 1) && !safe_copy(&byte, last, 1) && !safe_probe(first, 1) &&
           !safe_probe(last, 1);
}

/* Prepares for a new thread. NULL: the thread is not profiled, or libc's function will fault where it reads
 * the attributes or writes the id, before it has created the thread. That fault is the target's, and must
 * find nothing prepared. */
static struct thread *prepare(const pthread_attr_t *attributes, const void *id, size_t id_bytes,
                              struct thread *self, void *argument)
{
    size_t bytes;
    /* A library that was loaded since may contain Go, whose start also creates a thread. */
    int untracked = process_is_untracked();
    if (!agent_off && session && !untracked && surroundings_has_go())
        agent_shutdown(WIRE_OFF_GO);
    if (agent_off || !session || untracked)
        return NULL;
    unsigned blocked = signals_unblock_faults(self);
    int will_fault = stack_bytes(attributes, &bytes) || !is_writable(id, id_bytes);
    signals_block_faults(blocked);
    if (will_fault)
        return NULL;
    struct thread *t = thread_make();
    if (t) {
        watch_thread_creating(self, t, bytes);
        signals_inherit_mask(t, self);
        t->start.argument = argument;
    }
    return t;
}

/* While this is nonzero, a thread that the caller creates will be attached. */
static void count_creating(struct thread *self, int more)
{
    if (self)
        self->native.creating_followed += more;
}

/* libc's own functions. They are looked up at the start, since that takes a lock of the dynamic loader, which
 * another thread may hold while it waits for the calling one. */
static struct {
    int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*thrd_create)(thrd_t *, thrd_start_t, void *);
} next;

void threads_find_next(void)
{
    next.pthread_create = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(
        RTLD_NEXT, "pthread_create");
    next.thrd_create = (int (*)(thrd_t *, thrd_start_t, void *))dlsym(RTLD_NEXT, "thrd_create");
}

EXPORT int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*routine)(void *),
                          void *argument)
{
    if (!next.pthread_create)
        threads_find_next();
    if (!next.pthread_create)
        return EAGAIN;
    struct thread *self = agent_off || !session ? NULL : thread_self(),
                  *t = prepare(attributes, id, sizeof *id, self, argument);
    if (!t)
        return next.pthread_create(id, attributes, routine, argument);
    t->start.routine = routine;
    count_creating(self, 1);
    int result = next.pthread_create(id, attributes, start, t);
    count_creating(self, -1);
    watch_thread_created(self, t, result != 0);
    if (result)
        thread_free(t);
    return result;
}

EXPORT int thrd_create(thrd_t *id, thrd_start_t routine, void *argument)
{
    if (!next.thrd_create)
        threads_find_next();
    if (!next.thrd_create)
        return thrd_error;
    struct thread *self = agent_off || !session ? NULL : thread_self(),
                  *t = prepare(NULL, id, sizeof *id, self, argument);
    if (!t)
        return next.thrd_create(id, routine, argument);
    t->start.c11 = routine;
    count_creating(self, 1);
    int result = next.thrd_create(id, start_c11, t);
    count_creating(self, -1);
    watch_thread_created(self, t, result != thrd_success);
    if (result != thrd_success)
        thread_free(t);
    return result;
}
