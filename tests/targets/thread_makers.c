/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/* Threads that do little but make system calls, while others make threads and programs: libc blocks all
 * signals meanwhile. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CALLERS = 2, MAKERS = 2, MADE = 400, SPAWNED = 30, WORDS = 4096 };
static int over;

static void *calls(void *arg)
{
    uint32_t *own = calloc(WORDS, sizeof *own), x = (uint32_t)(uintptr_t)arg;
    int zero = open("/dev/zero", O_RDONLY);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        for (int i = 0; i < 200; i++) {
            x = x * 1664525 + 1013904223;
            own[x % WORDS] += x;
        }
        if (read(zero, own, 64) != 64)
            printf("wrong read\n");
    }
    close(zero);
    free(own);
    return NULL;
}

static void *short_lived(void *arg)
{
    return (void *)((uintptr_t)arg + 1);
}

static void *makes(void *arg)
{
    uintptr_t sum = 0;
    for (uintptr_t i = 0; i < MADE; i++) {
        pthread_t t;
        void *result;
        if (pthread_create(&t, NULL, short_lived, (void *)i) || pthread_join(t, &result))
            printf("wrong thread\n");
        sum += (uintptr_t)result;
    }
    (void)arg;
    return (void *)sum;
}

static void *spawns(void *arg)
{
    for (int i = 0; i < SPAWNED; i++)
        if (system("exit 7") != 7 << 8)
            printf("wrong child\n");
    return arg;
}

int main(void)
{
    pthread_t callers[CALLERS], makers[MAKERS + 1];
    for (uintptr_t i = 0; i < CALLERS; i++)
        pthread_create(&callers[i], NULL, calls, (void *)i);
    for (int i = 0; i <= MAKERS; i++)
        pthread_create(&makers[i], NULL, i < MAKERS ? makes : spawns, NULL);
    for (int i = 0; i <= MAKERS; i++) {
        void *result;
        pthread_join(makers[i], &result);
        printf("maker %d: %ju\n", i, (uintmax_t)(uintptr_t)result);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    return 0;
}
