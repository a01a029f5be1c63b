/* SPDX-License-Identifier: Apache-2.0 */
/* traced.c - traces children that it forked, and counts the signals that stop them: their own, and no others.
 * With an argument, the child is another program, and lists its libraries. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long table[4096];

static void work(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        table[(i * 2654435761u) >> 20] += i;
}

static void be_traced(int directly, const char *program)
{
    work(1000000);
    if (directly)
        syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
    else
        ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGUSR1);
    if (program) {
        setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
        execl(program, program, NULL);
    }
    work(3000000);
    raise(SIGUSR2);
    work(3000000);
    _exit(7);
}

int main(int argc, char **argv)
{
    for (int round = 0; round < 4; round++) {
        work(1000000);
        int status, stops[128] = {0};
        pid_t child = fork();
        if (child == 0) {
            signal(SIGUSR1, SIG_IGN);
            signal(SIGUSR2, SIG_IGN);
            be_traced(round % 2, argc > 1 ? argv[1] : NULL);
        }
        while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
            int sig = WSTOPSIG(status);
            stops[sig & 127]++;
            ptrace(PTRACE_CONT, child, 0, sig == SIGTRAP ? 0 : sig);
        }
        printf("status %#x:", status);
        for (int sig = 0; sig < 128; sig++)
            if (stops[sig])
                printf(" %d x signal %d", stops[sig], sig);
        puts("");
        fflush(stdout);
    }
    return 0;
}
