/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/* Threads, one after the other, whose ends call destructors, made after the agent's own key. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include "rounds.h"

static pthread_key_t key;

static void destroy(void *value)
{
    printf("destructor %d\n", (int)(intptr_t)value);
    fflush(stdout);
}

static void *work(void *value)
{
    static uint32_t table[65536];
    uint64_t x = 7;
    pthread_setspecific(key, value);
    for (int i = 0; i < rounds_of_work(10000000); i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        table[x >> 48] += (uint32_t)x;
    }
    return value;
}

int main(void)
{
    pthread_key_create(&key, destroy);
    for (intptr_t i = 1; i <= 4; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, work, (void *)i))
            return 1;
        pthread_join(t, NULL);
    }
    puts("end");
    return 3;
}
