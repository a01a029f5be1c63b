/* SPDX-License-Identifier: Apache-2.0 */
/* equal_threads THREADS ROUNDS: threads that each load and store ROUNDS times, in 16 KB of their own. */
/* build: -pthread */
#include <pthread.h>
#include <stdlib.h>

enum { MOST = 16, CELLS = 4096 };
static volatile int cells[MOST][CELLS];
static long rounds;

static void *run(void *mine)
{
    volatile int *own = mine;
    for (long i = 0; i < rounds; i++)
        own[i % CELLS]++;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[MOST];
    int n = argc > 1 ? atoi(argv[1]) : 0;
    rounds = argc > 2 ? atol(argv[2]) : 0;
    for (int i = 0; i < n && i < MOST; i++)
        if (pthread_create(&thread[i], NULL, run, (void *)cells[i]) != 0)
            return 1;
    for (int i = 0; i < n && i < MOST; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
