/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bandwidth.c - each thread sweeps its own buffer repeatedly with 16-byte vectors, on a core of its own; all
 * start together and stop by the clock. Rates are relative to the threads' CPU time, so that time of other
 * threads on a core does not appear as slow memory. A private level's buffer fills half of it, the buffers of
 * a shared level together fill half of it, and those for memory are four times all caches of the outermost
 * level that the cores can use.
 */
#define _GNU_SOURCE
#include "machine/bandwidth.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/read-text.h"

typedef long long vector __attribute__((vector_size(16)));

enum kind { READ, WRITE, COPY, KINDS };

struct worker {
    pthread_t thread;
    atomic_uint *preparing; /* threads that have not fetched their buffers yet */
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
    /* Here, for pages near the core; untouched ones would all map the zero page. */
    memset(w->buffer, 1, w->vectors * sizeof(vector));
    once(w);
    atomic_fetch_sub(w->preparing, 1);
    while (atomic_load(w->preparing) > 0)
        sched_yield();
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
    atomic_uint preparing = n;
    double sum = 0;
    unsigned started = 0;
    for (; started < n; started++) {
        workers[started].preparing = &preparing;
        workers[started].kind = kind;
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    atomic_fetch_sub(&preparing, n - started); /* the others do not wait for missing ones */
    for (unsigned i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        sum += workers[i].gbps;
    }
    return started == n ? sum : NAN;
}

/* Bytes of all buffers for memory; 0: the caches would hold half of them or more. */
static uint64_t bytes_for_memory(const struct machine *m, unsigned cores, uint64_t largest)
{
    const struct machine_level *last = &m->level[m->levels - 1];
    unsigned sharers = last->shared_by ? last->shared_by : 1, caches = (m->cores + sharers - 1) / sharers;
    uint64_t held = last->size_bytes * (cores < caches ? cores : caches);
    uint64_t most = largest ? largest : held / last->size_bytes * MACHINE_LARGEST_BYTES;
    uint64_t all = 4 * held < most ? 4 * held : most;
    return all > 2 * held ? all : 0;
}

static uint64_t bytes_each(const struct machine *m, uint32_t level, unsigned cores, uint64_t largest)
{
    if (level == m->levels)
        return bytes_for_memory(m, cores, largest) / cores;
    unsigned sharers = m->level[level].shared_by < cores ? m->level[level].shared_by : cores;
    return m->level[level].size_bytes / 2 / (sharers ? sharers : 1);
}

/* The first of the CPUs of this one's core. */
static int first_of_core(int cpu)
{
    char siblings[32]; /* "3", "0-1", "2,66" */
    return read_text(siblings, sizeof siblings, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                     cpu) > 0
               ? atoi(siblings)
               : cpu;
}

/* Lists a CPU of each core on which the process may run, in order. */
static unsigned cpus(int *list, unsigned most)
{
    cpu_set_t may;
    unsigned n = 0;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && n < most; cpu++) {
        int first = CPU_ISSET((size_t)cpu, &may) ? first_of_core(cpu) : -1;
        if (first == cpu || (first >= 0 && first < CPU_SETSIZE && !CPU_ISSET((size_t)first, &may)))
            list[n++] = cpu;
    }
    return n;
}

int bandwidth_measure(struct machine *machine, uint32_t level, const struct machine_probe *probe,
                      const volatile int *interrupted, struct error *err)
{
    struct machine_level *into = level < machine->levels ? &machine->level[level] : &machine->memory;
    struct worker workers[MACHINE_CORES];
    int list[MACHINE_CORES], code = 0;
    unsigned wanted = probe->cores && probe->cores < MACHINE_CORES ? probe->cores : MACHINE_CORES;
    unsigned most = cpus(list, wanted);
    into->nbandwidth = 0;
    for (unsigned n = 1; n <= most && code == 0; n++) {
        size_t bytes = bytes_each(machine, level, n, probe->largest_bytes) / 256 * 256;
        if (bytes == 0 && level == machine->levels)
            break;
        if (bytes == 0)
            return error_set(err, -EINVAL, "a cache of %llu bytes is too small to measure",
                             (unsigned long long)into->size_bytes);
        char *memory = mmap(NULL, bytes * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return error_set(err, -ENOMEM, "out of memory for %u buffers of %zu bytes", n, bytes);
        madvise(memory, bytes * n, MADV_HUGEPAGE);
        for (unsigned i = 0; i < n; i++)
            workers[i] = (struct worker){.buffer = (vector *)(memory + i * bytes),
                                         .vectors = bytes / sizeof(vector),
                                         .cpu = list[i],
                                         .seconds = probe->seconds_a_point};
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
