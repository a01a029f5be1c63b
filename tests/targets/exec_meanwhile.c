/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/* Ignores the signals of faults, and tries to execute what is not there, while threads make system calls,
 * whose results they check. Several children do so, at the same time. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "work.h"

#define CHILDREN 12
#define THREADS 4

static void *call(void *argument)
{
    long pid = getpid();
    for (;;) {
        long result = syscall(SYS_getpid);
        if (result != pid) {
            printf("getpid: %ld\n", result == SYS_getpid ? result : -1);
            fflush(stdout);
            _exit(1);
        }
    }
    return argument;
}

static void work(void)
{
    pthread_t thread;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread, NULL, call, NULL);
    scatter(1, 1000000);
    execl("/nowhere/at/all", "all", (char *)NULL);
    usleep(1000);
    _exit(0);
}

int main(void)
{
    int failed = 0;
    signal(SIGSEGV, SIG_IGN);
    signal(SIGSYS, SIG_IGN);
    for (int i = 0; i < CHILDREN; i++)
        if (fork() == 0)
            work();
    for (int status; wait(&status) > 0;)
        failed += status != 0;
    printf("%d failed\n", failed);
    return 3;
}
