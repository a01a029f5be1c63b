/* SPDX-License-Identifier: Apache-2.0 */
/*
 * active.c - how many threads are in bursts, and whether any may be: whoever takes the agent's handlers or
 * its code away forbids bursts first, and waits until none is active.
 */
#include "agent/burst/burst-internal.h"
#include <time.h>
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/tunables.h"
#include "agent/translator/translator.h"

static uint32_t active; /* threads in a burst or step, whose faults and traps the agent must handle */

/* Threads with the trap flag that are in no burst: one that was created by a stepped call and has not reached
 * its first instruction; one that enters a burst after the handler of a signal. If the agent did not handle
 * SIGTRAP for them, as for the `active` ones, the kernel would end the program. */
static uint32_t stepping_native;

static int forbidden;
static uint32_t times_forbidden;

void has_left(void)
{
    __atomic_fetch_sub(&active, 1, __ATOMIC_SEQ_CST);
}

int may_enter(void)
{
    __atomic_fetch_add(&active, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&forbidden, __ATOMIC_SEQ_CST))
        return 1;
    has_left();
    return 0;
}

void step_expected(void)
{
    __atomic_fetch_add(&stepping_native, 1, __ATOMIC_SEQ_CST);
}

int burst_step_begin(void)
{
    step_expected();
    if (!burst_forbidden())
        return 1;
    burst_step_end();
    return 0;
}

void burst_step_end(void)
{
    uint32_t now = __atomic_load_n(&stepping_native, __ATOMIC_SEQ_CST);
    while (now != 0 && !__atomic_compare_exchange_n(&stepping_native, &now, now - 1, 0, __ATOMIC_SEQ_CST,
                                                    __ATOMIC_SEQ_CST))
        ;
}

void burst_step_resolved(struct thread *t, const ucontext_t *uc)
{
    if (t->burst.step_makes_thread && !arch_call_made(uc, t->translation.syscall_pc))
        burst_step_end();
    t->burst.step_makes_thread = 0;
}

void burst_forbid(int more)
{
    if (more > 0)
        __atomic_fetch_add(&times_forbidden, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&forbidden, more, __ATOMIC_SEQ_CST);
}

int burst_forbidden(void)
{
    return __atomic_load_n(&forbidden, __ATOMIC_SEQ_CST) != 0;
}

void burst_await_allowed(struct thread *t)
{
    struct timespec moment = {0, FORBIDDEN_LOOK_NS};
    if (t->native.waited == __atomic_load_n(&times_forbidden, __ATOMIC_SEQ_CST))
        return;
    for (unsigned i = 0; i < FORBIDDEN_LOOKS; i++) {
        if (!burst_forbidden() || agent_off)
            return;
        sys2(SYS_nanosleep, &moment, 0);
    }
    t->native.waited = __atomic_load_n(&times_forbidden, __ATOMIC_SEQ_CST);
}

int burst_none_active(void)
{
    return __atomic_load_n(&active, __ATOMIC_SEQ_CST) == 0 &&
           __atomic_load_n(&stepping_native, __ATOMIC_SEQ_CST) == 0;
}

void burst_forked(void)
{
    active = stepping_native = 0;
}
