/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/reduce/thread-stacks.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include "base/array.h"
#include "base/pages.h"
#include "profile/threads.h"

struct own {
    uint32_t tid;
    struct stackdist *distances; /* NULL: the process' own, so far; or it has ended */
    struct hist *stack;          /* likewise; in sparse pages */
    uint64_t cold;               /* first touches */
    int ended;
};

struct thread_stacks {
    struct own *threads;
    size_t n, capacity, last; /* last: the thread of the last touches */
    struct hist *process;     /* of the process' stack; in sparse pages */
    uint64_t cold;
};

struct thread_stacks *thread_stacks_new(struct error *err)
{
    struct thread_stacks *s = calloc(1, sizeof(*s));
    if (s != NULL && (s->process = pages_sparse_new(sizeof(*s->process))) != NULL)
        return s;
    free(s);
    error_set(err, -ENOMEM, "out of memory for the stack distances of threads");
    return NULL;
}

void thread_stacks_free(struct thread_stacks *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n; i++) {
        stackdist_free(s->threads[i].distances);
        pages_sparse_free(s->threads[i].stack, sizeof(*s->threads[i].stack));
    }
    free(s->threads);
    pages_sparse_free(s->process, sizeof(*s->process));
    free(s);
}

/* Touches all lines of the process' stack, the oldest first: the same stack. */
static int copy_stack(struct stackdist *into, const struct stackdist *from)
{
    size_t n = (size_t)stackdist_lines(from);
    uint64_t *lines = malloc((n + 1) * sizeof(*lines));
    if (lines == NULL)
        return -ENOMEM;
    stackdist_oldest_first(from, lines);
    int status = stackdist_touch_many(into, lines, n, NULL, NULL, NULL, NULL, NULL);
    free(lines);
    return status;
}

/* Gives a thread a stack of its own: empty, or a copy. */
static int make_own(struct own *t, const struct stackdist *copied)
{
    struct error err;
    if ((t->distances = stackdist_new(&err)) == NULL ||
        (t->stack = pages_sparse_new(sizeof(*t->stack))) == NULL)
        return -ENOMEM;
    return copied != NULL ? copy_stack(t->distances, copied) : 0;
}

/* The first thread is not alone any more. */
static int make_first(struct thread_stacks *s, const struct stackdist *process)
{
    struct own *first = &s->threads[0];
    int status = make_own(first, process);
    if (status == 0) {
        hist_merge(first->stack, s->process);
        first->cold = s->cold;
    }
    return status;
}

/* A thread that has the number of one that has ended continues it. */
static int find_thread(struct thread_stacks *s, uint32_t tid, const struct stackdist *process)
{
    int status = 0;
    if (s->n > 0 && s->threads[s->last].tid == tid)
        return 0;
    for (size_t i = s->n; i > 0; i--)
        if (s->threads[i - 1].tid == tid) {
            s->last = i - 1;
            return 0;
        }
    if (ARRAY_GROW(s->threads, s->n, s->capacity) < 0)
        return -ENOMEM;
    if (s->n == 1)
        status = make_first(s, process);
    s->threads[s->last = s->n++] = (struct own){.tid = tid};
    return status < 0 || s->n == 1 ? status : make_own(&s->threads[s->last], NULL);
}

int thread_stacks_touch(struct thread_stacks *s, uint32_t tid, const struct stackdist *process,
                        const struct process_touches *t)
{
    struct own *own;
    size_t done = 0;
    int status = find_thread(s, tid, process);
    own = &s->threads[s->last];
    if (status == 0 && own->ended) {
        own->ended = 0;
        status = (own->distances = stackdist_new(&(struct error){0})) != NULL ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i <= t->nrepeats && status == 0 && own->distances != NULL; i++) {
        const struct stackdist_repeat *repeat = i < t->nrepeats ? &t->repeats[i] : NULL;
        size_t to = repeat != NULL ? repeat->at : t->n;
        status = stackdist_touch_many(own->distances, t->lines + done, to - done, own->stack, NULL, NULL,
                                      &own->cold, NULL);
        done = to;
        if (status == 0 && repeat != NULL)
            stackdist_repeat(own->distances, t->lines + done - repeat->lines, repeat, own->stack, NULL);
    }
    return status;
}

void thread_stacks_buffer(struct thread_stacks *s, const struct hist *stack, uint32_t bins, uint64_t cold,
                          const struct wire_desc *desc)
{
    for (uint32_t bin = 0; bin < bins; bin++)
        s->process->count[bin] += stack->count[bin];
    s->process->total += stack->total;
    s->cold += cold;
    if (desc->end != WIRE_END_EXIT || desc->end_detail != SYS_exit || s->n < 2)
        return;
    struct own *own = &s->threads[s->last];
    own->ended = 1;
    stackdist_free(own->distances);
    own->distances = NULL;
}

int thread_stacks_store(const struct thread_stacks *s, struct profile *p, uint64_t process,
                        const struct stackdist *went_on, struct error *err)
{
    const struct profile_thread all = {
        .process = process, .cold = s->cold, .left = went_on != NULL ? stackdist_lines(went_on) : 0};
    int status = s->n > 1 ? profile_put_thread(p, &all, s->process, err) : 0;
    for (size_t i = 0; i < s->n && s->n > 1 && status == 0; i++) {
        const struct own *t = &s->threads[i];
        int goes_on = went_on != NULL && !t->ended;
        const struct profile_thread thread = {.process = process,
                                              .tid = t->tid,
                                              .cold = t->cold,
                                              .left = goes_on ? stackdist_lines(t->distances) : 0};
        status = profile_put_thread(p, &thread, t->stack, err);
    }
    return status;
}
