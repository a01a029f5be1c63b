/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pirate.c - sweeps, and the timed loads between them.
 *
 * The sweep. A set is kept in an LRU cache best by always touching the line that was not touched for longest:
 * a linear sweep, one word per line (Eklov's thesis, III.3.2). Hardware prefetchers help, so that a sweep
 * runs at the bandwidth of the last level.
 *
 * The proof. For the same reason the duration of a sweep says little: prefetched from memory, it is hardly
 * slower. So after every CHUNK of lines a single load is timed. Its line is too far ahead to have been
 * prefetched, but near enough that it was not touched for all but two chunks of a sweep: it would be evicted
 * among the first. Its position in its chunk is random, so that a stride of the Target hits it neither always
 * nor never.
 *
 * Intervals in which the thread did not run (scheduler, interrupts, the host of a virtual machine) contain no
 * loads to time. So each chunk reads the clock, and a duration far beyond that of a chunk from memory is lost
 * time. Its share bounds how long the Target had the cache for itself.
 */
#include "pirate/pirate.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <x86intrin.h>

#include "base/random.h"
#include "collect/launch/process-time.h"

/* 256 lines between timed loads: the timing costs a tenth of the sweep's speed. */
#define CHUNK_BYTES 16384u
#define HUGE_BYTES (UINT64_C(2) << 20)
/* A chunk from memory, one line after the other, takes at most 50 us. */
#define LOST_NS 100000.0
/* Set for known hits: well beyond private caches, well inside the last level. */
#define CALIBRATION_SHARE 0.125
#define CALIBRATION_LOADS 20000u
#define CALIBRATION_TRIES 8 /* another program on this core can spoil a try */

/* Written only by the thread, read by any: single words, which need no ordering. */
struct counters {
    _Atomic uint64_t probes, slow, interrupted, ticks, lost_ticks, lines;
};

/* pirate_is_shared: number of batches, of which the fastest counts, round trips in each, and the timeout. */
#define PING_BATCHES 20u
#define PING_ROUNDS 20u
#define PING_NS 20000000.0

struct part {
    char *from;
    uint64_t bytes; /* 0: idle */
    int answer;     /* answer pings */
};

struct thief {
    struct pirate *pirate;
    pthread_t thread;
    int cpu;
    struct part ordered; /* protected by the lock */
    struct random_state random;
    struct counters count;
    char padding[128]; /* padding: counters of two threads never share a line */
};

struct pirate {
    struct llc llc;
    char *memory;
    uint64_t memory_bytes;
    int huge;
    struct hold_scale scale;
    double ticks_per_ns;
    struct thief thief[LLC_PIRATES];
    unsigned threads; /* started */
    /* The order: protected by the lock, except `generation`, which sweeps read after every chunk. */
    pthread_mutex_t lock;
    pthread_cond_t ordered, ready;
    _Atomic uint64_t generation;
    unsigned busy; /* threads that are still fetching their sets */
    int end;
    char padding[128];
    _Atomic uint64_t measure_ping; /* odd: the Pirate must answer */
    char more_padding[128];
    double transfer_ticks;
};

/* --- loads --- */

static inline void touch(const char *p)
{
    (void)*(const volatile char *)p;
}

static void sweep(const char *from, uint64_t bytes, unsigned line)
{
    for (uint64_t at = 0; at < bytes; at += line)
        touch(from + at);
}

/* Ticks of one load; fences exclude other loads. */
static inline uint32_t timed_load(const char *p)
{
    unsigned cpu;
    _mm_lfence();
    uint64_t start = __rdtsc();
    _mm_lfence();
    touch(p);
    uint64_t took = __rdtscp(&cpu) - start;
    _mm_lfence();
    return took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
}

/* --- calibration --- */

/* The line to time after the chunk at `at`: at a random position of the chunk after the next one. */
static const char *line_ahead(const char *from, uint64_t bytes, uint64_t at, unsigned line,
                              struct random_state *random)
{
    uint64_t ahead = at + 2 * CHUNK_BYTES + random_below(random, CHUNK_BYTES / line) * line;
    return from + ahead % bytes;
}

static double measure_ticks_per_ns(void)
{
    uint64_t start_ns = monotonic_ns(), start = __rdtsc(), end_ns;
    do
        end_ns = monotonic_ns();
    while (end_ns - start_ns < 20000000);
    return (double)(__rdtsc() - start) / (double)(end_ns - start_ns);
}

/* Hits as in a sweep; then misses: lines that were just flushed, in an order that no prefetcher follows. */
static void time_both(struct pirate *p, uint32_t *hits, uint32_t *misses)
{
    unsigned line = p->llc.line_bytes;
    struct random_state random;
    uint64_t want = (uint64_t)(CALIBRATION_SHARE * (double)p->llc.size_bytes) + p->llc.private_bytes;
    uint64_t bytes = (want < p->memory_bytes ? want : p->memory_bytes) / CHUNK_BYTES * CHUNK_BYTES;
    size_t n = 0;
    random_seed(&random, 1);
    for (int warm = 0; warm < 3; warm++)
        sweep(p->memory, bytes, line);
    while (n < CALIBRATION_LOADS)
        for (uint64_t at = 0; at < bytes && n < CALIBRATION_LOADS; at += CHUNK_BYTES) {
            sweep(p->memory + at, CHUNK_BYTES, line);
            hits[n++] = timed_load(line_ahead(p->memory, bytes, at, line, &random));
        }
    for (n = 0; n < CALIBRATION_LOADS; n++) {
        char *at = p->memory + random_below(&random, p->memory_bytes / line) * line;
        _mm_clflush(at);
        _mm_mfence();
        misses[n] = timed_load(at);
    }
}

int pirate_calibrate(struct pirate *p, struct error *err)
{
    uint32_t *times = malloc(2 * CALIBRATION_LOADS * sizeof *times);
    cpu_set_t before, there;
    if (!times)
        return error_set(err, -ENOMEM, "out of memory");
    CPU_ZERO(&there);
    CPU_SET((size_t)p->thief[0].cpu, &there);
    int moved =
        sched_getaffinity(0, sizeof before, &before) == 0 && sched_setaffinity(0, sizeof there, &there) == 0;
    p->ticks_per_ns = measure_ticks_per_ns();
    int code = -EAGAIN;
    for (int i = 0; i < CALIBRATION_TRIES && code != 0; i++) {
        time_both(p, times, times + CALIBRATION_LOADS);
        code = hold_calibrate(times, CALIBRATION_LOADS, times + CALIBRATION_LOADS, CALIBRATION_LOADS,
                              &p->scale, err);
    }
    if (moved)
        sched_setaffinity(0, sizeof before, &before);
    free(times);
    return code;
}

/* --- threads --- */

static inline void count(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

/* Sweeps until there is another order. */
static void sweep_until_ordered(struct thief *t, struct part part, uint64_t generation)
{
    struct pirate *p = t->pirate;
    unsigned line = p->llc.line_bytes;
    uint64_t lost_ticks = (uint64_t)(LOST_NS * p->ticks_per_ns), before = __rdtsc();
    for (uint64_t at = 0;; at = at + CHUNK_BYTES < part.bytes ? at + CHUNK_BYTES : 0) {
        uint64_t bytes = part.bytes - at < CHUNK_BYTES ? part.bytes - at : CHUNK_BYTES;
        sweep(part.from + at, bytes, line);
        uint32_t took = timed_load(line_ahead(part.from, part.bytes, at, line, &t->random));
        uint64_t now = __rdtsc();
        if ((double)took > p->scale.longest) {
            count(&t->count.interrupted, 1);
        } else {
            count(&t->count.probes, 1);
            count(&t->count.slow, (double)took > p->scale.threshold);
        }
        count(&t->count.lines, bytes / line);
        count(&t->count.ticks, now - before);
        if (now - before > lost_ticks)
            count(&t->count.lost_ticks, now - before);
        before = now;
        if (atomic_load_explicit(&p->generation, memory_order_relaxed) != generation)
            return;
    }
}

static void fetch_set(struct part part, struct part before, unsigned line)
{
    uint64_t had = part.from == before.from ? before.bytes : 0;
    if (part.bytes > had)
        sweep(part.from + had, part.bytes - had, line);
    sweep(part.from, part.bytes, line);
}

/* A line goes back and forth: the thread that finds the other's value adds 1. */
static void answer_pings(struct pirate *p, uint64_t generation)
{
    while (atomic_load_explicit(&p->generation, memory_order_relaxed) == generation) {
        uint64_t value = atomic_load_explicit(&p->measure_ping, memory_order_acquire);
        if (value & 1)
            atomic_store_explicit(&p->measure_ping, value + 1, memory_order_release);
    }
}

static void *work(void *context)
{
    struct thief *t = context;
    struct pirate *p = t->pirate;
    struct part part = {0};
    uint64_t done = 0;
    pthread_mutex_lock(&p->lock);
    while (!p->end) {
        uint64_t generation = atomic_load(&p->generation);
        if (generation == done) {
            pthread_cond_wait(&p->ordered, &p->lock);
            continue;
        }
        struct part before = part;
        part = t->ordered;
        done = generation;
        pthread_mutex_unlock(&p->lock);
        fetch_set(part, before, p->llc.line_bytes);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0)
            pthread_cond_signal(&p->ready);
        if (part.bytes > 0 || part.answer) {
            pthread_mutex_unlock(&p->lock);
            if (part.answer)
                answer_pings(p, generation);
            else
                sweep_until_ordered(t, part, generation);
            pthread_mutex_lock(&p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int start_thread(struct pirate *p, struct error *err)
{
    struct thief *t = &p->thief[p->threads];
    pthread_attr_t attributes;
    sigset_t all, before;
    cpu_set_t one;
    t->pirate = p;
    t->cpu = p->llc.pirate_cpu[p->threads];
    random_seed(&t->random, p->threads + 1);
    CPU_ZERO(&one);
    CPU_SET((size_t)t->cpu, &one);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    int code = pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
    if (code == 0)
        code = pthread_create(&t->thread, &attributes, work, t);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return error_set(err, -code, "cannot start a Pirate thread on CPU %d: %s", t->cpu, strerror(code));
    p->threads++;
    return 0;
}

/* Are all pages of the memory huge ones? According to the kernel. */
static int in_huge_pages(const char *memory, uint64_t bytes)
{
    char line[256];
    int here = 0;
    unsigned long from, to, kilobytes = 0;
    FILE *f = fopen("/proc/self/smaps", "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = from <= (uintptr_t)memory && (uintptr_t)memory + bytes <= to;
        else if (here && sscanf(line, "AnonHugePages: %lu", &kilobytes) == 1)
            break;
    }
    if (f)
        fclose(f);
    return kilobytes * 1024 >= bytes;
}

int pirate_new(const struct llc *llc, unsigned threads, uint64_t largest_bytes, struct pirate **pirate,
               struct error *err)
{
    if (threads < 1 || threads > llc->pirates || largest_bytes < 4 * CHUNK_BYTES)
        return error_set(err, -EINVAL, "the Pirate needs 1 to %u threads and %u bytes or more", llc->pirates,
                         4 * CHUNK_BYTES);
    struct pirate *p = calloc(1, sizeof *p);
    if (!p)
        return error_set(err, -ENOMEM, "out of memory");
    p->llc = *llc;
    p->memory_bytes = (largest_bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->ordered, NULL);
    pthread_cond_init(&p->ready, NULL);
    /* One huge page more, for alignment. */
    char *mapped =
        mmap(NULL, p->memory_bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int code = 0;
    if (mapped == MAP_FAILED) {
        code = error_set(err, -ENOMEM, "out of memory for a Pirate of %llu bytes",
                         (unsigned long long)largest_bytes);
    } else {
        uint64_t skip = (HUGE_BYTES - (uintptr_t)mapped % HUGE_BYTES) % HUGE_BYTES;
        if (skip > 0)
            munmap(mapped, skip);
        if (skip < HUGE_BYTES)
            munmap(mapped + skip + p->memory_bytes, HUGE_BYTES - skip);
        p->memory = mapped + skip;
        madvise(p->memory, p->memory_bytes,
                MADV_HUGEPAGE); /* if refused: small pages, which calibration takes into account */
        memset(p->memory, 1, p->memory_bytes); /* otherwise all pages would map the zero page */
        p->huge = in_huge_pages(p->memory, p->memory_bytes);
    }
    while (code == 0 && p->threads < threads)
        code = start_thread(p, err);
    if (code != 0) {
        pirate_free(p);
        return code;
    }
    *pirate = p;
    return 0;
}

void pirate_free(struct pirate *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->end = 1;
    atomic_fetch_add(&p->generation, 1);
    pthread_cond_broadcast(&p->ordered);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->threads; i++)
        pthread_join(p->thief[i].thread, NULL);
    if (p->memory)
        munmap(p->memory, p->memory_bytes);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->ordered);
    pthread_cond_destroy(&p->ready);
    free(p);
}

/* Passes on orders, and waits until they have been started. Parts are set, except `answer`. */
static void order(struct pirate *p)
{
    p->busy = p->threads;
    atomic_fetch_add(&p->generation, 1);
    pthread_cond_broadcast(&p->ordered);
    while (p->busy > 0)
        pthread_cond_wait(&p->ready, &p->lock);
}

void pirate_steal(struct pirate *p, unsigned threads, uint64_t bytes)
{
    unsigned line = p->llc.line_bytes;
    if (threads > p->threads)
        threads = p->threads;
    if (bytes > p->memory_bytes)
        bytes = p->memory_bytes;
    uint64_t part = threads ? bytes / threads / line * line : 0;
    pthread_mutex_lock(&p->lock);
    for (unsigned i = 0; i < p->threads; i++)
        p->thief[i].ordered = (struct part){p->memory + i * part, i < threads ? part : 0, 0};
    order(p);
    pthread_mutex_unlock(&p->lock);
}

/* Ticks of one way, in the fastest batch; 0 if there was no answer in time. */
static double measure_ping(struct pirate *p)
{
    uint64_t give_up = (uint64_t)(PING_NS * p->ticks_per_ns), begin = __rdtsc(), fastest = UINT64_MAX;
    for (unsigned batch = 0; batch < PING_BATCHES; batch++) {
        uint64_t start = __rdtsc();
        for (unsigned i = 0; i < PING_ROUNDS; i++) {
            uint64_t value = atomic_load_explicit(&p->measure_ping, memory_order_relaxed) + 1;
            atomic_store_explicit(&p->measure_ping, value, memory_order_release);
            while (atomic_load_explicit(&p->measure_ping, memory_order_acquire) == value)
                if (__rdtsc() - begin > give_up)
                    return 0;
        }
        uint64_t took = __rdtsc() - start;
        fastest = took < fastest ? took : fastest;
    }
    return (double)fastest / (2 * PING_ROUNDS);
}

int pirate_is_shared(struct pirate *p)
{
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->measure_ping, (atomic_load(&p->measure_ping) + 1) &
                                       ~UINT64_C(1)); /* a previous unanswered one is cancelled */
    for (unsigned i = 0; i < p->threads; i++)
        p->thief[i].ordered = (struct part){p->memory, 0, i == 0};
    order(p);
    pthread_mutex_unlock(&p->lock);
    double ticks = measure_ping(p);
    pirate_steal(p, 0, 0);
    if (ticks == 0)
        return -EAGAIN;
    p->transfer_ticks = ticks;
    return ticks < p->scale.threshold;
}

double pirate_transfer_ticks(const struct pirate *p)
{
    return p->transfer_ticks;
}

struct hold_count pirate_count(const struct pirate *p)
{
    struct hold_count all = {0};
    for (unsigned i = 0; i < p->threads; i++) {
        const struct counters *c = &p->thief[i].count;
        const struct hold_count one = {.probes = atomic_load(&c->probes),
                                       .slow = atomic_load(&c->slow),
                                       .interrupted = atomic_load(&c->interrupted),
                                       .ticks = atomic_load(&c->ticks),
                                       .lost_ticks = atomic_load(&c->lost_ticks),
                                       .lines = atomic_load(&c->lines)};
        hold_add(&all, &one);
    }
    return all;
}

const struct hold_scale *pirate_scale(const struct pirate *p)
{
    return &p->scale;
}

double pirate_ticks_per_ns(const struct pirate *p)
{
    return p->ticks_per_ns;
}

int pirate_has_huge_pages(const struct pirate *p)
{
    return p->huge;
}
