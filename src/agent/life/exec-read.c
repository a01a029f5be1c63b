/* SPDX-License-Identifier: Apache-2.0 */
/* exec-read.c - memory of the target, and files, that are read in any child, and right before an exec. */
#include <fcntl.h>
#include "agent/burst/burst.h"
#include "agent/life/life.h"
#include "agent/signals/signals.h"
#include "agent/sys/files.h"
#include "agent/sys/process.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/threads/threads.h"

/* In a child that has its signals back, or by vfork its own, a fault of safe_copy would reach the target. */
size_t target_read(void *to, const void *from, size_t bytes)
{
    struct thread *t = agent_off || !session ? NULL : thread_self();
    if (signals_uninstalled() || (!t && process_is_untracked()))
        return process_copy(to, from, bytes);
    unsigned blocked = signals_unblock_faults(t);
    size_t missing = safe_copy(to, from, bytes);
    signals_block_faults(blocked);
    return missing;
}

/* A child that shares its parent's memory has descriptors of its own, which must not be in the list. */
static int is_listed(void)
{
    return (uint32_t)sys0(SYS_getpid) == process_id;
}

long exec_open(const char *path)
{
    return is_listed() ? own_open(path) : sys3(SYS_open, path, O_RDONLY | O_CLOEXEC, 0);
}

void exec_close(long fd)
{
    if (is_listed())
        own_close(fd);
    else
        sys1(SYS_close, fd);
}
