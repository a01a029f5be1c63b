/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/* Threads that end while the first one computes, and between them calls on memory that all use, and children
 * that use all of it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 800, WORDS = 1 << 16, CALLS = 16, BYTES = 64 };
static uint64_t table[WORDS];
static volatile int done;

static uint64_t compute(uint64_t x, int rounds)
{
    while (rounds--) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        table[x >> 48] += x & 1;
    }
    return x;
}

static void *shortly(void *seed)
{
    compute((uint64_t)(uintptr_t)seed, 20000);
    done = 1;
    return NULL;
}

int main(void)
{
    pthread_t other;
    uint64_t x = 1;
    long wrong = 0;
    int status, zero = open("/dev/zero", O_RDONLY);
    for (int i = 0; i < ROUNDS; i++) {
        done = 0;
        pthread_create(&other, NULL, shortly, (void *)(uintptr_t)(i + 1));
        for (int k = 0; k < CALLS; k++) {
            x = compute(x, 200);
            wrong += read(zero, &table[x >> 48 & ~(uint64_t)(BYTES / 8 - 1)], BYTES) != BYTES;
        }
        if (i % 3 == 0) {
            pid_t child = fork();
            if (child == 0) {
                for (int w = 0; w < WORDS; w += 64)
                    table[w]++;
                _exit(3);
            }
            waitpid(child, &status, 0);
            wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 3;
        }
        while (!done)
            x = compute(x, 1000);
        x = compute(x, 40000); /* the other one ends meanwhile */
        pthread_join(other, NULL);
    }
    printf("wrong %ld\n", wrong);
    return wrong != 0;
}
