/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spawns programs, 20 times, while SIGTRAP is ignored and another thread makes 20 million loads and stores.
 * The kernel's disposition has to be the program's meanwhile, so that no thread can be in translated code.
 *
 * usage: spawns_meanwhile [FIFO]     FIFO: one program, whose start waits until the other thread has ended
 */
/* build: -pthread */
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

static void *work(void *fifo)
{
    volatile long sum = 0;
    for (long i = 0; i < ROUNDS; i++)
        sum += i;
    if (fifo != NULL)
        close(open(fifo, O_WRONLY));
    return NULL;
}

int main(int argc, char **given)
{
    char *argv[] = {"true", NULL}, *fifo = argc > 1 ? given[1] : NULL;
    posix_spawn_file_actions_t actions;
    pthread_t worker;
    int spawned = 0, status = 0;
    posix_spawn_file_actions_init(&actions);
    if (fifo != NULL && (mkfifo(fifo, 0600) != 0 ||
                         posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, fifo, O_RDONLY, 0) != 0))
        return 1;
    signal(SIGTRAP, SIG_IGN);
    if (pthread_create(&worker, NULL, work, fifo) != 0)
        return 2;
    while (spawned < (fifo != NULL ? 1 : 20)) {
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
