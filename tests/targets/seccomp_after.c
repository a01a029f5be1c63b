/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/* Works, forbids itself calls that it never makes but an agent might (argv[1] is "signals": all but a few;
 * "traps": likewise, with SIGSYS for the others), and goes on with signals (both), with what libraries do
 * ("calls"), in a thread that was there before, too, or with another program (the name of what executes it).
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rounds.h"

extern char **environ;
static volatile sig_atomic_t hits, faults, first = 1;
static volatile int go;

static uint64_t work(uint64_t x, int rounds)
{
    static uint64_t table[65536];
    for (int i = 0; i < rounds_of_work(rounds * 300000); i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        table[x >> 48] += x;
    }
    return x;
}

static void hit(int sig)
{
    if (sig == SIGALRM)
        hits++;
    else
        faults++;
}

static void *wait_and_end(void *argument)
{
    stack_t stack;
    uint64_t done = 1;
    while (!go)
        done = work(done, 1);
    int failed = sigaction(SIGUSR2, NULL, &(struct sigaction){.sa_flags = 0});
    if (argument) /* what the agent had set for this thread is none of its business */
        failed |= sigaltstack(NULL, &stack) || !(stack.ss_flags & SS_DISABLE);
    return (void *)(intptr_t)(7 + failed);
}

static void install(struct sock_filter *code, unsigned n)
{
    struct sock_fprog filter = {(unsigned short)n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 1 /* TSYNC */, &filter))
        _exit(9);
}

#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define DO(n, what) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (n), 0, 1), BPF_STMT(BPF_RET | BPF_K, (what))

static void allow_few(unsigned others)
{
    struct sock_filter code[] = {NUMBER, DO(SYS_write, SECCOMP_RET_ALLOW),
                                 DO(SYS_exit_group, SECCOMP_RET_ALLOW),
                                 DO(SYS_rt_sigreturn, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_K, others)};
    install(code, sizeof code / sizeof *code);
}

static void forbid_few(void)
{
#define NO(n) DO(n, SECCOMP_RET_KILL_PROCESS)
    struct sock_filter code[] = {NUMBER,
                                 NO(SYS_gettid),
                                 NO(SYS_timer_create),
                                 NO(SYS_timer_delete),
                                 NO(SYS_nanosleep),
                                 NO(SYS_kill),
                                 NO(SYS_rt_sigpending),
                                 NO(SYS_readlink),
                                 NO(SYS_rt_tgsigqueueinfo),
                                 NO(SYS_mremap),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    install(code, sizeof code / sizeof *code);
}

static int signals(unsigned others)
{
    char text[80];
    struct timeval period = {0, rounds_of_work(10000)};
    struct itimerval each = {period, period};
    struct sigaction action = {.sa_handler = hit, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGSYS, &action, NULL);
    sigaction(SIGTRAP, &action, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
    uint64_t digest = work(1, 100);
    allow_few(others);
    first = hits;
    digest = work(digest, 200);
    if (others == SECCOMP_RET_TRAP)
        syscall(SYS_getppid);
    __asm__ volatile("int3");
    int n = snprintf(text, sizeof text, "digest %llu alarms %d faults %d\n", (unsigned long long)digest,
                     hits - first > 3, (int)faults);
    return write(1, text, (size_t)n) == n ? 5 : 6;
}

static int calls(void)
{
    pthread_t before, after;
    void *reported[2] = {NULL, NULL},
         *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_handler = hit}, old;
    sigset_t mask;
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536}, is;
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&before, NULL, wait_and_end, &mask);
    work(1, 60);
    forbid_few();
    go = 1;
    printf("altstack %d", sigaltstack(NULL, &is));
    printf(" %d\n", is.ss_sp == stack.ss_sp);
    printf("mprotect %d\n", mprotect(page, 4096, PROT_READ));
    printf("action %d", sigaction(SIGSEGV, &action, &old));
    printf(" %d", old.sa_handler == SIG_DFL);
    printf(" %d", sigaction(SIGUSR1, NULL, &old));
    printf(" %d\n", old.sa_handler == hit);
    sigemptyset(&mask);
    sigaddset(&mask, SIGTRAP);
    printf("mask %d", sigprocmask(SIG_BLOCK, &mask, NULL));
    printf(" %d", sigprocmask(SIG_BLOCK, NULL, &mask));
    printf(" %d\n", sigismember(&mask, SIGTRAP));
    printf("join %d", pthread_join(before, &reported[0]));
    printf(" create %d", pthread_create(&after, NULL, wait_and_end, NULL));
    printf(" join %d", pthread_join(after, &reported[1]));
    printf(" reported %d %d\n", (int)(intptr_t)reported[0], (int)(intptr_t)reported[1]);
    fflush(stdout);
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(mprotect(page, 4096, PROT_READ | PROT_WRITE) + 3);
    waitpid(child, &status, 0);
    printf("child %x\n", status);
    return 4;
}

static int execute(const char *how)
{
    char *argv[] = {"seccomp_after", "executed", NULL}, *envp[64] = {NULL};
    for (int i = 0; environ[i] && i < 63; i++)
        envp[i] = strdup(environ[i]);
    work(1, 30);
    forbid_few();
    if (!strcmp(how, "execv"))
        execv("/proc/self/exe", argv);
    else if (!strcmp(how, "execve"))
        execve("/proc/self/exe", argv, envp);
    else if (!strcmp(how, "execlp"))
        execlp("/proc/self/exe", argv[0], argv[1], (char *)NULL);
    else if (!strcmp(how, "exec-syscall"))
        syscall(SYS_execve, "/proc/self/exe", argv, envp);
    int status = 0;
    pid_t child;
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ) ||
        waitpid(child, &status, 0) != child)
        return 1;
    printf("spawned: %x\n", status);
    return 4;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "signals";
    if (!strcmp(how, "executed")) {
        printf("executed: %llu\n", (unsigned long long)work(1, 30));
        return 3;
    }
    return !strcmp(how, "signals") ? signals(SECCOMP_RET_KILL_PROCESS)
           : !strcmp(how, "traps") ? signals(SECCOMP_RET_TRAP)
           : !strcmp(how, "calls") ? calls()
                                   : execute(how);
}
