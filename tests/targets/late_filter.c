/* SPDX-License-Identifier: Apache-2.0 */
/* late_filter.c - children forbid themselves all calls but a few, in processes that an agent has left before:
 * one that is traced ("traced"), a child of one ("below"), a child of a child that libc's handlers for forks
 * do not know of ("unknown"). */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void forbid(void)
{
    static const unsigned allowed[] = {SYS_read,         SYS_write, SYS_exit,    SYS_exit_group,
                                       SYS_rt_sigreturn, SYS_prctl, SYS_seccomp, SYS_restart_syscall};
    enum { N = sizeof allowed / sizeof *allowed };
    struct sock_filter code[N + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < N; i++)
        code[i + 1] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], (unsigned char)(N - i), 0);
    code[N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[N + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {N + 3, code};
    int failed = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) != -1;
    failed |= prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    failed |= prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    failed |= prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    failed |= syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0;
    _exit(failed ? 1 : 3);
}

static int status_of(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
        ptrace(PTRACE_CONT, child, 0, 0);
    return status;
}

static void in_fork(void)
{
    pid_t child = fork();
    if (child == 0)
        forbid();
    int status = status_of(child);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "traced";
    int unknown = strcmp(how, "unknown") == 0;
    pid_t child = unknown ? (pid_t)syscall(SYS_fork) : fork();
    if (child == 0) {
        if (unknown)
            in_fork();
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        if (strcmp(how, "below") == 0)
            in_fork();
        forbid();
    }
    printf("status %#x\n", (unsigned)status_of(child));
    return 0;
}
