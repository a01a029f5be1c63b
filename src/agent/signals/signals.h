/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - what signals.c, which takes the signals, and dispositions.c and masks.c, which keep what the
 * target has asked for, tell each other.
 */
#ifndef CACHEGRAM_AGENT_SIGNALS_H
#define CACHEGRAM_AGENT_SIGNALS_H

#include <stdint.h>
#include <string.h>
#include "agent/agent.h"
#include "agent/signals/frame.h"
#include "agent/sys/sys.h"

#define SA_RESTORER_FLAG 0x04000000ul
#define LAST_SIGNAL 64

#pragma GCC visibility push(hidden)

struct kernel_sigaction {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

/* What the target wants done on each signal. */
extern struct kernel_sigaction signals_target[LAST_SIGNAL + 1];

/* rt_sigaction, as the kernel has it. */
static inline long kernel_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old)
{
    return sys4(SYS_rt_sigaction, sig, new, old, 8);
}

/* rt_sigaction on what is kept for the target. 0, or a negative error. */
long signals_action(int sig, const struct kernel_sigaction *new, struct kernel_sigaction *old);
int altstack_disarms(const stack_t *s); /* it is enabled, and every handler on it disables it */

static inline int is_fault(int sig)
{
    return (FAULT_SIGNALS & SIGNAL_BIT(sig)) != 0;
}

#pragma GCC visibility pop
#endif
