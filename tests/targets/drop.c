/* SPDX-License-Identifier: Apache-2.0 */
/* chroot into an empty folder and give up root, as servers do, then work, fork and open files in there. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rounds.h"

static unsigned compute(unsigned h, int rounds)
{
    static unsigned table[2048];
    for (int i = 0; i < rounds_of_work(rounds); i++) {
        table[h & 2047] += (unsigned)i;
        h = h * 69069 + table[(h >> 7) & 2047];
    }
    return h;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    unsigned h = compute(1, 500000);
    if (chdir(argv[1]) != 0 || chroot(".") != 0 || setgroups(0, NULL) != 0 || setgid(65534) != 0 ||
        setuid(65534) != 0) {
        printf("not root\n");
        return 1;
    }
    h = compute(h, 12000000);
    printf("uid %d dumpable %d\n", (int)getuid(), prctl(PR_GET_DUMPABLE));
    printf("etc %d create %d\n", open("/etc/passwd", O_RDONLY) >= 0,
           open("/x", O_CREAT | O_WRONLY, 0600) >= 0);
    fflush(stdout);
    pid_t p = fork();
    if (p == 0)
        _exit((int)(compute(h, 6000000) & 127));
    int status;
    waitpid(p, &status, 0);
    printf("hash %u child %d\n", h, WEXITSTATUS(status));
    return 0;
}
