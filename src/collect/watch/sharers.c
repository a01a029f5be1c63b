/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/kcmp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/read-text.h"
#include "collect/watch/sharers.h"

static int has_sharer(uint32_t pid, uint32_t tid)
{
    char text[4096]; /* further children are not examined */
    read_text(text, sizeof(text), "/proc/%u/task/%u/children", pid, tid);
    char *at = text, *end;
    for (long child; (child = strtol(at, &end, 10)) > 0 && end != at; at = end)
        if (syscall(SYS_kcmp, (pid_t)pid, (pid_t)child, KCMP_VM, 0UL, 0UL) == 0)
            return 1;
    return 0;
}

int sharers_exist(uint32_t pid, uint32_t tid)
{
    return has_sharer(pid, pid) || (tid != pid && has_sharer(pid, tid));
}
