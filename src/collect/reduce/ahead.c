/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/reduce/ahead.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/octaves.h"
#include "base/pages.h"

/* Buffers that wait at most: one for each thread, and as many between them, since some take longer than
 * others. Each has its own memory, which is better in the cache when it is little. */
#define JOBS 6u
/* A buffer of more touches is decoded when it is its turn. A buffer of 64 K words makes some 50,000, but a
 * repeated string instruction can make any number. */
#define JOB_LINES (UINT64_C(1) << 18)
#define JOB_REPEATS (UINT64_C(1) << 17)
#define JOB_TURNS (UINT64_C(1) << 17)
#define JOB_BATCHES 64u

struct executed {
    uint32_t block, count;
};

/* See decode_sites.more. */
struct more {
    uint64_t touches;
    uint32_t site;
};

struct job {
    struct ahead_buffer out;
    struct ahead_source source;
    struct wire_desc desc;
    int refused; /* it has too many touches, or follows one that has */
    struct ahead_batch batches[JOB_BATCHES];
    size_t nlines, nrepeats, nturns, nexecuted, nmore, executed_capacity, more_capacity;
    struct executed *executed;
    struct more *more;
    uint64_t lines[JOB_LINES + DECODE_BATCH_ROOM];
    uint32_t sites[JOB_LINES + DECODE_BATCH_ROOM];
    struct stackdist_repeat repeats[JOB_REPEATS];
    struct decode_turn turns[JOB_TURNS];
    struct far {
        uint32_t at[JOB_LINES + STACKDIST_FAR_EXTRA];
        uint64_t stack[JOB_LINES + STACKDIST_FAR_EXTRA];
    } far, own; /* see ahead_batch */
};

/* Of the buffer that is decoded. */
struct tables {
    uint32_t executions[WIRE_MAX_BLOCKS];
    uint32_t executed[WIRE_MAX_BLOCKS + 1];
};

struct stage {
    pthread_t thread;
    int has_thread;
    size_t finished; /* jobs before this one; under the lock */
    pthread_cond_t work;
};

enum { DECODE, MEASURE, STAGES };

struct ahead {
    struct job *jobs[JOBS]; /* number i is jobs[i % JOBS] */
    size_t taken;           /* jobs before this one are over */
    /* Of the thread that decodes. */
    struct tables *tables;
    struct decode_sites noted;
    struct job *job; /* which is decoded */
    int failed;      /* memory was short in note_more */
    int refusing;    /* until all jobs are discarded; under the lock */
    pthread_mutex_t lock;
    size_t begun; /* jobs before this one; under the lock */
    int stop;     /* likewise */
    struct stage stages[STAGES];
    pthread_cond_t done;
};

static void note_more(void *ctx, uint32_t site, uint64_t touches)
{
    struct ahead *a = ctx;
    struct job *job = a->job;
    if (ARRAY_GROW(job->more, job->nmore, job->more_capacity) < 0)
        a->failed = 1;
    else
        job->more[job->nmore++] = (struct more){touches, site};
}

/* The decoder has written the lines, and their sites, to the job. */
static int keep(void *ctx, const uint64_t *lines, size_t n)
{
    struct job *job = ctx;
    size_t nturns, nrepeats;
    const struct decode_turn *turns = decoder_turns(job->source.decoder, &nturns);
    const struct stackdist_repeat *repeats = decoder_repeats(job->source.decoder, &nrepeats);
    if (n > JOB_LINES - job->nlines || nrepeats > JOB_REPEATS - job->nrepeats ||
        nturns > JOB_TURNS - job->nturns || job->out.nbatches == JOB_BATCHES)
        return -ECANCELED;
    struct ahead_batch *batch = &job->batches[job->out.nbatches++];
    *batch = (struct ahead_batch){
        .touches = {.lines = lines, .n = n, .nrepeats = nrepeats, .repeats = job->repeats + job->nrepeats},
        .sites = decoder_touches(job->source.decoder),
        .turns = job->turns + job->nturns,
        .nturns = nturns};
    if (nrepeats > 0)
        memcpy(job->repeats + job->nrepeats, repeats, nrepeats * sizeof(*repeats));
    if (nturns > 0)
        memcpy(job->turns + job->nturns, turns, nturns * sizeof(*turns));
    job->nlines += n;
    job->nrepeats += nrepeats;
    job->nturns += nturns;
    decoder_write_to(job->source.decoder, job->lines + job->nlines, job->sites + job->nlines);
    return 0;
}

/* Moves what was executed from the tables to the job. */
static int keep_executed(struct ahead *a, struct job *job)
{
    size_t n = a->noted.nexecuted;
    a->noted.nexecuted = 0;
    int status = ARRAY_GROW_BY(job->executed, job->nexecuted, n, job->executed_capacity);
    for (size_t i = 0; i < n; i++) {
        uint32_t block = a->noted.executed[i];
        if (status == 0)
            job->executed[job->nexecuted++] = (struct executed){block, a->noted.executions[block]};
        a->noted.executions[block] = 0;
    }
    return status;
}

/* 0; negative: it cannot be done ahead. */
static int decode(struct ahead *a, struct job *job)
{
    const struct ahead_source *source = &job->source;
    a->job = job;
    decoder_note_sites(source->decoder, &a->noted);
    decoder_write_to(source->decoder, job->lines, job->sites);
    int status =
        decode_buffer(source->decoder, &job->desc, source->words, source->n, keep, job, &job->out.counts);
    decoder_write_to(source->decoder, NULL, NULL);
    decoder_note_sites(source->decoder, NULL);
    if (keep_executed(a, job) < 0)
        status = -ENOMEM;
    if (a->failed) {
        a->failed = 0;
        status = -ENOMEM;
    }
    return status;
}

/* The list of a batch, after n elements of those before. */
static struct stackdist_far far_from(struct far *far, size_t n)
{
    return (struct stackdist_far){.least = OCTAVES_LEAST, .at = far->at + n, .stack = far->stack + n};
}

static void measure(struct job *job)
{
    struct ahead_buffer *out = &job->out;
    const struct ahead_source *source = &job->source;
    const struct stackdist *distances = process_stack_distances(source->stack);
    size_t nfar = 0, nown = 0;
    for (size_t i = 0; i < out->nbatches && out->status == 0; i++) {
        struct ahead_batch *batch = &job->batches[i];
        batch->far = far_from(&job->far, nfar);
        batch->own = far_from(&job->own, nown);
        out->status = thread_stacks_touch(source->threads, job->desc.tid, distances, &batch->touches,
                                          &out->own, &batch->own, &batch->has_own);
        if (out->status < 0)
            break;
        out->status = process_stack_touch(source->stack, &batch->touches, &out->stack, source->run,
                                          &out->cold, &batch->far);
        nfar += batch->far.n;
        nown += batch->own.n;
    }
    out->bins = hist_bin(stackdist_lines(distances)) + 1;
    thread_stacks_buffer(source->threads, &out->stack, out->bins, out->cold, &out->own);
}

/* The thread of a stage: as soon as the stage before has finished a job, it is its turn. */
static void run_stage(struct ahead *a, struct stage *stage, const size_t *before)
{
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (stage->finished == *before && !a->stop)
            pthread_cond_wait(&stage->work, &a->lock);
        if (a->stop)
            break;
        struct job *job = a->jobs[stage->finished % JOBS];
        int refused = stage == &a->stages[DECODE] ? a->refusing : job->refused;
        pthread_mutex_unlock(&a->lock);
        if (stage == &a->stages[DECODE]) {
            job->refused = refused || decode(a, job) < 0;
            refused = job->refused;
        } else if (!refused) {
            measure(job);
        }
        pthread_mutex_lock(&a->lock);
        a->refusing |= refused;
        stage->finished++;
        pthread_cond_signal(stage == &a->stages[DECODE] ? &a->stages[MEASURE].work : &a->done);
    }
    pthread_mutex_unlock(&a->lock);
}

static void *run_decode(void *arg)
{
    struct ahead *a = arg;
    run_stage(a, &a->stages[DECODE], &a->begun);
    return NULL;
}

static void *run_measure(void *arg)
{
    struct ahead *a = arg;
    run_stage(a, &a->stages[MEASURE], &a->stages[DECODE].finished);
    return NULL;
}

/* Signals are the first thread's business. */
static int start_threads(struct ahead *a)
{
    static void *(*const run[STAGES])(void *) = {[DECODE] = run_decode, [MEASURE] = run_measure};
    sigset_t all, before;
    int failed = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < STAGES; i++) {
        struct stage *stage = &a->stages[i];
        stage->has_thread = pthread_create(&stage->thread, NULL, run[i], a) == 0;
        failed |= !stage->has_thread;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? -EAGAIN : 0;
}

static int has_two_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) > 1;
}

struct ahead *ahead_new(void)
{
    struct ahead *a = has_two_processors() ? calloc(1, sizeof(*a)) : NULL;
    if (a == NULL)
        return NULL;
    pthread_mutex_init(&a->lock, NULL);
    for (unsigned i = 0; i < STAGES; i++)
        pthread_cond_init(&a->stages[i].work, NULL);
    pthread_cond_init(&a->done, NULL);
    int failed = (a->tables = pages_sparse_new(sizeof(*a->tables))) == NULL;
    for (unsigned i = 0; i < JOBS; i++)
        failed |= (a->jobs[i] = pages_sparse_new(sizeof(*a->jobs[i]))) == NULL;
    a->noted = (struct decode_sites){.more = note_more, .ctx = a};
    if (!failed) {
        a->noted.executions = a->tables->executions;
        a->noted.executed = a->tables->executed;
        failed = start_threads(a) < 0;
    }
    if (!failed)
        return a;
    ahead_free(a);
    return NULL;
}

void ahead_free(struct ahead *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->stop = 1;
    for (unsigned i = 0; i < STAGES; i++)
        pthread_cond_signal(&a->stages[i].work);
    pthread_mutex_unlock(&a->lock);
    for (unsigned i = 0; i < STAGES; i++) {
        if (a->stages[i].has_thread)
            pthread_join(a->stages[i].thread, NULL);
        pthread_cond_destroy(&a->stages[i].work);
    }
    pthread_cond_destroy(&a->done);
    pthread_mutex_destroy(&a->lock);
    for (unsigned i = 0; i < JOBS; i++) {
        if (a->jobs[i] != NULL) {
            free(a->jobs[i]->executed);
            free(a->jobs[i]->more);
        }
        pages_sparse_free(a->jobs[i], sizeof(*a->jobs[i]));
    }
    pages_sparse_free(a->tables, sizeof(*a->tables));
    free(a);
}

int ahead_begin(struct ahead *a, const struct ahead_source *source)
{
    if (ahead_waiting(a) == JOBS)
        return 0;
    struct job *job = a->jobs[a->begun % JOBS]; /* no other thread writes it, nor reads it yet */
    job->nlines = job->nrepeats = job->nturns = job->nexecuted = job->nmore = 0;
    job->source = *source;
    job->desc = *source->desc;
    job->out.process = source->process;
    job->out.seq = source->desc->seq;
    job->out.status = 0;
    job->out.counts = (struct decode_counts){0};
    job->out.batches = job->batches;
    job->out.nbatches = 0;
    job->out.cold = 0;
    pthread_mutex_lock(&a->lock);
    a->begun++;
    pthread_cond_signal(&a->stages[DECODE].work);
    pthread_mutex_unlock(&a->lock);
    return 1;
}

size_t ahead_waiting(const struct ahead *a)
{
    return a->begun - a->taken;
}

static void wait_until_measured(struct ahead *a, size_t number)
{
    pthread_mutex_lock(&a->lock);
    while (a->stages[MEASURE].finished < number)
        pthread_cond_wait(&a->done, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

void ahead_wait(struct ahead *a)
{
    wait_until_measured(a, a->begun);
}

void ahead_discard(struct ahead *a)
{
    ahead_wait(a);
    while (a->taken < a->begun)
        ahead_take(a);
    a->refusing = 0; /* the other threads wait */
}

const struct ahead_buffer *ahead_first(struct ahead *a)
{
    if (a->taken == a->begun)
        return NULL;
    wait_until_measured(a, a->taken + 1);
    if (!a->jobs[a->taken % JOBS]->refused)
        return &a->jobs[a->taken % JOBS]->out;
    ahead_discard(a);
    return NULL;
}

void ahead_note_sites(const struct ahead *a, struct decode_sites *sites)
{
    const struct job *job = a->jobs[a->taken % JOBS];
    for (size_t i = 0; i < job->nexecuted; i++) {
        sites->executions[job->executed[i].block] = job->executed[i].count;
        sites->executed[sites->nexecuted++] = job->executed[i].block;
    }
    for (size_t i = 0; i < job->nmore; i++)
        sites->more(sites->ctx, job->more[i].site, job->more[i].touches);
}

void ahead_take(struct ahead *a)
{
    struct ahead_buffer *out = &a->jobs[a->taken++ % JOBS]->out;
    memset(out->stack.count, 0, out->bins * sizeof(out->stack.count[0]));
    out->stack.total = 0;
    thread_buffer_clear(&out->own);
}
