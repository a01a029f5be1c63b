/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/reduce/thread-stacks.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/array.h"
#include "base/packed-hist.h"
#include "base/pages.h"
#include "profile/threads.h"

/* Threads that have not ended, from which on those that have are looked for. */
#define LIVE_FIRST 64u
/* Buffers after which nothing more comes of a thread that has ended: there are fewer. */
#define BUFFERS_LATE 1024u

struct own {
    uint32_t tid;
    struct stackdist *distances; /* NULL: the process' own, so far; or it has ended */
    struct hist *stack;          /* likewise; in sparse pages */
    struct packed_hist packed;   /* instead, when it has ended: there may be very many */
    uint64_t cold;               /* first touches */
    uint64_t buffer;             /* number of its last one */
    int ended;
};

struct thread_stacks {
    struct own *threads;
    size_t n, capacity, last; /* last: the thread of the last touches */
    uint32_t greatest;        /* of their numbers */
    size_t live, most;        /* threads that have not ended; if there are more, look for those that have */
    uint64_t buffers;         /* so far */
    uint32_t pid;
    struct hist *process; /* of the process' stack; in sparse pages */
    uint64_t cold;
};

struct thread_stacks *thread_stacks_new(uint32_t pid, struct error *err)
{
    struct thread_stacks *s = calloc(1, sizeof(*s));
    if (s != NULL && (s->process = pages_sparse_new(sizeof(*s->process))) != NULL) {
        s->pid = pid;
        s->most = LIVE_FIRST;
        return s;
    }
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
        packed_hist_clear(&s->threads[i].packed);
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
    for (size_t i = tid > s->greatest ? 0 : s->n; i > 0; i--)
        if (s->threads[i - 1].tid == tid) {
            s->last = i - 1;
            return 0;
        }
    if (ARRAY_GROW(s->threads, s->n, s->capacity) < 0)
        return -ENOMEM;
    if (s->n == 1)
        status = make_first(s, process);
    s->threads[s->last = s->n++] = (struct own){.tid = tid};
    s->greatest = tid > s->greatest ? tid : s->greatest;
    s->live++;
    return status < 0 || s->n == 1 ? status : make_own(&s->threads[s->last], NULL);
}

int thread_stacks_touch(struct thread_stacks *s, uint32_t tid, const struct stackdist *process,
                        const struct process_touches *t, struct thread_buffer *buffer,
                        struct stackdist_far *far, int *is_own)
{
    size_t done = 0;
    int status = find_thread(s, tid, process);
    *is_own = 0;
    far->n = 0;
    if (status < 0) /* there may be no thread at all */
        return status;
    struct own *own = &s->threads[s->last];
    if (own->ended && (status = make_own(own, NULL)) == 0) {
        packed_hist_unpack(&own->packed, own->stack);
        own->ended = 0;
        s->live++;
    }
    own->buffer = s->buffers;
    *is_own = own->distances != NULL;
    for (size_t i = 0; i <= t->nrepeats && status == 0 && own->distances != NULL; i++) {
        const struct stackdist_repeat *repeat = i < t->nrepeats ? &t->repeats[i] : NULL;
        size_t to = repeat != NULL ? repeat->at : t->n;
        status = stackdist_touch_part(own->distances, t->lines, done, to, &buffer->stack, NULL, NULL,
                                      &buffer->cold, far);
        done = to;
        if (status == 0 && repeat != NULL)
            stackdist_repeat(own->distances, t->lines + done - repeat->lines, repeat, &buffer->stack, NULL);
    }
    return status;
}

void thread_buffer_clear(struct thread_buffer *b)
{
    memset(b->stack.count, 0, b->bins * sizeof(b->stack.count[0]));
    b->stack.total = b->cold = 0;
    b->bins = 0;
}

static int is_alive(const struct thread_stacks *s, uint32_t tid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%u/task/%u", s->pid, tid);
    return access(path, F_OK) == 0;
}

/* A thread has ended: keeps only what will be stored of it. */
static void end_thread(struct thread_stacks *s, struct own *own)
{
    if (packed_hist_set(&own->packed, own->stack) < 0)
        return; /* without memory it stays as it is */
    own->ended = 1;
    s->live--;
    stackdist_free(own->distances);
    pages_sparse_free(own->stack, sizeof(*own->stack));
    own->distances = NULL;
    own->stack = NULL;
}

/* Only if one that has not is found: in a name space of its own, a process has other numbers. */
static void end_threads(struct thread_stacks *s)
{
    int found = 0;
    for (size_t i = s->n; i > 0 && !found; i--)
        found = !s->threads[i - 1].ended && is_alive(s, s->threads[i - 1].tid);
    for (size_t i = 0; i < s->n && found; i++) {
        struct own *own = &s->threads[i];
        if (!own->ended && s->buffers - own->buffer > BUFFERS_LATE && !is_alive(s, own->tid))
            end_thread(s, own);
    }
    s->most = 2 * s->live + LIVE_FIRST;
}

static void add_bins(struct hist *sum, const struct hist *stack, uint32_t bins)
{
    for (uint32_t bin = 0; bin < bins; bin++)
        sum->count[bin] += stack->count[bin];
    sum->total += stack->total;
}

void thread_stacks_buffer(struct thread_stacks *s, const struct hist *stack, uint32_t bins, uint64_t cold,
                          struct thread_buffer *buffer)
{
    struct own *own = s->n > 0 ? &s->threads[s->last] : NULL;
    add_bins(s->process, stack, bins);
    s->cold += cold;
    if (own != NULL && own->distances != NULL) {
        buffer->bins = hist_bin(stackdist_lines(own->distances)) + 1;
        add_bins(own->stack, &buffer->stack, buffer->bins);
        own->cold += buffer->cold;
    }
    s->buffers++;
    if (s->live > s->most + BUFFERS_LATE)
        end_threads(s);
}

int thread_stacks_store(const struct thread_stacks *s, struct profile *p, uint64_t process,
                        const struct stackdist *went_on, struct error *err)
{
    const struct profile_thread all = {
        .process = process, .cold = s->cold, .left = went_on != NULL ? stackdist_lines(went_on) : 0};
    if (s->n < 2)
        return 0;
    struct hist *scratch = malloc(sizeof(*scratch));
    int status = scratch != NULL
                     ? profile_put_thread(p, &all, s->process, err)
                     : error_set(err, -ENOMEM, "out of memory for the stack distances of threads");
    for (size_t i = 0; i < s->n && status == 0; i++) {
        const struct own *t = &s->threads[i];
        int goes_on = went_on != NULL && !t->ended;
        const struct profile_thread thread = {.process = process,
                                              .tid = t->tid,
                                              .cold = t->cold,
                                              .left = goes_on ? stackdist_lines(t->distances) : 0};
        if (t->ended)
            packed_hist_unpack(&t->packed, scratch);
        status = profile_put_thread(p, &thread, t->ended ? scratch : t->stack, err);
    }
    free(scratch);
    return status;
}
