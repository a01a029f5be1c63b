/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children.c - processes in which the agent finds itself without having been told: those made by vfork, by
 * clone, by _Fork or by a system call of the program's own. Nothing in them is followed.
 *
 * Who has a copy of the memory sets everything right for itself: what the target has asked for its signals
 * becomes the kernel's, as in a child of libc's fork that is not followed. Who shares the memory with its
 * parent must leave it as it is, and change the kernel's books only, which are its own.
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

/* 0 where the memory is a copy that we do not know of; NULL: that is unknown. */
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
    if (agent_off != WIRE_OFF_SECCOMP) /* which may kill for that; deliver() does what it can */
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
