/* SPDX-License-Identifier: Apache-2.0 */
/* landlocked.c - forbids itself to open files outside of the system's folders, works, and executes `env`.
 * Status 77: the kernel has no Landlock. */
/* build: -pthread */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long table[4096];

static void *work(void *argument)
{
    for (unsigned i = 0; i < 5000000; i++)
        table[(i * 2654435761u) >> 20] += i;
    return argument;
}

int main(void)
{
    static const char *const allowed[] = {"/usr", "/lib", "/lib64", "/bin", "/etc"};
    struct landlock_ruleset_attr handled = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE};
    int status, rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    pthread_t thread;
    work(NULL);
    if (rules < 0)
        return 77;
    for (int i = 0; i < 5; i++) {
        struct landlock_path_beneath_attr path = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
                                                  .parent_fd = open(allowed[i], O_PATH | O_CLOEXEC)};
        syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &path, 0);
        close(path.parent_fd);
    }
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_landlock_restrict_self, rules, 0))
        return 77;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    printf("maps: %d\n", open("/proc/self/maps", O_RDONLY));
    fflush(stdout);
    if (fork() == 0) {
        work(NULL);
        execl("/usr/bin/env", "env", "sh", "-c", "exit 5", NULL);
        _exit(9);
    }
    wait(&status);
    work(NULL);
    printf("child %d\n", WEXITSTATUS(status));
    return 0;
}
