/* SPDX-License-Identifier: Apache-2.0 */
/* agent-time.h - how much CPU time a process spent in a program with the agent in it, at most. */
#ifndef CACHEGRAM_AGENT_TIME_H
#define CACHEGRAM_AGENT_TIME_H

#include <stdint.h>
#include <sys/types.h>
#include "wire/wire.h"

struct agent_time {
    uint64_t ns; /* so far; never too little, so that nobody is told wrongly that it was not profiled */
    uint64_t at_ns, activity; /* when it was last looked at */
    int there;                /* then the agent was; -1: nobody knows */
};

/* A process that has just attached, or a while ago. */
void agent_time_begin(struct agent_time *t, const struct wire_proc *proc, pid_t pid);
/* To be called now and then, and once more when the process has ended. */
void agent_time_look(struct agent_time *t, const struct wire_proc *proc, pid_t pid);

#endif
