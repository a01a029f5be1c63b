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
void agent_filter_is_inherited(void)
{
    static int is_silent;
    if (session && !is_silent) {
        int vfork_child = (uint32_t)sys0(SYS_getpid) != process_id && !child_settles();
        exec_silences(vfork_child);
        is_silent = !vfork_child;
    }
}

void go_for_good(enum wire_disabled why)
{
    if (why == WIRE_OFF_SECCOMP)
        agent_filter_is_inherited();
    if (agent_gone || !session)
        return;
    if ((uint32_t)sys0(SYS_getpid) != process_id) {
        if (child_settles()) { /* it makes no calls of ours from now on, not even to ask who it is */
            agent_off = (int)why;
            agent_gone = 1;
        } else { /* a vfork child, whose memory is its parent's */
            signals_give_back();
        }
        return;
    }
    struct thread *t = thread_self();
    int alone = 1, silent = 1;
    if (t && !agent_off) {
        watch_quiet_native(t);
        watch_off(t, WIRE_UNWATCHED_DISPATCH); /* of no thread are calls diverted any more */
        watch_quiet_end(t);
    }
    agent_disable(why);
    burst_forbid(1);
    if (t)
        thread_leaves_burst(t);
    if (agent_lives)
        alone = threads_retire(&silent);
    if (!alone && why == WIRE_OFF_SECCOMP)
        return;
    signals_hand_back(t ? t : thread_own(), silent);
    agent_gone = 1;
}
