/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stackset.c - a stackdist for every line size (and thread), fed by workers.
 *
 * References are copied into a ring of batches. Every worker sees every batch and does what concerns
 * its own stacks: no stack is touched by two threads, so the results do not depend on how many there are.
 *
 * Sampling is SHARDS (Waldspurger, Park, Garthwaite, Ahmad 2015): a line is in the sample if a hash of it is
 * below the rate times the hash's range. The sample's distances are the rate times the true ones, in the
 * mean; and of N touches rate * N are expected in the sample. That more or fewer are there (a few hot
 * lines are or are not in it) is corrected as in the paper's "SHARDS-adj", by taking the expected number as
 * the denominator; the reader of the results does that. The error is told by groups: other bits of the hash
 * deal the lines of the sample into STACKSET_GROUPS equal parts, each with a histogram of the distances of
 * its lines.
 */
#include "sim/stackset.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "sim/stackdist.h"

#define RING 16u /* batches; enough that nobody waits for every one */
/* Line ids are handed on in portions that stay in a first-level cache. */
#define LINES_BATCH 2048u

/* A part of the lines of the sample, and their distances in the sample. */
struct group {
    struct hist hist;
    uint64_t cold;
};

struct unit {
    unsigned shift;
    uint32_t thread;
    unsigned worker;
    uint64_t touches, sampled, cold;
    struct stackdist *distances;
    struct hist hist;
    struct group *groups; /* STACKSET_GROUPS of them, NULL without a sample */
};

struct batch {
    uint32_t thread, space;
    size_t n;
    uint64_t address[STACKSET_BATCH];
    uint16_t size[STACKSET_BATCH];
};

struct worker {
    struct stackset *set;
    unsigned number;
    pthread_t thread;
    uint64_t done;               /* batches */
    uint64_t lines[LINES_BATCH]; /* of the unit in progress */
};

struct stackset {
    unsigned *line_bytes;
    size_t nlines;
    int separate, sampled;
    uint64_t threshold; /* hashes below it are in the sample */
    struct unit **units;
    size_t nunits, unit_room;
    unsigned nworkers;
    struct worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t put; /* batches, ever */
    int stop, failed;
    struct error why;
    struct batch *ring;
};

/* --- units --- */

static void unit_free(struct unit *u)
{
    if (u == NULL)
        return;
    stackdist_free(u->distances);
    free(u->groups);
    free(u);
}

/* A stack for every line size. The workers must be at rest. */
static int add_units(struct stackset *s, uint32_t thread, struct error *err)
{
    if (s->unit_room - s->nunits < s->nlines) {
        size_t room = 2 * s->unit_room + s->nlines;
        struct unit **larger = realloc(s->units, room * sizeof(*larger));
        if (larger == NULL)
            return error_set(err, -ENOMEM, "out of memory for stack distances");
        s->units = larger;
        s->unit_room = room;
    }
    for (size_t i = 0; i < s->nlines; i++) {
        struct unit *u = calloc(1, sizeof(*u));
        int status = u != NULL ? 0 : error_set(err, -ENOMEM, "out of memory for stack distances");
        if (status == 0 && (u->distances = stackdist_new(0, err)) == NULL)
            status = -ENOMEM;
        if (status == 0 && s->sampled && (u->groups = calloc(STACKSET_GROUPS, sizeof(*u->groups))) == NULL)
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

/* --- what a worker does --- */

static uint64_t hash(uint64_t line)
{
    return random_splitmix64(&line);
}

/* Touches the lines of the sample among w->lines[0 .. n). */
static int touch_sample(const struct worker *w, struct unit *u, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t h = hash(w->lines[i]);
        if (h >= w->set->threshold)
            continue;
        struct group *group = &u->groups[h % STACKSET_GROUPS]; /* low bits: the high ones chose it */
        struct stackdist_result result;
        int status = stackdist_touch(u->distances, w->lines[i], &result);
        if (status < 0)
            return status;
        u->sampled++;
        if (result.stack == STACKDIST_COLD) {
            u->cold++;
            group->cold++;
        } else {
            hist_add(&u->hist, result.stack, 1);
            hist_add(&group->hist, result.stack, 1);
        }
    }
    return 0;
}

static int flush(const struct worker *w, struct unit *u, size_t n)
{
    u->touches += n;
    if (w->set->sampled)
        return touch_sample(w, u, n);
    u->sampled += n;
    return stackdist_touch_many(u->distances, w->lines, n, &u->hist, NULL, NULL, &u->cold);
}

static int compute(struct worker *w, struct unit *u, const struct batch *b)
{
    /* User addresses have 47 bits; the rest tells address spaces apart. */
    uint64_t mark = (uint64_t)b->space << 48 >> u->shift;
    size_t n = 0;
    int status = 0;
    for (size_t i = 0; i < b->n && status == 0; i++) {
        uint64_t line = b->address[i] >> u->shift;
        /* An access that wraps around the end of memory stops there. */
        uint64_t last_byte = b->address[i] + (uint64_t)(b->size[i] - 1);
        uint64_t last = last_byte < b->address[i] ? line : last_byte >> u->shift;
        w->lines[n++] = line ^ mark;
        while (line < last || n == LINES_BATCH) {
            if (n == LINES_BATCH) {
                if ((status = flush(w, u, n)) < 0)
                    return status;
                n = 0;
                continue;
            }
            w->lines[n++] = ++line ^ mark;
        }
    }
    return status < 0 ? status : flush(w, u, n);
}

static void *run(void *argument)
{
    struct worker *w = argument;
    struct stackset *s = w->set;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (w->done == s->put && !s->stop)
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->stop)
            break;
        const struct batch *b = &s->ring[w->done % RING];
        int status = s->failed;
        pthread_mutex_unlock(&s->lock);
        for (size_t i = 0; i < s->nunits && status == 0; i++)
            if (s->units[i]->worker == w->number && (!s->separate || s->units[i]->thread == b->thread))
                status = compute(w, s->units[i], b);
        pthread_mutex_lock(&s->lock);
        if (status < 0 && !s->failed) {
            s->failed = status;
            error_set(&s->why, status, "out of memory for stack distances");
        }
        w->done++;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* --- the set --- */

/* Batches that all workers have done. Locked. */
static uint64_t all_done(const struct stackset *s)
{
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

int stackset_wait(struct stackset *s, struct error *err)
{
    return wait_for(s, 1, err);
}

static int start_workers(struct stackset *s, unsigned workers, struct error *err)
{
    sigset_t all, before;
    int status = 0;
    s->workers = calloc(workers, sizeof(*s->workers));
    if (s->workers == NULL)
        return error_set(err, -ENOMEM, "out of memory for stack distances");
    /* Signals are for the thread that called us. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < workers && status == 0; i++) {
        s->workers[i].set = s;
        s->workers[i].number = i;
        status = pthread_create(&s->workers[i].thread, NULL, run, &s->workers[i]);
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
    s->ring = malloc(RING * sizeof(*s->ring));
    s->nlines = options->nlines;
    s->separate = options->separate;
    s->sampled = options->rate < 1;
    s->threshold = s->sampled ? (uint64_t)(options->rate * 0x1p64) : 0;
    int status = s->line_bytes != NULL && s->ring != NULL
                     ? 0
                     : error_set(err, -ENOMEM, "out of memory for stack distances");
    if (status == 0) {
        memcpy(s->line_bytes, options->line_bytes, options->nlines * sizeof(*s->line_bytes));
        size_t most = s->separate ? SIZE_MAX : s->nlines;
        status = start_workers(s, options->workers < most ? options->workers : (unsigned)most, err);
    }
    if (status == 0 && !s->separate)
        status = add_units(s, 0, err);
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
        status = wait_for(s, RING, err);
    if (status < 0)
        return status;
    struct batch *b = &s->ring[s->put % RING];
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
                                .sampled = u->sampled,
                                .cold = u->cold,
                                .lines = stackdist_lines(u->distances),
                                .stack = &u->hist};
    for (unsigned g = 0; u->groups != NULL && g < STACKSET_GROUPS; g++) {
        r.group_stack[g] = &u->groups[g].hist;
        r.group_cold[g] = u->groups[g].cold;
    }
    return r;
}

size_t stackset_memory_bytes(const struct stackset *s)
{
    size_t bytes = sizeof(*s) + RING * sizeof(*s->ring) + s->nworkers * sizeof(*s->workers);
    for (size_t i = 0; i < s->nunits; i++) {
        const struct unit *u = s->units[i];
        bytes += sizeof(*u) + stackdist_memory_bytes(u->distances);
        if (u->groups != NULL)
            bytes += STACKSET_GROUPS * sizeof(*u->groups);
    }
    return bytes;
}
