/* SPDX-License-Identifier: Apache-2.0 */
/* Children, threads and libraries that come while pages are closed; the program and its children go on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "watched.h"

extern char **environ;

static int status_of(pid_t child)
{
    int status;
    churn();
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static uint32_t sum(void)
{
    uint32_t s = 0;
    for (int i = 0; i < PAGES * PAGE; i += 16)
        s = s * 31 + pool[i];
    return s;
}

/* Parent and child both change their own copy. */
static void forks(int how)
{
    uint32_t before = sum();
    churn();
    pid_t child = how == 0   ? fork()
                  : how == 1 ? (pid_t)syscall(SYS_fork)
                             : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        int same = sum() == before;
        memset(pool, 2, PAGES * PAGE);
        for (int i = 0; i < 30; i++)
            churn();
        _exit(same && pool[PAGE] == 2 ? 3 : 4);
    }
    for (int i = 0; i < 10; i++)
        churn();
    CHECK(sum() == before);
    CHECK(status_of(child) == 3);
    CHECK(sum() == before);
}

static void programs(void)
{
    char **argv = place(4 * sizeof *argv), *path = place(64), *text = place(64), line[64] = "";
    strcpy(path, "/bin/sh");
    strcpy(text, "exit 5");
    argv[0] = path, argv[1] = strcpy(place(8), "-c"), argv[2] = text, argv[3] = NULL;
    churn();
    pid_t child = vfork();
    if (child == 0) {
        execve(path, argv, environ);
        _exit(1);
    }
    CHECK(status_of(child) == 5);
    churn();
    CHECK(posix_spawn(&child, path, NULL, NULL, argv, environ) == 0);
    CHECK(status_of(child) == 5);
    strcpy(text, "exit 6");
    churn();
    CHECK(WEXITSTATUS(system(text)) == 6);
    churn();
    FILE *f = popen(strcpy(place(16), "echo read"), "r");
    CHECK(f != NULL && fgets(line, sizeof line, f) != NULL && strcmp(line, "read\n") == 0);
    CHECK(pclose(f) == 0);
    strcpy(path, "/nowhere");
    churn();
    CHECK(execve(path, argv, environ) == -1 && errno == ENOENT); /* and on it goes */
    for (int i = 0; i < 10; i++)
        churn();
}

static void *thread(void *n)
{
    for (int i = 0; i < 20; i++)
        churn();
    int *word = place(sizeof *word);
    *word = *(int *)n;
    syscall(SYS_sched_yield);
    return word;
}

static void threads(void)
{
    pthread_t id[3];
    for (int i = 0; i < 3; i++) {
        churn();
        CHECK(pthread_create(&id[i], NULL, thread, &i) == 0);
        CHECK(pthread_join(id[i], NULL) == 0);
    }
}

/* A process of its own in our memory, which reads into it. */
static int beside(void *pipe_in)
{
    int bad = 0;
    for (int i = 0; i < 200; i++) {
        bad += syscall(SYS_read, *(int *)pipe_in, place(16), 1ul) != 1;
        for (int k = 0; k < 2; k++)
            sched_yield();
    }
    return bad ? 9 : 8;
}

static void sharing(void)
{
    static int pipes[2];
    enum { STACK = 1 << 16 };
    uint8_t *stack = malloc(STACK);
    if (pipe(pipes) != 0)
        exit(96);
    pid_t child = clone(beside, stack + STACK, CLONE_VM | SIGCHLD, &pipes[0]);
    for (int i = 0; i < 200; i++) {
        CHECK(write(pipes[1], "x", 1) == 1);
        churn();
    }
    CHECK(status_of(child) == 8);
    free(stack);
    close(pipes[0]), close(pipes[1]);
}

/* In our memory, and no one's thread: no fault of its own is its parent's. */
static int reads(void)
{
    uint32_t s = 0;
    for (int i = 0; i < 30000; i++)
        s = s * 31 + sum();
    return s == 0 ? 10 : 9;
}

/* By the bare instruction, while no page is closed yet, as the address sanitizer's leak detector does it. */
static void unseen(void)
{
    enum { STACK = 1 << 16 };
    uint8_t *stack = malloc(STACK);
    uintptr_t top = ((uintptr_t)(stack + STACK) & ~(uintptr_t)15) - 8;
    *(int (**)(void))top = reads;
    long child = SYS_clone;
    register long r10 __asm__("r10") = 0, r8 __asm__("r8") = 0;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "pop %%rax\n\t"
                     "call *%%rax\n\t"
                     "mov %%eax, %%edi\n\t"
                     "mov $60, %%eax\n\t" /* exit */
                     "syscall\n\t"
                     "1:"
                     : "+a"(child)
                     : "D"((long)CLONE_VM | SIGCHLD), "S"(top), "d"(0L), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    for (int i = 0; i < 300; i++)
        churn();
    CHECK(child > 0 && status_of((pid_t)child) == 9);
    free(stack);
}

/* Syscall user dispatch of the program's own. */
static volatile char selector;
static volatile long dispatched;

static void on_sys(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)uc;
    selector = 0;
    dispatched += info->si_code == 2 && info->si_syscall == SYS_getppid;
}

static void dispatch(void)
{
    struct sigaction a = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &a, NULL);
    for (int i = 0; i < 30; i++)
        churn();
    if (prctl(59, 1, 0, 0, &selector) != 0)
        return;
    for (int i = 0; i < 100; i++) {
        churn();
        selector = 1;
        long ret;
        __asm__ volatile("syscall" : "=a"(ret) : "a"(SYS_getppid) : "rcx", "r11", "memory");
        CHECK(selector == 0);
        CHECK(read(-1, place(16), 1) == -1 && errno == EBADF);
    }
    CHECK(dispatched == 100);
    prctl(59, 0, 0, 0, 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    make_pool();
    for (int i = 0; i < 12; i++) {
        for (int k = 0; k < 20; k++)
            churn();
        if (strcmp(what, "fork") == 0)
            forks(i % 3);
        else if (strcmp(what, "programs") == 0)
            programs();
        else if (strcmp(what, "threads") == 0)
            threads();
        else if (strcmp(what, "sharing") == 0 && i == 8)
            sharing();
        else if (strcmp(what, "unseen") == 0 && i < 4)
            unseen();
        else if (strcmp(what, "dispatch") == 0 && i == 8)
            dispatch();
    }
    printf("wrong %ld\n", wrong);
    return wrong != 0;
}
