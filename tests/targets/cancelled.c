/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that are cancelled in system calls; then a library is closed, whose code no one may be in any more,
 * and the main thread computes.
 *
 * usage: cancelled LIBRARY
 */
/* build: -pthread -ldl */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include "rounds.h"

static int ends[2], cleaned, destroyed;
static volatile char memory[1 << 20];
static pthread_key_t key;

static void count(void *counter)
{
    (*(int *)counter)++;
}

static void *work(void *unused)
{
    char c;
    pthread_setspecific(key, &destroyed);
    pthread_cleanup_push(count, &cleaned);
    do
        for (unsigned i = 0; i < 1000000; i++)
            memory[i & (sizeof memory - 1)]++;
    while (read(ends[0], &c, 1) >= 0);
    pthread_cleanup_pop(0);
    return unused;
}

int main(int argc, char **argv)
{
    if (argc < 2 || pipe(ends) || pthread_key_create(&key, count))
        return 1;
    for (int i = 0; i < 20; i++) {
        pthread_t t;
        void *result = NULL;
        pthread_create(&t, NULL, work, NULL);
        usleep(30000);
        pthread_cancel(t);
        pthread_join(t, &result);
        if (result != PTHREAD_CANCELED)
            puts("not cancelled");
    }
    printf("cleaned %d destroyed %d\n", cleaned, destroyed);
    void *library = dlopen(argv[1], RTLD_NOW);
    if (library)
        dlclose(library);
    for (int i = 0; i < rounds_of_work(50000000); i++)
        memory[(unsigned)i * 64 & (sizeof memory - 1)]++;
    return 0;
}
