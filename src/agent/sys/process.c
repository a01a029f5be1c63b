/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - see process.h. */
#include "agent/sys/process.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"

#define SAME_HANDLERS 4 /* KCMP_SIGHAND */

int process_is_other(long *pid)
{
    if (!session || !process_id || agent_off == WIRE_OFF_SECCOMP) /* the filter may kill for the call */
        return 0;
    *pid = sys0(SYS_getpid);
    return *pid != process_id;
}

int process_is_untracked(void)
{
    long pid;
    /* If clone made it share its parent's handlers, it must be treated like the parent. */
    return process_is_other(&pid) && sys6(SYS_kcmp, pid, process_id, SAME_HANDLERS, 0, 0, 0) != 0;
}
