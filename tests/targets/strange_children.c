/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that no profiler may know of: by vfork, by clone with shared memory, by _Fork. What they ask for
 * their signals is theirs alone, and their handlers have the stack that they would have.
 *
 * usage: strange_children [thread]: a child by _Fork makes a thread, whose id is printed.
 */
/* build: -pthread */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "work.h"

static sigjmp_buf back;
static volatile int *volatile nowhere = (volatile int *)8;
static char alternate[65536];
static volatile int handled;

static void on_fault(int sig)
{
    siglongjmp(back, sig);
}

static int on_alternate(const void *p)
{
    return (const char *)p >= alternate && (const char *)p < alternate + sizeof alternate;
}

static void large(int sig)
{
    volatile char room[200000];
    for (size_t i = 0; i < sizeof room; i += 512)
        room[i] = (char)sig;
    handled += on_alternate((const void *)room) ? 100 : 1;
}

static void small(int sig)
{
    char here = (char)sig;
    handled += on_alternate(&here) ? 1 : 100;
}

static void tell(const char *what, pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    printf("%s: %s %d\n", what, WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    fflush(stdout);
}

static void set(int sig, void (*handler)(int), int flags)
{
    struct sigaction a = {.sa_handler = handler, .sa_flags = flags};
    sigaction(sig, &a, NULL);
}

static int is(int sig, void (*handler)(int))
{
    struct sigaction a;
    return sigaction(sig, NULL, &a) == 0 && a.sa_handler == handler;
}

/* What it asks for is what it is reported, and what holds. */
static int resets(void *unused)
{
    int wrong = unused != NULL;
    wrong += !is(SIGSEGV, on_fault) + !is(SIGUSR1, large) * 2;
    for (int sig = 1; sig < 32; sig++)
        signal(sig, SIG_DFL);
    wrong += !is(SIGSEGV, SIG_DFL) * 4 + !is(SIGUSR1, SIG_DFL) * 8;
    signal(SIGSEGV, SIG_IGN);
    signal(SIGFPE, SIG_IGN);
    wrong += !is(SIGSEGV, SIG_IGN) * 16;
    if (wrong)
        _exit(wrong);
    /* Without a profiler, which may take them over as it comes to life. */
    execle("/bin/sed", "sed", "-n", "/SigIgn/p; /SigIgn/q7", "/proc/self/status", (char *)NULL,
           (char *[]){NULL});
    _exit(99);
}

/* Its own handlers run, and on the right stack. */
static int handles(void *unused)
{
    int own = unused != NULL;
    set(SIGFPE, large, 0);
    handled = 0;
    raise(SIGUSR1); /* the parent's: large */
    raise(SIGUSR2); /* the parent's, on the alternate stack: small */
    raise(SIGFPE);
    set(SIGHUP, small, SA_ONSTACK);
    set(SIGUSR1, large, 0);
    if (!own)
        raise(SIGHUP);
    raise(SIGUSR1);
    raise(SIGUSR2);
    int reported = handled;
    stack_t now;
    sigaltstack(NULL, &now);
    _exit(now.ss_sp == (own ? NULL : alternate) ? reported : 98);
}

static void *in_thread(void *unused)
{
    (void)unused;
    printf("thread %d\n", gettid());
    fflush(stdout);
    return (void *)(uintptr_t)(churn(20000000) | 1);
}

int main(int argc, char **argv)
{
    pid_t p;
    if (argc > 1 && !strcmp(argv[1], "thread")) {
        churn(4000000);
        p = _Fork();
        if (p == 0) {
            pthread_t t;
            void *result = NULL;
            if (pthread_create(&t, NULL, in_thread, NULL) == 0)
                pthread_join(t, &result);
            pthread_exit(result);
        }
        churn(20000000);
        tell("thread", p);
        return 0;
    }
    sigaltstack(&(stack_t){.ss_sp = alternate, .ss_size = sizeof alternate}, NULL);
    set(SIGSEGV, on_fault, 0);
    set(SIGUSR1, large, 0);
    set(SIGUSR2, small, SA_ONSTACK);
    char *stack = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3; i++) {
        churn(1000000);
        if ((p = vfork()) == 0)
            resets(NULL);
        tell("vfork resets", p);
        tell("clone resets", clone(resets, stack + (1 << 20), CLONE_VM | SIGCHLD, NULL));
        if ((p = vfork()) == 0)
            handles(NULL);
        tell("vfork handles", p);
        if ((p = _Fork()) == 0)
            handles(NULL);
        tell("_Fork handles", p);
        if ((p = fork()) == 0)
            handles(NULL);
        tell("fork handles", p);
        if ((p = (pid_t)syscall(SYS_fork)) == 0)
            handles(NULL);
        tell("system call handles", p);
        churn(1000000);
        int sig = sigsetjmp(back, 1);
        if (sig == 0)
            *nowhere = 1;
        printf("caught %d, ours %d\n", sig,
               is(SIGSEGV, on_fault) && is(SIGUSR1, large) && is(SIGFPE, SIG_DFL));
    }
    return 0;
}
