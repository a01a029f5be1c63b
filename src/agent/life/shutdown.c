/* SPDX-License-Identifier: Apache-2.0 */
/* shutdown.c - the agent ends permanently in this process, and gives the target's signals back. */
#include "agent/burst/burst.h"
#include "agent/life/life.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/threads/threads.h"
#include "agent/watch/watch.h"

/*
 * A seccomp filter may kill for system calls that the agent makes. If the target uses syscall user dispatch
 * itself, the agent's calls are sent to it, even those that the agent's handlers make for the target's
 * signals. So the agent ends before either is installed, and the kernel delivers the target's signals from
 * then on. So it does before the target is traced: the tracer would see the agent's signals. The exception: a
 * filter is installed while other threads are in bursts or in diverted calls that do not end. They need the
 * agent's handlers, and most filters are for the calling thread only.
 */
void agent_filter_installed(void)
{
    static int is_hidden;
    if (session && !is_hidden) {
        /* Once the agent is gone, no call is made to find out: the filter may already kill for it. */
        int vfork_child = !agent_gone && (uint32_t)sys0(SYS_getpid) != process_id && !child_detach_copy();
        exec_hide_session(vfork_child);
        is_hidden = !vfork_child;
    }
}

void agent_shutdown(enum wire_disabled why)
{
    if (why == WIRE_OFF_SECCOMP)
        agent_filter_installed();
    if (agent_gone && agent_off != WIRE_OFF_DISPATCH) /* calls are still made by libc then */
        agent_off = (int)why;
    if (agent_gone || !session)
        return;
    if ((uint32_t)sys0(SYS_getpid) != process_id) {
        if (child_detach_copy()) { /* from now on it makes no calls of the agent's, not even getpid */
            agent_off = (int)why;
            agent_gone = 1;
        } else { /* a vfork child, which shares its parent's memory */
            signals_restore_handlers();
        }
        return;
    }
    struct thread *t = thread_self();
    int alone = 1, quiesced = 1;
    if (t && !agent_off) {
        watch_block_signals_native(t);
        watch_disable(t, WIRE_UNWATCHED_DISPATCH); /* no thread's calls are diverted from now on */
        watch_unblock_signals(t);
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
