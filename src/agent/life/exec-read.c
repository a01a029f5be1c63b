/* SPDX-License-Identifier: Apache-2.0 */
/* exec-read.c - memory of the target that is read right before an exec. */
#include <sys/uio.h>
#include "agent/burst/burst.h"
#include "agent/life/life.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/threads/threads.h"

/* In a child that has its signals back a fault of safe_copy would reach the target. */
size_t exec_read(void *to, const void *from, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
    if (!signals_uninstalled()) {
        unsigned blocked = signals_unblock_faults(agent_off || !session ? NULL : thread_self());
        size_t missing = safe_copy(to, from, bytes);
        signals_block_faults(blocked);
        return missing;
    }
    long got = sys6(SYS_process_vm_readv, sys0(SYS_getpid), (long)&local, 1, (long)&remote, 1, 0);
    return sys_failed(got) ? bytes : bytes - (size_t)got;
}
