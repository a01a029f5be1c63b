/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_turns LINES ROUNDS: as sweep, but two threads take turns, a round each: each line is touched again
 * after exactly LINES references, and always by the other thread.
 */
/* build: -pthread */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static uint64_t lines, rounds, sum = 1;
static uint8_t *table;
static sem_t turn[2];

static void *sweep(void *me)
{
    long n = (long)me;
    for (uint64_t round = 0; round < rounds; round++) {
        sem_wait(&turn[n]);
        uint64_t s = sum;
        for (uint64_t i = 0; i < lines; i++)
            __asm__ volatile("add (%1), %0\n\t.rept 20\n\timul %0, %0\n\t.endr"
                             : "+r"(s)
                             : "r"(table + i * 64)
                             : "cc");
        sum = s;
        sem_post(&turn[!n]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    lines = strtoull(argv[1], NULL, 0);
    rounds = strtoull(argv[2], NULL, 0) / 2;
    table = mmap(NULL, lines * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (table == MAP_FAILED || sem_init(&turn[0], 0, 1) != 0 || sem_init(&turn[1], 0, 0) != 0)
        return 1;
    pthread_t other;
    sigset_t all; /* as libraries have it for threads of their own, which are sampled nevertheless */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    if (pthread_create(&other, NULL, sweep, (void *)1) != 0)
        return 1;
    sweep((void *)0);
    pthread_join(other, NULL);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
