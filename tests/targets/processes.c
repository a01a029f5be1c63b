/* SPDX-License-Identifier: Apache-2.0 */
/* Children by fork, vfork, posix_spawn, clone, system and popen; what wait tells about each. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rounds.h"

extern char **environ;
static volatile int *volatile nowhere = (volatile int *)8; /* hidden from the compiler */

static uint32_t compute(uint32_t seed, int rounds)
{
    static uint32_t table[512];
    for (int i = 0; i < rounds_of_work(rounds); i++) {
        table[seed & 511] += seed;
        seed = seed * 1664525u + 1013904223u + table[(seed >> 9) & 511];
    }
    return seed;
}

static void tell(const char *what, int status)
{
    if (WIFEXITED(status))
        printf("%s: exit %d\n", what, WEXITSTATUS(status));
    else
        printf("%s: signal %d\n", what, WTERMSIG(status));
    fflush(stdout);
}

static int child_of_clone(void *arg)
{
    *(volatile int *)arg = (int)(compute(5, 1200000) & 0xffff);
    return 23;
}

int main(int argc, char **argv)
{
    int status;
    (void)argc;
    if (argv[1] && !strcmp(argv[1], "leaf"))
        return (int)(compute(3, 600000) & 63);

    for (int i = 0; i < 8; i++) {
        pid_t p = fork();
        if (p == 0) {
            uint32_t r = compute((uint32_t)i, 2000000);
            if (i == 5)
                raise(SIGTERM);
            if (i == 6)
                kill(getpid(), SIGKILL);
            if (i == 7)
                *nowhere = 1;
            _exit((int)(r & 127));
        }
        uint32_t mine = compute(77, 600000); /* parent and child at once */
        waitpid(p, &status, 0);
        printf("%u ", mine);
        tell("fork", status);
    }

    /* A tree: the exit status of a grandchild comes up through its parent. */
    pid_t p = fork();
    if (p == 0) {
        pid_t q = fork();
        if (q == 0)
            exit((int)(compute(9, 600000) % 100));
        waitpid(q, &status, 0);
        _exit(WEXITSTATUS(status) + 1);
    }
    waitpid(p, &status, 0);
    tell("tree", status);

    for (int i = 0; i < 3; i++) {
        volatile int marker = 0;
        p = vfork();
        if (p == 0) {
            marker = 55; /* vfork shares memory: the parent sees it */
            char *const leaf[] = {argv[0], "leaf", NULL};
            if (i == 0)
                execv(argv[0], leaf);
            if (i == 1)
                execv("/nonexistent/program", leaf);
            _exit(44);
        }
        waitpid(p, &status, 0);
        printf("marker %d ", marker);
        tell("vfork", status);
    }

    char *const spawn_argv[] = {argv[0], "leaf", NULL};
    if (posix_spawn(&p, argv[0], NULL, NULL, spawn_argv, environ) == 0) {
        waitpid(p, &status, 0);
        tell("spawn", status);
    }
    printf("spawn of nothing: %d\n",
           posix_spawn(&p, "/nonexistent/program", NULL, NULL, spawn_argv, environ));
    fflush(stdout);

    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *stack = mmap(NULL, 262144, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static const int flags[] = {SIGCHLD, SIGCHLD | CLONE_VM, SIGCHLD | CLONE_VM | CLONE_VFORK,
                                SIGCHLD | CLONE_FILES};
    for (unsigned i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        *shared = 0;
        p = clone(child_of_clone, stack + 262144, flags[i], shared);
        waitpid(p, &status, 0);
        printf("clone %u wrote %d ", i, *shared);
        tell("clone", status);
    }

    tell("system", system("exit 9"));
    tell("system kill", system("kill -9 $$"));
    FILE *pipe = popen("echo from the pipe; exit 4", "r");
    char line[64] = "";
    if (!fgets(line, sizeof line, pipe))
        line[0] = '\0';
    status = pclose(pipe);
    printf("%s", line);
    tell("popen", status);
    printf("no child left: %d\n", waitpid(-1, NULL, WNOHANG) == -1);
    return 0;
}
