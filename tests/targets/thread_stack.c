/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/*
 * thread_stack ROUNDS: a thread loads one line after the other of an array of 2,000 lines on its own stack,
 * again and again, and touches no memory besides, while the first thread waits for it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 2000 };
static uint64_t rounds;

static void *sweep(void *result)
{
    uint8_t lines[LINES * 64];
    uint64_t sum = 1;
    memset(lines, 3, sizeof lines);
    for (uint64_t round = 0; round < rounds; round++)
        for (int i = 0; i < LINES; i++)
            __asm__ volatile("add (%1), %0\n\t.rept 20\n\timul %0, %0\n\t.endr"
                             : "+r"(sum)
                             : "r"(lines + i * 64)
                             : "cc", "memory");
    *(uint64_t *)result = sum;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    uint64_t result;
    rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    if (pthread_create(&thread, NULL, sweep, &result) != 0)
        return 1;
    pthread_join(thread, NULL);
    printf("%llu\n", (unsigned long long)result);
    return 0;
}
