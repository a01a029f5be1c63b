/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/*
 * sleeping_main N: two threads touch tables of their own, of 512 KB; the main thread reads a few bytes and
 * sleeps for two milliseconds, N times. Of CPU time it takes next to nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 1 << 17 };
static int over;

static void *work(void *arg)
{
    uint32_t *own = calloc(WORDS, sizeof *own), x = (uint32_t)(uintptr_t)arg;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        for (int i = 0; i < 10000; i++) {
            x = x * 1664525 + 1013904223;
            own[x >> 15] += x;
        }
    free(own);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t workers[2];
    char bytes[16];
    int zero = open("/dev/zero", O_RDONLY);
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&workers[i], NULL, work, (void *)i);
    for (long i = 0; i < rounds; i++) {
        usleep(2000);
        if (read(zero, bytes, sizeof bytes) != sizeof bytes)
            printf("wrong read\n");
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    printf("done\n");
    return 0;
}
