/* SPDX-License-Identifier: Apache-2.0 */
/* exec of itself ten times, from main, from a child, and with a blocked signal and environment carried on. */
/* build: -pthread */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rounds.h"

static char **args;

static void *from_thread(void *unused)
{
    (void)unused;
    execv("/proc/self/exe", args);
    return NULL;
}

int main(int argc, char **argv)
{
    int left = argc > 1 ? atoi(argv[1]) : 10;
    unsigned h = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    static unsigned table[1024];
    for (int i = 0; i < rounds_of_work(2000000); i++) {
        table[i & 1023] += h;
        h = h * 69069 + table[(h >> 8) & 1023];
    }
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    const char *kept = getenv("CHAIN");
    struct sigaction ignored;
    sigaction(SIGHUP, NULL, &ignored);
    printf("%d: %u usr1 blocked %d hup ignored %d CHAIN=%s\n", left, h, sigismember(&mask, SIGUSR1),
           ignored.sa_handler == SIG_IGN, kept ? kept : "(none)");
    fflush(stdout);
    if (left == 0)
        return 17;
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    signal(SIGHUP, SIG_IGN);
    char number[16], state[16];
    snprintf(number, sizeof number, "%d", left - 1);
    snprintf(state, sizeof state, "%u", h);
    setenv("CHAIN", number, 1);
    char *next[] = {argv[0], number, state, NULL};
    args = next;
    if (left % 3 == 0) {
        pthread_t t;
        pthread_create(&t, NULL, from_thread, NULL); /* exec from a thread ends the others */
        pthread_join(t, NULL);
    }
    execv("/proc/self/exe", next);
    return 1;
}
