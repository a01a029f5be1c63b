/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/*
 * Computes a while, then loads a library, makes a thread as its start would, and computes with it.
 *
 * usage: go_like LIBRARY
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include "rounds.h"

static volatile uint32_t words[1u << 18];

static void *compute(void *unused)
{
    uint32_t state = 1;
    for (int i = 0; i < rounds_of_work(30000000); i++) {
        state = state * 1664525 + 1013904223;
        words[state >> 14]++;
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    compute(NULL);
    if (argc < 2 || !dlopen(argv[1], RTLD_NOW) || pthread_create(&thread, NULL, compute, NULL))
        return 1;
    struct sigaction action;
    sigaction(SIGTRAP, NULL, &action);
    pthread_join(thread, NULL);
    printf("default %d\n", action.sa_handler == SIG_DFL);
    return 0;
}
