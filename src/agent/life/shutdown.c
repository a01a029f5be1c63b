/* SPDX-License-Identifier: Apache-2.0 */
/* shutdown.c - the agent goes for good, and gives the target's signals back. */
#include "agent/burst/burst.h"
#include "agent/life/life.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/watch/watch.h"

/*
 * A filter of system calls may kill for those that the agent makes, and dispatch of the target's own would
 * send it those, even the ones that our handlers make for signals of the target's: it goes for good before
 * there is one, and the target gets its signals by itself from then on. Unless a filter comes while other
 * threads are in bursts or calls that do not end: they need our handlers, and most filters are for the caller
 * alone.
 */
void agent_filter_installed(void)
{
    static int is_hidden;
    if (session && !is_hidden) {
        int vfork_child = (uint32_t)sys0(SYS_getpid) != process_id && !child_detach_copy();
        exec_hide_session(vfork_child);
        is_hidden = !vfork_child;
    }
}

void agent_shutdown(enum wire_disabled why)
{
    if (why == WIRE_OFF_SECCOMP)
        agent_filter_installed();
    if (agent_gone || !session)
        return;
    if ((uint32_t)sys0(SYS_getpid) != process_id) {
        if (child_detach_copy()) { /* it makes no calls of ours from now on, not even to ask who it is */
            agent_off = (int)why;
            agent_gone = 1;
        } else { /* a vfork child, whose memory is its parent's */
            signals_restore_handlers();
        }
        return;
    }
    struct thread *t = thread_self();
    int alone = 1, quiesced = 1;
    if (t && !agent_off) {
        watch_quiet_native(t);
        watch_off(t, WIRE_UNWATCHED_DISPATCH); /* of no thread are calls diverted any more */
        watch_quiet_end(t);
    }
    agent_disable(why);
    burst_forbid(1);
    if (t)
        thread_leave_burst(t);
    if (agent_active)
        alone = threads_retire(&quiesced);
    if (!alone && why == WIRE_OFF_SECCOMP)
        return;
    signals_uninstall(t ? t : thread_self_by_key(), quiesced);
    agent_gone = 1;
}
