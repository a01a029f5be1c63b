/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/launch/process-time.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/read-text.h"

int process_cpu_ns(pid_t pid, uint64_t *ns)
{
    clockid_t clock;
    struct timespec t;
    *ns = 0;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return -ESRCH;
    *ns = (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
    return 0;
}

double process_user_share(pid_t pid)
{
    char text[1024];
    unsigned long user = 0, system = 0;
    if (read_text(text, sizeof(text), "/proc/%d/stat", (int)pid) <= 0)
        return 1;
    const char *after = strrchr(text, ')'); /* after the name, which may contain anything */
    if (after == NULL ||
        sscanf(after + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu", &user, &system) != 2 ||
        user + system == 0)
        return 1;
    return (double)user / (double)(user + system);
}
