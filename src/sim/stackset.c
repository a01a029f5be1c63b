/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stackset.c - a stackdist for every line size (and thread), computed by several workers.
 *
 * References are copied into a ring of batches. With at least as many stacks as workers, every worker reads
 * every batch and updates its own stacks: no stack is touched by two threads.
 *
 * Fewer stacks are computed in stretches of consecutive batches, each by one worker, as in Parda by Niu,
 * Dinan, Lu and Sadayappan (IPDPS 2012). A worker first processes its stretch alone, on an empty stack:
 * references that are not first touches there get their distances. Then, in the order of the stretches, the
 * first touches are applied to the unit's stack, in their order: exactly the lines between a line's last
 * touch before the stretch and its first one in it are more recent there. Finally the stretch's lines are
 * touched again in the order of their last touches, which is the order that the next stretch needs. So the
 * serial part is two touches for each distinct line of a stretch. Where those are many, a stretch is instead
 * applied directly to the unit's stack, in its turn.
 *   stretches a b a | b c a    In the second all are first touches, and the stack holds, latest first, a b.
 *     b: 1, as a is more recent; c: cold; a: 2, as c and b are. Last touches b c a: the stack is a c b.
 *
 * In both cases the results do not depend on the number of workers.
 *
 * Sampling is SHARDS (Waldspurger, Park, Garthwaite, Ahmad 2015): a line is in the sample if a hash of it is
 * below the rate times the hash's range. The sample's distances are, in the mean, the rate times the true
 * ones, and of N touches rate * N are expected in the sample. A different actual number (a few hot lines are
 * in the sample or not) is corrected as in the paper's "SHARDS-adj", by taking the expected number as the
 * denominator; the reader of the results does that. The error is estimated from groups: other bits of the
 * hash divide the lines of the sample into STACKSET_GROUPS equal parts, each with a histogram of the
 * distances of its lines.
 */
#include "sim/stackset.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sim/stackset-internal.h"

#define RING 16u /* batches; enough that no thread waits for each one */
/* Most workers for stretches, which use 1.3 MB each; reading a trace supplies no more. */
#define STRETCH_WORKERS 8u
/* A dense unit tries one stretch in so many on a stack of its own, to see whether it is still dense. */
#define DENSE_PROBE 16u

struct stackset {
    unsigned *line_bytes;
    size_t nlines;
    int separate, sampled;
    uint64_t threshold; /* smaller hashes are in the sample */
    struct unit **units;
    size_t nunits, unit_capacity;
    unsigned nworkers;
    struct worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t put; /* batches, in total */
    int stop, failed;
    struct error why;
    struct batch *ring;
    unsigned ring_batches;
    /* For stretches. */
    int stretches, draining;          /* draining: short ones are processed, too */
    uint64_t taken, finished, ntaken; /* batches, batches, stretches */
};

/* --- units --- */

static void unit_free(struct unit *u)
{
    if (u == NULL)
        return;
    stackdist_free(u->distances);
    free(u->sample);
    free(u);
}

/* Adds a stack for every line size. The workers must be idle. */
static int add_units(struct stackset *s, uint32_t thread, struct error *err)
{
    if (ARRAY_GROW_BY(s->units, s->nunits, s->nlines, s->unit_capacity) < 0)
        return error_set(err, -ENOMEM, "out of memory for stack distances");
    for (size_t i = 0; i < s->nlines; i++) {
        struct unit *u = calloc(1, sizeof(*u));
        int status = u != NULL ? 0 : error_set(err, -ENOMEM, "out of memory for stack distances");
        if (status == 0 && (u->distances = stackdist_new(err)) == NULL)
            status = -ENOMEM;
        if (status == 0 && s->sampled && (u->sample = calloc(1, sizeof(*u->sample))) == NULL)
            status = error_set(err, -ENOMEM, "out of memory for stack distances");
        if (status < 0) {
            unit_free(u);
            return status;
        }
        u->shift = (unsigned)__builtin_ctz(s->line_bytes[i]);
        u->thread = thread;
        u->worker = (unsigned)(s->nunits % s->nworkers);
        s->units[s->nunits++] = u;
    }
    return 0;
}

static int has_units(const struct stackset *s, uint32_t thread)
{
    for (size_t i = s->nunits; i > 0; i -= s->nlines)
        if (!s->separate || s->units[i - 1]->thread == thread)
            return 1;
    return 0;
}

/* --- workers --- */

/* With the lock held. */
static void fail(struct stackset *s, int status)
{
    if (status < 0 && !s->failed) {
        s->failed = status;
        error_set(&s->why, status, "out of memory for stack distances");
    }
}

/* Processes every batch, for the worker's own stacks. */
static void *run(void *argument)
{
    struct worker *w = argument;
    struct stackset *s = w->set;
    enum compute how = s->sampled ? COMPUTE_SAMPLE : COMPUTE_ALL;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (w->done == s->put && !s->stop)
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->stop)
            break;
        const struct batch *b = &s->ring[w->done % s->ring_batches];
        int status = s->failed;
        pthread_mutex_unlock(&s->lock);
        for (size_t i = 0; i < s->nunits && status == 0; i++)
            if (s->units[i]->worker == w->number && (!s->separate || s->units[i]->thread == b->thread))
                status = stackset_compute(w, s->units[i], b, how, s->threshold);
        pthread_mutex_lock(&s->lock);
        fail(s, status);
        w->done++;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Computes a stretch of one stack: batches [from, to). Called and returns without the lock. */
static void compute_stretch(struct worker *w, struct unit *u, uint64_t stretch, uint64_t from, uint64_t to)
{
    struct stackset *s = w->set;
    pthread_mutex_lock(&s->lock);
    int status = s->failed, separate_stack = !u->dense || stretch % DENSE_PROBE == 0;
    pthread_mutex_unlock(&s->lock);
    if (separate_stack && status == 0 && (status = stackset_begin_stretch(w)) == 0) {
        for (uint64_t i = from; i < to && status == 0; i++)
            status = stackset_compute(w, u, &s->ring[i % s->ring_batches], COMPUTE_STRETCH, 0);
        if (status == 0)
            stackset_end_stretch(w);
    }
    if (status == -EOVERFLOW)
        separate_stack = status = 0;
    pthread_mutex_lock(&s->lock);
    while (u->next_stretch != stretch)
        pthread_cond_wait(&s->changed, &s->lock);
    u->dense = !separate_stack;
    pthread_mutex_unlock(&s->lock);
    if (separate_stack && status == 0)
        status = stackset_join(w, u);
    for (uint64_t i = from; !separate_stack && i < to && status == 0; i++)
        status = stackset_compute(w, u, &s->ring[i % s->ring_batches], COMPUTE_ALL, 0);
    pthread_mutex_lock(&s->lock);
    fail(s, status);
    u->next_stretch++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Processes whole stretches, for all stacks. */
static void *run_stretches(void *argument)
{
    struct worker *w = argument;
    struct stackset *s = w->set;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->stop && s->put - s->taken < (s->draining ? 1 : STRETCH))
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->stop)
            break;
        uint64_t from = s->taken, to = s->put - from < STRETCH ? s->put : from + STRETCH,
                 stretch = s->ntaken++;
        s->taken = to;
        pthread_mutex_unlock(&s->lock);
        for (size_t i = 0; i < s->nunits; i++)
            compute_stretch(w, s->units[i], stretch, from, to);
        pthread_mutex_lock(&s->lock);
        /* in the order of the stretches, except at this moment */
        if (s->finished < to)
            s->finished = to;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* --- the set --- */

/* Batches that all workers have processed. With the lock held. */
static uint64_t all_done(const struct stackset *s)
{
    if (s->stretches)
        return s->finished;
    uint64_t least = s->put;
    for (unsigned i = 0; i < s->nworkers; i++)
        least = s->workers[i].done < least ? s->workers[i].done : least;
    return least;
}

/* Waits until fewer than `most` batches are in the ring. */
static int wait_for(struct stackset *s, uint64_t most, struct error *err)
{
    pthread_mutex_lock(&s->lock);
    while (s->put - all_done(s) >= most)
        pthread_cond_wait(&s->changed, &s->lock);
    int status = s->failed != 0 ? error_set(err, s->failed, "%s", s->why.text) : 0;
    pthread_mutex_unlock(&s->lock);
    return status;
}

static void set_draining(struct stackset *s, int on)
{
    pthread_mutex_lock(&s->lock);
    s->draining = on;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

int stackset_wait(struct stackset *s, struct error *err)
{
    set_draining(s, 1);
    int status = wait_for(s, 1, err);
    set_draining(s, 0);
    return status;
}

static int start_workers(struct stackset *s, unsigned workers, struct error *err)
{
    sigset_t all, before;
    int status = 0;
    s->workers = calloc(workers, sizeof(*s->workers));
    if (s->workers == NULL)
        return error_set(err, -ENOMEM, "out of memory for stack distances");
    /* Signals are for the caller's thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < workers && status == 0; i++) {
        s->workers[i].set = s;
        s->workers[i].number = i;
        status =
            pthread_create(&s->workers[i].thread, NULL, s->stretches ? run_stretches : run, &s->workers[i]);
        s->nworkers += status == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status == 0)
        return 0;
    return error_set(err, -status, "cannot start a thread: %s", strerror(status));
}

struct stackset *stackset_new(const struct stackset_options *options, struct error *err)
{
    int sound = options->nlines >= 1 && options->workers >= 1 && options->rate > 0 && options->rate <= 1;
    for (size_t i = 0; i < options->nlines; i++) {
        unsigned bytes = options->line_bytes[i];
        sound &= bytes >= 8 && bytes <= 4096 && (bytes & (bytes - 1)) == 0;
    }
    if (!sound) {
        error_set(err, -EINVAL,
                  "line sizes must be powers of two from 8 to 4096, the rate above 0 and at most 1");
        return NULL;
    }
    struct stackset *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        error_set(err, -ENOMEM, "out of memory for stack distances");
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->line_bytes = malloc(options->nlines * sizeof(*s->line_bytes));
    s->nlines = options->nlines;
    s->separate = options->separate;
    s->sampled = options->rate < 1;
    s->stretches = !s->separate && !s->sampled && options->workers > s->nlines;
    unsigned most = s->stretches ? STRETCH_WORKERS : s->separate ? UINT_MAX : (unsigned)s->nlines;
    unsigned workers = options->workers < most ? options->workers : most;
    /* one stretch for each worker, and one that is being filled */
    s->ring_batches = s->stretches ? (workers + 1) * STRETCH : RING;
    s->ring = malloc(s->ring_batches * sizeof(*s->ring));
    s->threshold = s->sampled ? (uint64_t)(options->rate * 0x1p64) : 0;
    int status = s->line_bytes != NULL && s->ring != NULL
                     ? 0
                     : error_set(err, -ENOMEM, "out of memory for stack distances");
    if (status == 0) {
        memcpy(s->line_bytes, options->line_bytes, options->nlines * sizeof(*s->line_bytes));
        s->nworkers = workers; /* each has its own stacks */
        if (!s->separate)
            status = add_units(s, 0, err);
        s->nworkers = 0;
    }
    if (status == 0)
        status = start_workers(s, workers, err);
    if (status < 0) {
        stackset_free(s);
        return NULL;
    }
    return s;
}

void stackset_free(struct stackset *s)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = 1;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < s->nworkers; i++)
        pthread_join(s->workers[i].thread, NULL);
    for (unsigned i = 0; i < s->nworkers; i++)
        stackset_free_stretch(&s->workers[i]);
    for (size_t i = 0; i < s->nunits; i++)
        unit_free(s->units[i]);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->workers);
    free(s->units);
    free(s->line_bytes);
    free(s->ring);
    free(s);
}

int stackset_add(struct stackset *s, uint32_t thread, uint32_t space, const uint64_t *address,
                 const uint16_t *size, size_t n, struct error *err)
{
    int status = 0;
    if (n == 0 || n > STACKSET_BATCH)
        return error_set(err, -EINVAL, "a batch of %zu references", n);
    if (!has_units(s, thread)) {
        status = stackset_wait(s, err);
        if (status == 0)
            status = add_units(s, thread, err);
    }
    if (status == 0)
        status = wait_for(s, s->ring_batches, err);
    if (status < 0)
        return status;
    struct batch *b = &s->ring[s->put % s->ring_batches];
    b->thread = thread;
    b->space = space;
    b->n = n;
    memcpy(b->address, address, n * sizeof(*address));
    memcpy(b->size, size, n * sizeof(*size));
    pthread_mutex_lock(&s->lock);
    s->put++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

size_t stackset_results(const struct stackset *s)
{
    return s->nunits;
}

struct stackset_result stackset_result(const struct stackset *s, size_t i)
{
    const struct unit *u = s->units[i];
    struct stackset_result r = {.line_bytes = 1u << u->shift,
                                .thread = u->thread,
                                .touches = u->touches,
                                .sampled = u->sample != NULL ? u->sample->sampled : u->sampled,
                                .cold = u->sample != NULL ? u->sample->cold : u->cold,
                                .lines = stackdist_lines(u->distances),
                                .stack = u->sample != NULL ? &u->sample->stack : &u->hist};
    for (unsigned g = 0; u->sample != NULL && g < STACKSET_GROUPS; g++) {
        r.group_stack[g] = &u->sample->groups[g].stack;
        r.group_cold[g] = u->sample->groups[g].cold;
    }
    return r;
}

size_t stackset_memory_bytes(const struct stackset *s)
{
    size_t bytes = sizeof(*s) + s->ring_batches * sizeof(*s->ring) + s->nworkers * sizeof(*s->workers);
    for (unsigned i = 0; i < s->nworkers; i++)
        if (s->workers[i].separate_stack != NULL)
            bytes += stackdist_memory_bytes(s->workers[i].separate_stack) +
                     2 * s->workers[i].capacity * sizeof(uint64_t);
    for (size_t i = 0; i < s->nunits; i++) {
        const struct unit *u = s->units[i];
        bytes += sizeof(*u) + stackdist_memory_bytes(u->distances);
        if (u->sample != NULL)
            bytes += sizeof(*u->sample);
    }
    return bytes;
}
