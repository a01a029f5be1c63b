/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - whose process the caller is in; see process.h. */
#include "agent/sys/process.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"

#define SAME_HANDLERS 4 /* KCMP_SIGHAND */

int process_is_other(long *pid)
{
    if (!session || !process_id || agent_off == WIRE_OFF_SECCOMP) /* which may kill for asking */
        return 0;
    *pid = sys0(SYS_getpid);
    return *pid != process_id;
}

int process_is_untracked(void)
{
    long pid;
    /* If it was made by clone so that it has its parent's handlers, too, what holds there holds here. */
    return process_is_other(&pid) && sys6(SYS_kcmp, pid, process_id, SAME_HANDLERS, 0, 0, 0) != 0;
}
