/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/* Fifty threads at once, each a checksum over its own and a shared table; locks, thread-local data, exit. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rounds.h"

enum { THREADS = 50, WORDS = 4096, ROUNDS = 80 };
static uint32_t shared_table[WORDS];
static uint64_t results[THREADS];
static long counter, once_count, destroyed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static __thread uint64_t local = 99;

static void count_once(void)
{
    once_count++;
}

static void destroy(void *p)
{
    free(p);
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}

static void *work(void *arg)
{
    uintptr_t self = (uintptr_t)arg;
    uint32_t *own = malloc(WORDS * sizeof *own);
    pthread_setspecific(key, malloc(16));
    pthread_once(&once, count_once);
    pthread_barrier_wait(&barrier);
    for (int r = 0; r < rounds_of_work(ROUNDS); r++) {
        for (uint32_t i = 0; i < WORDS; i++) {
            own[i] = shared_table[(i * 7 + self) % WORDS] + (uint32_t)(i * self) + (uint32_t)r;
            local = local * 6364136223846793005ull + own[i];
        }
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    results[self] = local;
    free(own);
    if (self % 2)
        pthread_exit((void *)(self * 2));
    return (void *)(self * 2);
}

int main(void)
{
    pthread_t t[THREADS];
    pthread_key_create(&key, destroy);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uint32_t i = 0; i < WORDS; i++)
        shared_table[i] = i * 2654435761u;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, work, (void *)i);
    uint64_t sum = 0;
    long returned = 0;
    for (int i = 0; i < THREADS; i++) {
        void *r;
        pthread_join(t[i], &r);
        returned += (long)r;
        sum = sum * 31 + results[i];
    }
    printf("sum %016llx returned %ld counter %ld once %ld destroyed %ld main local %llu\n",
           (unsigned long long)sum, returned, counter, once_count, destroyed, (unsigned long long)local);
    return 0;
}
