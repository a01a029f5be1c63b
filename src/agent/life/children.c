/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children.c - child processes that were made without the agent's knowledge: by vfork, clone, _Fork or a
 * system call of the program's own. None of them is followed.
 *
 * A child with a copy of the memory gets its signals back: the dispositions that the target requested are
 * installed in the kernel, as in a child of libc's fork that is not followed. A child that shares its
 * parent's memory must leave that memory as it is, and change kernel state only, which is its own.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include "agent/burst/burst.h"
#include "agent/life/life.h"
#include "agent/signals/signals.h"
#include "agent/sys/files.h"
#include "agent/sys/own.h"
#include "agent/sys/process.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/threads/threads.h"

#define WIPE_ON_FORK 18 /* MADV_, which older headers do not name */

/* 0 in a copy of the memory that was made without the agent's knowledge (MADV_WIPEONFORK). NULL: not
 * available. */
static volatile uint32_t *mark;

void children_init(void)
{
    mark = own_map(NULL, WIRE_PAGE, OWN_DATA);
    if (mark && sys_failed(sys3(SYS_madvise, mark, WIRE_PAGE, WIPE_ON_FORK)))
        mark = NULL;
    if (mark)
        *mark = 1;
}

void fork_in_child(void)
{
    files_close_inherited(1);
}

void child_is_followed(void)
{
    if (mark)
        *mark = 1;
}

void child_not_followed(void)
{
    stack_t now;
    agent_active = 0;
    if (!agent_off)
        agent_off = WIRE_OFF_SLOTS;
    if (mark)
        *mark = 1;
    if (agent_off != WIRE_OFF_SECCOMP) /* a filter may kill for the calls; deliver() does what it can */
        signals_uninstall(sys_failed(sys2(SYS_sigaltstack, 0, &now)) ? NULL : thread_of_stack(now.ss_sp), 1);
}

int child_detach_copy(void)
{
    static int settled;
    long pid;
    if (mark && *mark == 0 && process_is_other(&pid)) {
        files_close_inherited(0);
        child_not_followed();
        settled = 1;
    }
    return settled;
}
