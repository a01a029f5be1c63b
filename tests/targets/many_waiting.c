/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/* More threads than buffers of full mode: all are created, wait for a semaphore, and end. */
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t sem;

static void *wait_once(void *p)
{
    sem_wait(&sem);
    return p;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 400;
    pthread_t *threads = calloc((size_t)n, sizeof *threads);
    pthread_attr_t attributes;
    if (!threads || pthread_attr_init(&attributes) != 0)
        return 1;
    pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN);
    sem_init(&sem, 0, 0);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], &attributes, wait_once, NULL) != 0)
            return 2;
    for (int i = 0; i < n; i++)
        sem_post(&sem);
    for (int i = 0; i < n; i++)
        if (pthread_join(threads[i], NULL) != 0)
            return 3;
    puts("all have ended");
    free(threads);
    return 0;
}
