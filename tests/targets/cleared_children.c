/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children whose handlers the kernel resets (clone3 with CLONE_CLEAR_SIGHAND): with a copy of the memory, and
 * as posix_spawn and system of glibc 2.38 make them. Beside a second thread, then alone.
 */
/* build: -pthread */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "work.h"

#define CLEAR_SIGHAND 0x100000000ull

static volatile int over;

static void on_signal(int sig)
{
    _exit(sig);
}

/* Inline, since the child of CLONE_VM uses the same stack. */
static inline __attribute__((always_inline)) long clone_cleared(uint64_t flags)
{
    uint64_t arguments[11] = {flags | CLEAR_SIGHAND, 0, 0, 0, SIGCHLD};
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_clone3), "D"(arguments), "S"(sizeof arguments)
                     : "rcx", "r11", "memory");
    return result;
}

static void tell(const char *what, long child)
{
    int status = 0;
    if (child < 0) {
        printf("%s: error %ld\n", what, -child);
        return;
    }
    waitpid((pid_t)child, &status, 0);
    printf("%s: %s %d\n", what, WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    fflush(stdout);
}

static int is(int sig, void (*handler)(int))
{
    struct sigaction a;
    return sigaction(sig, NULL, &a) == 0 && a.sa_handler == handler;
}

/* 0: the dispositions of a program that has just been started. */
static int reset(void)
{
    return !is(SIGUSR1, SIG_DFL) + 2 * !is(SIGSEGV, SIG_DFL) + 4 * !is(SIGUSR2, SIG_IGN) +
           8 * !is(SIGFPE, SIG_IGN) + 16 * !is(SIGTRAP, SIG_DFL);
}

static void children(void)
{
    long child;
    for (int i = 0; i < 10; i++) {
        churn(300000);
        if ((child = clone_cleared(0)) == 0) {
            churn(100000);
            _exit(32 + reset());
        }
        tell("copy", child);
        uint64_t arguments[11] = {CLEAR_SIGHAND, 0, 0, 0, SIGCHLD};
        if ((child = syscall(SYS_clone3, arguments, sizeof arguments)) == 0) {
            raise(SIGUSR1);
            _exit(1);
        }
        tell("copy by libc", child);
        if ((child = clone_cleared(CLONE_VM | CLONE_VFORK)) == 0) {
            execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
            _exit(1);
        }
        tell("program", child);
        churn(300000);
        printf("ours %d\n", is(SIGUSR1, on_signal) && is(SIGSEGV, on_signal) && is(SIGFPE, SIG_IGN));
    }
}

static void *works(void *unused)
{
    while (!over)
        churn(100000);
    return unused;
}

int main(void)
{
    pthread_t thread;
    signal(SIGUSR1, on_signal);
    signal(SIGSEGV, on_signal);
    signal(SIGUSR2, SIG_IGN);
    signal(SIGFPE, SIG_IGN);
    pthread_create(&thread, NULL, works, NULL);
    children();
    over = 1;
    pthread_join(thread, NULL);
    children();
    return 0;
}
