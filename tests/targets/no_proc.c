/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves /proc behind at once (argv[1]: "files": by a limit of no descriptors; else a folder to chroot to),
 * and works; or (argv[2]: "child") a child does. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "work.h"

#define ROUNDS 100000000

int main(int argc, char **argv)
{
    struct rlimit none = {0, 0};
    if (argc < 2)
        return 1;
    if (!strcmp(argv[1], "files") ? setrlimit(RLIMIT_NOFILE, &none) : chroot(argv[1]) || chdir("/"))
        return 2;
    pid_t child = argc > 2 ? fork() : 0;
    if (child == 0)
        printf("%llu\n", (unsigned long long)scatter(1, ROUNDS));
    else
        waitpid(child, NULL, 0);
    return 3;
}
