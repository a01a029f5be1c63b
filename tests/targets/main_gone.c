/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first thread ends before the others: /proc/self then shows no mappings. They load a library, after
 * which the list of mappings has to be read again, and continue with code that has not run before, each
 * thread in a page of its own.
 */
/* build: -pthread */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "work.h"

enum { THREADS = 8 };

#define NEW_CODE(n)                                                                          \
    static __attribute__((noinline, aligned(4096))) uint64_t code##n(uint64_t x, int rounds) \
    {                                                                                        \
        rounds = rounds_of_work(rounds);                                                     \
        static uint64_t table[4096];                                                         \
        for (int i = 0; i < rounds; i++) {                                                   \
            x = x * 6364136223846793005u + n;                                                \
            table[x >> 52] += x;                                                             \
        }                                                                                    \
        return x + table[n];                                                                 \
    }

NEW_CODE(0)
NEW_CODE(1)
NEW_CODE(2)
NEW_CODE(3)
NEW_CODE(4)
NEW_CODE(5)
NEW_CODE(6)
NEW_CODE(7)

static uint64_t (*const code[THREADS])(uint64_t, int) = {code0, code1, code2, code3,
                                                         code4, code5, code6, code7};
static pthread_t before[THREADS];

static int compare(const void *a, const void *b)
{
    return *(const unsigned char *)a - *(const unsigned char *)b;
}

/* Waits for the thread before it, the first one for that of main. */
static void *thread(void *number)
{
    int n = (int)(intptr_t)number;
    char text[] = "nothing of this was executed";
    if (pthread_join(before[n], NULL))
        abort();
    if (n == 0 && !dlopen("libm.so.6", RTLD_NOW))
        abort();
    uint64_t x = code[n](1, 1000000);
    qsort(text, sizeof text - 1, 1, compare);
    printf("thread %d: %#llx %s\n", n, (unsigned long long)x, text);
    if (n == THREADS - 1)
        exit(3);
    return NULL;
}

int main(void)
{
    pthread_t last = pthread_self();
    for (int i = 0; i < THREADS; i++) {
        before[i] = last;
        if (pthread_create(&last, NULL, thread, (void *)(intptr_t)i))
            return 1;
    }
    pthread_exit(NULL);
}
