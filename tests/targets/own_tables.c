/* SPDX-License-Identifier: Apache-2.0 */
/* THREADS threads, STEPS million steps each: a table of 256 KB of its own, touched at random. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 64
#define WORDS (256u * 1024 / sizeof(uint64_t))

static long steps;

static void *walk(void *argument)
{
    uint64_t random = 7 + (uintptr_t)argument;
    volatile uint64_t *own = calloc(WORDS, sizeof *own);
    if (own == NULL)
        abort();
    for (long i = 0; i < steps; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        own[random % WORDS]++;
    }
    free((void *)own);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[MOST];
    int n = argc > 1 ? atoi(argv[1]) : 2;
    steps = (argc > 2 ? atol(argv[2]) : 1) * 1000000;
    n = n < MOST ? n : MOST;
    for (intptr_t i = 0; i < n; i++)
        if (pthread_create(&thread[i], NULL, walk, (void *)i) != 0)
            abort();
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
