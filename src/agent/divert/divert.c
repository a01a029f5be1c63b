/* SPDX-License-Identifier: Apache-2.0 */
/* divert.c - turns syscall user dispatch on and off for a thread; see divert.h. */
#include "agent/divert/divert.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include <sys/prctl.h>

#define DISPATCH_OFF 0
#define DISPATCH_ON 1

extern const char __ehdr_start[] HIDDEN;

int divert_enable(struct thread *t)
{
    if (t->divert.is_on)
        return 0;
    /* Calls from the agent's text are not diverted, except from syscall_divertible, which is at its end. */
    long bytes = (const char *)(uintptr_t)syscall_divertible - __ehdr_start;
    if (sys_failed(sys6(SYS_prctl, SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, (long)__ehdr_start, bytes,
                        (long)&t->divert.selector, 0)))
        return -1;
    t->divert.is_on = t->divert.was_on = 1;
    return 0;
}

void divert_disable(struct thread *t)
{
    t->divert.selector = CALLS_ALLOWED;
    if (t->divert.is_on)
        sys6(SYS_prctl, SET_SYSCALL_USER_DISPATCH, DISPATCH_OFF, 0, 0, 0, 0);
    t->divert.is_on = 0;
}
