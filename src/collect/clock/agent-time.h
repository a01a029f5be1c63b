/* SPDX-License-Identifier: Apache-2.0 */
/* agent-time.h - upper bound of the CPU time that a process spent in a program with the agent in it. */
#ifndef CACHEGRAM_AGENT_TIME_H
#define CACHEGRAM_AGENT_TIME_H

#include <stdint.h>
#include <sys/types.h>
#include "wire/wire.h"

/* CPU time of the dynamic loader before the agent's constructor ran, at most. */
#define AGENT_TIME_LOADER_NS UINT64_C(5000000)

struct agent_time {
    uint64_t ns; /* so far; an upper bound, so that nobody is warned of unprofiled time without reason */
    uint64_t assumed_ns;      /* the part of it that nobody has measured */
    double user_share;        /* of what was measured, if the agent is off */
    uint64_t at_ns, activity; /* at the last look */
    int there;                /* whether the agent was there then; -1: unknown */
};

/* 1: the agent is in the process; 0: another program is; -1: unknown, or the process has ended. */
int agent_there(const struct wire_proc *proc, pid_t pid);
/* A process that has attached, now or a while ago. */
void agent_time_begin(struct agent_time *t, const struct wire_proc *proc, pid_t pid);
/* To be called from time to time, and once more when the process has ended. */
void agent_time_look(struct agent_time *t, const struct wire_proc *proc, pid_t pid);

#endif
