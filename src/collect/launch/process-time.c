/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/launch/process-time.h"

#include <errno.h>
#include <time.h>

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
