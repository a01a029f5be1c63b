/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bandwidth.c - each thread sweeps its own buffer repeatedly with 16-byte vectors; all start at a barrier and
 * stop by the clock. Rates are relative to the threads' CPU time, so that time of other threads on a core
 * does not appear as slow memory. A private level's buffer fills half of it, the buffers of a shared level
 * together fill half of it, and those for memory are four times the outermost level.
 */
#define _GNU_SOURCE
#include "machine/bandwidth.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LARGEST_BYTES (UINT64_C(1) << 28)

typedef long long vector __attribute__((vector_size(16)));

enum kind { READ, WRITE, COPY, KINDS };

struct worker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    vector *buffer;
    size_t vectors; /* in it; a multiple of 16 */
    enum kind kind;
    int cpu;
    double seconds, gbps;
};

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Each reads the buffer once. Four sums, so that loads do not wait for each other. */
static void read_all(const vector *v, size_t n)
{
    vector a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t i = 0; i < n; i += 8) {
        a |= v[i] | v[i + 1];
        b |= v[i + 2] | v[i + 3];
        c |= v[i + 4] | v[i + 5];
        d |= v[i + 6] | v[i + 7];
    }
    a |= b | c | d;
    __asm__ volatile("" : : "x"(a)); /* prevents removal of the loop */
}

static void write_all(vector *v, size_t n)
{
    const vector value = {1, 2};
    for (size_t i = 0; i < n; i += 8) {
        v[i] = v[i + 1] = v[i + 2] = v[i + 3] = value;
        v[i + 4] = v[i + 5] = v[i + 6] = v[i + 7] = value;
        __asm__ volatile("" : : : "memory"); /* prevents a call of memset */
    }
}

static void copy_all(vector *v, size_t n)
{
    vector *to = v + n / 2;
    for (size_t i = 0; i < n / 2; i += 8) {
        vector a = v[i], b = v[i + 1], c = v[i + 2], d = v[i + 3];
        vector e = v[i + 4], f = v[i + 5], g = v[i + 6], h = v[i + 7];
        to[i] = a, to[i + 1] = b, to[i + 2] = c, to[i + 3] = d;
        to[i + 4] = e, to[i + 5] = f, to[i + 6] = g, to[i + 7] = h;
        __asm__ volatile("" : : : "memory");
    }
}

static void once(const struct worker *w)
{
    if (w->kind == READ)
        read_all(w->buffer, w->vectors);
    else if (w->kind == WRITE)
        write_all(w->buffer, w->vectors);
    else
        copy_all(w->buffer, w->vectors);
}

static void *work(void *context)
{
    struct worker *w = context;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)w->cpu, &one);
    sched_setaffinity(0, sizeof one, &one); /* on failure, the scheduler chooses */
    once(w);
    pthread_barrier_wait(w->barrier);
    double start = cpu_s(), end = start;
    uint64_t rounds = 0, step = 1 + (UINT64_C(1) << 20) / (w->vectors * sizeof(vector));
    while (end - start < w->seconds) { /* the clock is read once per megabyte */
        for (uint64_t i = 0; i < step; i++)
            once(w);
        rounds += step;
        end = cpu_s();
    }
    w->gbps = (double)rounds * (double)(w->vectors * sizeof(vector)) / (end - start) * 1e-9;
    return NULL;
}

/* Runs all together; NaN if a thread could not be started. */
static double run(struct worker *workers, unsigned n, enum kind kind)
{
    pthread_barrier_t barrier;
    double sum = 0;
    unsigned started = 0;
    if (pthread_barrier_init(&barrier, NULL, n) != 0)
        return NAN;
    for (; started < n; started++) {
        workers[started].barrier = &barrier;
        workers[started].kind = kind;
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    for (unsigned i = started; i < n && started > 0;
         i++) /* replaces missing threads, so that the others do not wait forever */
        pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        sum += workers[i].gbps;
    }
    pthread_barrier_destroy(&barrier);
    return started == n ? sum : NAN;
}

static uint64_t bytes_each(const struct machine *m, uint32_t level, unsigned cores)
{
    if (level < m->levels) {
        unsigned sharers = m->level[level].shared_by < cores ? m->level[level].shared_by : cores;
        return m->level[level].size_bytes / 2 / (sharers ? sharers : 1);
    }
    uint64_t all = 4 * m->level[m->levels - 1].size_bytes;
    return (all < LARGEST_BYTES ? all : LARGEST_BYTES) / cores;
}

/* Lists the CPUs on which the process may run, in order. */
static unsigned cpus(int *list, unsigned most)
{
    cpu_set_t may;
    unsigned n = 0;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && n < most; cpu++)
        if (CPU_ISSET((size_t)cpu, &may))
            list[n++] = cpu;
    return n;
}

int bandwidth_measure(struct machine *machine, uint32_t level, unsigned cores, double seconds,
                      const volatile int *interrupted, struct error *err)
{
    struct machine_level *into = level < machine->levels ? &machine->level[level] : &machine->memory;
    struct worker workers[MACHINE_CORES];
    int list[MACHINE_CORES], code = 0;
    unsigned most = cpus(list, cores < MACHINE_CORES ? cores : MACHINE_CORES);
    into->nbandwidth = 0;
    for (unsigned n = 1; n <= most && code == 0; n++) {
        size_t bytes = bytes_each(machine, level, n) / 256 * 256;
        if (bytes == 0)
            return error_set(err, -EINVAL, "a cache of %llu bytes is too small to measure",
                             (unsigned long long)into->size_bytes);
        char *memory = mmap(NULL, bytes * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return error_set(err, -ENOMEM, "out of memory for %u buffers of %zu bytes", n, bytes);
        madvise(memory, bytes * n, MADV_HUGEPAGE);
        memset(memory, 1, bytes * n); /* otherwise all pages would map the zero page */
        for (unsigned i = 0; i < n; i++)
            workers[i] = (struct worker){.buffer = (vector *)(memory + i * bytes),
                                         .vectors = bytes / sizeof(vector),
                                         .cpu = list[i],
                                         .seconds = seconds};
        struct machine_bandwidth *b = &into->bandwidth[into->nbandwidth++];
        b->cores = n;
        b->read_gbps = run(workers, n, READ);
        b->write_gbps = run(workers, n, WRITE);
        b->copy_gbps = run(workers, n, COPY);
        munmap(memory, bytes * n);
        if (interrupted && *interrupted)
            code = error_set(err, -EINTR, "interrupted");
    }
    return code;
}
