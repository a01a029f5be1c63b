/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/*
 * Threads that count: hot_sharing WHAT THOUSANDS [THREADS]. They wait for each other every 5000 rounds, so
 * that they work at the same time also where there are too few processors. WHAT: packed, padded (each a
 * counter of its own, without and with a line for each), blocks (packed, allocated), same (all the same
 * counter), reader (one writes what is in the line of what the others read), writers (two members of a
 * structure), locked (a lock and what it protects in one line), ends (counters at the end of a line most of
 * which is another variable's).
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, TURN = 5 };

struct padded {
    _Alignas(64) volatile long count;
};

_Alignas(64) static volatile long counters[MOST];
static struct padded padded_counters[MOST];
_Alignas(64) static volatile long common;
_Alignas(64) static struct {
    volatile long written, read;
} pair;
_Alignas(64) static struct {
    long unused[2];
    volatile long made, used;
} totals;
_Alignas(64) static struct {
    pthread_spinlock_t lock;
    volatile long sums[MOST];
} locked;
extern __attribute__((visibility("hidden"))) volatile long ends[2];
__asm__(".pushsection .data\n .balign 64\n"
        " .type front, @object\n .size front, 48\nfront: .zero 48\n"
        " .type ends, @object\n .size ends, 16\nends: .zero 16\n .popsection");
static volatile long *allocated;
static volatile long sink;
static const long rounds = 1000 * TURN;
static long thousands;
/* Not in the line of pointers that all threads read, such as those to functions of libraries. */
static _Alignas(64) pthread_barrier_t turn;

static __attribute__((noinline)) void packed(long thread)
{
    for (long i = 0; i < rounds; i++)
        counters[thread]++; // packed
}

static __attribute__((noinline)) void padded(long thread)
{
    for (long i = 0; i < rounds; i++)
        padded_counters[thread].count++;
}

static __attribute__((noinline)) void blocks(long thread)
{
    for (long i = 0; i < rounds; i++)
        allocated[thread]++; // blocks
}

static __attribute__((noinline)) void same(long thread)
{
    for (long i = 0; i < rounds; i++)
        common += thread;
}

static __attribute__((noinline)) void reader(long thread)
{
    long sum = 0;
    for (long i = 0; i < rounds; i++) {
        if (thread == 0)
            pair.written = i;
        else
            sum += pair.read; // reader
    }
    sink = sum;
}

static __attribute__((noinline)) void protected(long thread)
{
    for (long i = 0; i < rounds; i++) {
        pthread_spin_lock(&locked.lock);
        locked.sums[thread]++;
        pthread_spin_unlock(&locked.lock);
    }
}

static __attribute__((noinline)) void writers(long thread)
{
    for (long i = 0; i < rounds; i++)
        (*(thread == 0 ? &totals.made : &totals.used))++; // writers
}

static __attribute__((noinline)) void at_the_end(long thread)
{
    for (long i = 0; i < rounds; i++)
        ends[thread & 1]++; // ends
}

static const struct {
    const char *name;
    void (*run)(long thread);
} list[] = {{"packed", packed}, {"padded", padded},   {"blocks", blocks},    {"same", same},
            {"reader", reader}, {"writers", writers}, {"locked", protected}, {"ends", at_the_end}};
static size_t chosen;

static void *work(void *thread)
{
    for (long left = thousands; left > 0; left -= TURN) {
        pthread_barrier_wait(&turn);
        list[chosen].run((long)(intptr_t)thread);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[MOST];
    long nthreads = argc > 3 ? atol(argv[3]) : 2;
    while (argc > 1 && chosen + 1 < sizeof list / sizeof list[0] && strcmp(argv[1], list[chosen].name) != 0)
        chosen++;
    thousands = argc > 2 ? atol(argv[2]) : 0;
    allocated = aligned_alloc(64, 1 << 20); // allocated
    if (nthreads < 1 || nthreads > MOST || allocated == NULL)
        return 1;
    for (int i = 0; i < MOST; i++)
        counters[i] = padded_counters[i].count = allocated[i] = 0;
    pthread_spin_init(&locked.lock, PTHREAD_PROCESS_PRIVATE);
    pthread_barrier_init(&turn, NULL, (unsigned)nthreads);
    for (long i = 0; i < nthreads; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) != 0)
            return 1;
    for (long i = 0; i < nthreads; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", counters[0] + padded_counters[0].count + common + allocated[0]);
    return 0;
}
