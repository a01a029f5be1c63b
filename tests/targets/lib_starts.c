/* SPDX-License-Identifier: Apache-2.0 */
/* Its constructor waits for a thread that makes another one and a process, in ways of which it is the first.
 */
/* build: -pthread */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <threads.h>

extern int made;
int made;

static int ends(void *unused)
{
    (void)unused;
    return 0;
}

static void *makes(void *unused)
{
    thrd_t t;
    char *stack = malloc(65536);
    made += thrd_create(&t, ends, NULL) == thrd_success && thrd_join(t, NULL) == thrd_success;
    int pid = clone(ends, stack + 65536, SIGCHLD, NULL);
    made += pid > 0 && waitpid(pid, NULL, 0) == pid;
    free(stack);
    return unused;
}

__attribute__((constructor)) static void begins(void)
{
    pthread_t t;
    made += pthread_create(&t, NULL, makes, NULL) == 0 && pthread_join(t, NULL) == 0;
}
