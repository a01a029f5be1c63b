/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/*
 * Threads, one after the other, in the same place of whoever keeps places for threads. Only the first makes
 * elements of string instructions: 200 times BYTES.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define THREADS 10
#define BYTES (1u << 20)

static char big[BYTES];
static volatile char lines[4u << 20];

static void *work(void *first)
{
    for (int i = 0; first && i < 200; i++) {
        void *to = big;
        unsigned long count = BYTES;
        __asm__ volatile("rep stosb" : "+c"(count), "+D"(to) : "a"(0) : "memory");
    }
    for (unsigned long i = 0; i < 2000000; i++)
        lines[i * 64 % sizeof lines]++;
    return NULL;
}

int main(void)
{
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, i == 0 ? big : NULL))
            return 1;
        pthread_join(thread, NULL);
    }
    puts("done");
    return 0;
}
