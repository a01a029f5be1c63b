/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.c - compresses and writes in a separate thread, so that recording is not delayed.
 *
 * Batches are copied into a ring: the caller may reuse his arrays at once. The writer's table of threads is
 * read here, and extended by the caller only after trace_background_wait.
 */
#include "trace/internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Batches. 64 of them are at most 19 MB and half a million references: some milliseconds of recording. */
#define RING 64u

struct trace_background {
    struct trace_writer *writer;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t put, taken; /* batches, in total; batch i is in ring[i % RING] */
    int stop;
    int status;
    struct error why;
    struct trace_arrays *ring[RING];
};

static void *run(void *argument)
{
    struct trace_background *b = argument;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (b->put == b->taken && !b->stop)
            pthread_cond_wait(&b->changed, &b->lock);
        if (b->stop)
            break;
        const struct trace_arrays *a = b->ring[b->taken % RING];
        int status = b->status;
        struct error why;
        pthread_mutex_unlock(&b->lock);
        const struct trace_batch batch = trace_arrays_batch(a);
        if (status == 0)
            status = b->writer->format->write(b->writer, &batch, &why);
        pthread_mutex_lock(&b->lock);
        if (status < 0 && b->status == 0) {
            b->status = status;
            b->why = why;
        }
        b->taken++;
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

struct trace_background *trace_background_new(struct trace_writer *w, struct error *err)
{
    struct trace_background *b = calloc(1, sizeof(*b));
    int short_of_memory = b == NULL;
    for (unsigned i = 0; i < RING && !short_of_memory; i++)
        short_of_memory = (b->ring[i] = malloc(sizeof(*b->ring[i]))) == NULL;
    int status = short_of_memory ? ENOMEM : 0;
    if (status == 0) {
        sigset_t all, before;
        b->writer = w;
        pthread_mutex_init(&b->lock, NULL);
        pthread_cond_init(&b->changed, NULL);
        /* Signals are for the recording thread. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        status = pthread_create(&b->thread, NULL, run, b);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (status == 0)
        return b;
    for (unsigned i = 0; b != NULL && i < RING; i++)
        free(b->ring[i]);
    free(b);
    error_set(err, -status, "cannot start the thread that writes the trace: %s", strerror(status));
    return NULL;
}

static int failure(const struct trace_background *b, struct error *err)
{
    return b->status < 0 ? error_set(err, b->status, "%s", b->why.text) : 0;
}

int trace_background_write(struct trace_background *b, const struct trace_batch *batch, struct error *err)
{
    pthread_mutex_lock(&b->lock);
    while (b->put - b->taken == RING)
        pthread_cond_wait(&b->changed, &b->lock);
    int status = failure(b, err);
    struct trace_arrays *a = b->ring[b->put % RING];
    pthread_mutex_unlock(&b->lock);
    if (status < 0)
        return status;
    memcpy(a->address, batch->address, batch->n * sizeof(a->address[0]));
    memcpy(a->pc, batch->pc, batch->n * sizeof(a->pc[0]));
    memcpy(a->size, batch->size, batch->n * sizeof(a->size[0]));
    memcpy(a->rw, batch->rw, batch->n * sizeof(a->rw[0]));
    memcpy(a->segment, batch->segment, batch->nsegments * sizeof(a->segment[0]));
    a->n = batch->n;
    a->nsegments = batch->nsegments;
    pthread_mutex_lock(&b->lock);
    b->put++;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return 0;
}

int trace_background_wait(struct trace_background *b, struct error *err)
{
    pthread_mutex_lock(&b->lock);
    while (b->put != b->taken)
        pthread_cond_wait(&b->changed, &b->lock);
    int status = failure(b, err);
    pthread_mutex_unlock(&b->lock);
    return status;
}

void trace_background_free(struct trace_background *b)
{
    if (b == NULL)
        return;
    pthread_mutex_lock(&b->lock);
    b->stop = 1;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    for (unsigned i = 0; i < RING; i++)
        free(b->ring[i]);
    free(b);
}
