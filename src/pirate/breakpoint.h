/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breakpoint.h - detects that a process executed an instruction, without stopping it: a debug register, set
 * through perf events in all of its threads, including later ones. It vanishes with our process. Each
 * execution sends us SIGIO (target_wait_event) and takes the thread some microseconds.
 */
#ifndef CACHEGRAM_BREAKPOINT_H
#define CACHEGRAM_BREAKPOINT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

struct breakpoint {
    int *fd; /* one per thread that existed at opening */
    pid_t *tid;
    size_t n;
};

/*
 * enabled: count from now on; otherwise from breakpoint_enable on. 0; -EPERM if the kernel does not allow it
 * (kernel.perf_event_paranoid, a container), -ENODEV if it is not supported or all debug registers are in
 * use; -ESRCH; each with err filled.
 */
int breakpoint_open(struct breakpoint *b, pid_t pid, uint64_t address, int enabled, struct error *err);
void breakpoint_enable(struct breakpoint *b);
/* How often it was executed; 0 when closed. */
uint64_t breakpoint_count(const struct breakpoint *b);
/* {0} is a closed one. */
void breakpoint_close(struct breakpoint *b);

#endif
