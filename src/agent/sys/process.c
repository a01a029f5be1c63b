/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - see process.h. */
#include "agent/sys/process.h"
#include <sys/uio.h>
#include "agent/sys/context.h"
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

size_t process_copy(void *to, const void *from, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
    long got = sys6(SYS_process_vm_readv, sys0(SYS_getpid), (long)&local, 1, (long)&remote, 1, 0);
    return sys_failed(got) ? bytes : bytes - (size_t)got;
}

static void *forking; /* thread pointer; NULL: none */

void process_fork_begins(void)
{
    __atomic_store_n(&forking, __builtin_thread_pointer(), __ATOMIC_RELAXED);
}

void process_fork_ends(void)
{
    if (__atomic_load_n(&forking, __ATOMIC_RELAXED) == __builtin_thread_pointer())
        __atomic_store_n(&forking, NULL, __ATOMIC_RELAXED);
}

int process_forks(void)
{
    void *by = __atomic_load_n(&forking, __ATOMIC_RELAXED);
    return by != NULL && by == (void *)arch_thread_pointer();
}
