/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breakpoint.h - tells that a process has executed an instruction, without stopping it: a debug register, set
 * through the kernel's performance events in all of its threads, those to come included. It is gone when we
 * are. Each time SIGIO comes (target_wait_news), and each costs the thread some microseconds.
 */
#ifndef CACHEGRAM_BREAKPOINT_H
#define CACHEGRAM_BREAKPOINT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

struct breakpoint {
    int *fd; /* one for each thread that was there */
    pid_t *tid;
    size_t n;
};

/*
 * enabled: it counts from now on; else from breakpoint_enable. 0; -EPERM where the kernel does not allow it
 * (kernel.perf_event_paranoid, a container), -ENODEV where it cannot be had or all debug registers are taken;
 * -ESRCH; each with a sentence.
 */
int breakpoint_open(struct breakpoint *b, pid_t pid, uint64_t address, int enabled, struct error *err);
void breakpoint_enable(struct breakpoint *b);
/* How often it was executed; 0 when closed. */
uint64_t breakpoint_count(const struct breakpoint *b);
/* {0} is closed. */
void breakpoint_close(struct breakpoint *b);

#endif
