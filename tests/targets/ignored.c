/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/* Ignores signals (those whose numbers are reported, or all), works, tries to execute what is not there,
 * works on, and executes itself, which prints what is ignored then. argv[1]: "alone", "followed" (with its
 * environment, else with none), "child" (of fork), "vfork" or "thread" (another one works meanwhile). */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "work.h"

#define ROUNDS 3000000

static void *compute(void *argument)
{
    for (;;)
        scatter(1, ROUNDS);
    return argument;
}

static void show(int by_kernel)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (by_kernel && f && fgets(line, sizeof line, f))
        if (!strncmp(line, "SigIgn", 6))
            fputs(line, stdout);
    for (int sig = 1; sig < 32; sig++) {
        struct sigaction now;
        if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            printf("%d ", sig);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    pthread_t other;
    const char *how = argc > 1 ? argv[1] : "alone";
    if (!strcmp(how, "show") || !strcmp(how, "reported")) {
        show(!strcmp(how, "show"));
        return 3;
    }
    for (int sig = 1; sig < 32; sig++)
        if (argc < 3 && sig != SIGKILL && sig != SIGSTOP && sig != SIGCHLD)
            signal(sig, SIG_IGN);
    for (int i = 2; i < argc; i++)
        signal(atoi(argv[i]), SIG_IGN);
    uint64_t digest = scatter(1, ROUNDS);
    for (int i = 0; i < 100; i++)
        execl("/nowhere/at/all", "all", (char *)NULL);
    digest = scatter(digest, ROUNDS);
    struct sigaction trap;
    if (sigaction(SIGTRAP, NULL, &trap) == 0 && trap.sa_handler == SIG_IGN)
        raise(SIGTRAP); /* still ignored, and still ours */
    printf("%llu\n", (unsigned long long)digest);
    fflush(stdout);
    if (!strcmp(how, "thread"))
        pthread_create(&other, NULL, compute, NULL);
    pid_t child = !strcmp(how, "child") ? fork() : !strcmp(how, "vfork") ? vfork() : 0;
    if (child == 0) {
        char *const none[] = {NULL};
        if (!strcmp(how, "followed")) /* where the kernel has signals of the agent's again */
            execl("/proc/self/exe", argv[0], "reported", (char *)NULL);
        else
            execle("/proc/self/exe", argv[0], "show", (char *)NULL, none);
        _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%llu %x\n", (unsigned long long)scatter(digest, ROUNDS), (unsigned)status);
    return 3;
}
