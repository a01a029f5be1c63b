/* SPDX-License-Identifier: Apache-2.0 */
/* exec of itself by every function there is, each right after a fork; then the same of what is not there,
 * with work after each. In two of the rounds with all signals blocked; the next program says which are. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rounds.h"

extern char **environ;

static const char *const ways[] = {"execve",     "execv",   "execvp", "execvpe", "fexecve",
                                   "execveat",   "execl",   "execlp", "execle",  "syscall",
                                   "syscall-at", "spawned", "vforked"};
#define WAYS (sizeof ways / sizeof *ways)

static unsigned work(unsigned h)
{
    static unsigned table[1024];
    for (int i = 0; i < rounds_of_work(3000000); i++) {
        table[i & 1023] += h;
        h = h * 69069 + table[(h >> 8) & 1023];
    }
    return h;
}

/* By posix_spawn, as if it were exec: goes on only if that fails, with errno set. */
static void spawn(const char *path, char **argv, char **envp)
{
    pid_t child;
    int status;
    errno = posix_spawn(&child, path, NULL, NULL, argv, envp);
    if (errno == 0 && waitpid(child, &status, 0) == child)
        exit(WEXITSTATUS(status));
}

/* The same by vfork. */
static void vfork_and_execute(const char *path, char **argv, char **envp)
{
    static volatile int error;
    int status;
    error = 0;
    pid_t child = vfork();
    if (child == 0) {
        execve(path, argv, envp);
        error = errno;
        _exit(0);
    }
    if (waitpid(child, &status, 0) == child && error == 0)
        exit(WEXITSTATUS(status));
    errno = error;
}

static void block_all(int raw)
{
    sigset_t all;
    sigfillset(&all);
    if (raw)
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
    else
        sigprocmask(SIG_SETMASK, &all, NULL);
}

static unsigned blocked(void)
{
    sigset_t now;
    unsigned bits = 0;
    sigprocmask(SIG_SETMASK, NULL, &now);
    for (int sig = 1; sig < 32; sig++)
        bits |= (unsigned)sigismember(&now, sig) << sig;
    return bits;
}

/* Returns only if it fails. */
static void execute(const char *way, const char *path, const char *mark)
{
    char *argv[] = {(char *)path, "was", (char *)way, (char *)mark, NULL};
    char *envp[64] = {"EXECS=own"};
    for (int i = 0; environ[i] && i < 60; i++)
        envp[i + 1] = environ[i];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (strcmp(way, "execve") == 0)
        execve(path, argv, envp);
    else if (strcmp(way, "execv") == 0)
        execv(path, argv);
    else if (strcmp(way, "execvp") == 0)
        execvp(path, argv);
    else if (strcmp(way, "execvpe") == 0)
        execvpe(path, argv, envp);
    else if (strcmp(way, "fexecve") == 0)
        fexecve(fd, argv, envp);
    else if (strcmp(way, "execveat") == 0)
        execveat(fd, "", argv, envp, AT_EMPTY_PATH);
    else if (strcmp(way, "execl") == 0)
        execl(path, path, "was", way, mark, (char *)NULL);
    else if (strcmp(way, "execlp") == 0)
        execlp(path, path, "was", way, mark, (char *)NULL);
    else if (strcmp(way, "execle") == 0)
        execle(path, path, "was", way, mark, (char *)NULL, envp);
    else if (strcmp(way, "syscall") == 0)
        syscall(SYS_execve, path, argv, envp);
    else if (strcmp(way, "syscall-at") == 0)
        syscall(SYS_execveat, AT_FDCWD, path, argv, envp, 0);
    else if (strcmp(way, "spawned") == 0)
        spawn(path, argv, envp);
    else
        vfork_and_execute(path, argv, envp);
    int error = errno;
    close(fd);
    errno = error;
}

int main(int argc, char **argv)
{
    const char *own = getenv("EXECS");
    if (argc > 3 && strcmp(argv[1], "was") == 0) {
        printf("%s: %s, EXECS=%s, blocked %x\n", argv[2], argv[3], own ? own : "(none)", blocked());
        return 0;
    }
    for (unsigned i = 0; i < WAYS * 4; i++) {
        char mark[16];
        snprintf(mark, sizeof mark, "%u", i);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            if (i / WAYS == 1 || i / WAYS == 2)
                block_all(i / WAYS == 2);
            execute(ways[i % WAYS], i / WAYS == 3 ? "/nowhere/at/all" : "/proc/self/exe", mark);
            printf("%s failed: %s\n", ways[i % WAYS], strerror(errno));
            exit(3);
        }
        int status;
        waitpid(child, &status, 0);
        printf("status %d\n", status);
    }
    unsigned h = 1;
    for (unsigned i = 0; i < WAYS; i++) {
        execute(ways[i], "/nowhere/at/all", "0");
        h = work(h); /* which is to have bursts all the same */
        printf("%s: %s: %u\n", ways[i], strerror(errno), h);
    }
    return 0;
}
