/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_PROCESS_TIME_H
#define CACHEGRAM_PROCESS_TIME_H

#include <stdint.h>
#include <sys/types.h>
#include "base/clock-ns.h"

/* *ns: CPU time of a live process, all of its threads; pid 0: the caller. 0, or -ESRCH with *ns 0. */
int process_cpu_ns(pid_t pid, uint64_t *ns);

/* Of the CPU time of a live process, as much as is known, the share that was in user mode; 1 if unknown. */
double process_user_share(pid_t pid);

static inline uint64_t monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

#endif
