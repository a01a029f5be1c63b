/* SPDX-License-Identifier: Apache-2.0 */
/* A child by a raw system call overwrites its environment, as programs do that change their title, and
 * computes. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "work.h"

int main(void)
{
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        for (char **e = environ; *e; e++)
            memset(*e, 0, strlen(*e));
        scatter(1, 100000000);
        _exit(0);
    }
    scatter(1, 10000000);
    waitpid((pid_t)child, NULL, 0);
    return 0;
}
