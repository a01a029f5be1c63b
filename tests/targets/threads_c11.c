/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/* C11 threads: results, thread-specific data, exit by return and by thrd_exit. */
#include <stdint.h>
#include <stdio.h>
#include <threads.h>
#include "rounds.h"

enum { THREADS = 8, WORDS = 2048, ROUNDS = 6000 };
static uint32_t table[THREADS][WORDS];
static tss_t key;
static int destroyed;
static mtx_t lock;

static void destroy(void *p)
{
    (void)p;
    mtx_lock(&lock);
    destroyed++;
    mtx_unlock(&lock);
}

static int work(void *argument)
{
    uint32_t self = (uint32_t)(uintptr_t)argument, *own = table[self];
    tss_set(key, own);
    for (int r = 0; r < rounds_of_work(ROUNDS); r++)
        for (uint32_t i = 0; i < WORDS; i++)
            own[i] = own[i] * 1664525u + i * self + (uint32_t)r;
    int result = (int)(own[self] & 0xffff);
    if (self % 2)
        thrd_exit(-result);
    return result;
}

int main(void)
{
    thrd_t t[THREADS];
    mtx_init(&lock, mtx_plain);
    tss_create(&key, destroy);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (thrd_create(&t[i], work, (void *)i) != thrd_success)
            return 1;
    for (int i = 0; i < THREADS; i++) {
        int result;
        thrd_join(t[i], &result);
        printf("%d: %d\n", i, result);
    }
    printf("destroyed %d\n", destroyed);
    return 0;
}
