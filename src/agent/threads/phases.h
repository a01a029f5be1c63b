/* SPDX-License-Identifier: Apache-2.0 */
/* phases.h - strata of bursts in the time of each phase of a thread's code. */
#ifndef CACHEGRAM_AGENT_PHASES_H
#define CACHEGRAM_AGENT_PHASES_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

struct thread;

/* A sample of the thread's code at this CPU time. If another phase is predicted from now on, that phase's
 * burst is the planned one. */
void phases_follow(struct thread *t, uint64_t pc, uint64_t now);
/*
 * Plans the next burst after `from` (CPU time), at a random point of the next stratum of the current phase.
 * In a run with an allowance, time in translated code is excluded: there bursts are so dense that they would
 * represent much less of the program than their gap. (Without one, that time is within the overhead.)
 */
void phases_plan_next(struct thread *t, uint64_t from, uint64_t gap);

#pragma GCC visibility pop
#endif
