/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawns programs, 20 times, while SIGTRAP is ignored and another thread makes 20 million loads and stores.
 * The kernel's disposition has to be the program's meanwhile, so that no thread can be in translated code.
 */
/* build: -pthread */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

#define ROUNDS 10000000

extern char **environ;
static volatile int over;

static void *work(void *arg)
{
    volatile long sum = 0;
    for (long i = 0; i < ROUNDS; i++)
        sum += i;
    over = 1;
    return arg;
}

int main(void)
{
    char *argv[] = {"true", NULL};
    pthread_t worker;
    int spawned = 0, status = 0;
    signal(SIGTRAP, SIG_IGN);
    if (pthread_create(&worker, NULL, work, NULL) != 0)
        return 2;
    while (spawned < 20) {
        pid_t pid;
        if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) != 0 ||
            waitpid(pid, &status, 0) != pid || status != 0)
            return 3;
        spawned++;
    }
    pthread_join(worker, NULL);
    printf("%d spawned\n", spawned);
    return 0;
}
