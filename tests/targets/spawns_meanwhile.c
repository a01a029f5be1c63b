/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawns programs, 20 times, while SIGTRAP is ignored and another thread makes 20 million loads and stores.
 * The kernel's disposition has to be the program's meanwhile, so that no thread can be in translated code.
 *
 * usage: spawns_meanwhile [FIFO]     FIFO: one program, whose start waits until the other thread has done all
 *                                    of that, which begins after the start has
 */
/* build: -pthread */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 10000000

extern char **environ;

static char *begun, *done; /* FIFOs; the new process opens them before it executes the program */

static void *work(void *unused)
{
    volatile long sum = 0;
    (void)unused;
    while (begun != NULL && open(begun, O_WRONLY | O_NONBLOCK) < 0) /* until it is open for reading */
        for (volatile int i = 0; i < 1000; i++)
            ;
    for (long i = 0; i < ROUNDS; i++)
        sum += i;
    if (done != NULL)
        open(done, O_WRONLY);
    return NULL;
}

int main(int argc, char **given)
{
    char *argv[] = {"true", NULL};
    posix_spawn_file_actions_t actions;
    pthread_t worker;
    int spawned = 0, status = 0;
    posix_spawn_file_actions_init(&actions);
    if (argc > 1) {
        begun = given[1];
        if (asprintf(&done, "%s-done", begun) < 0 || mkfifo(begun, 0600) != 0 || mkfifo(done, 0600) != 0 ||
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, begun, O_RDONLY, 0) != 0 ||
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, done, O_RDONLY, 0) != 0)
            return 1;
    }
    signal(SIGTRAP, SIG_IGN);
    if (pthread_create(&worker, NULL, work, NULL) != 0)
        return 2;
    while (spawned < (begun != NULL ? 1 : 20)) {
        pid_t pid;
        if (posix_spawn(&pid, "/bin/true", &actions, NULL, argv, environ) != 0 ||
            waitpid(pid, &status, 0) != pid || status != 0)
            return 3;
        spawned++;
    }
    pthread_join(worker, NULL);
    printf("%d spawned\n", spawned);
    return 0;
}
