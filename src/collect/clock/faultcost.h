/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_FAULTCOST_H
#define CACHEGRAM_FAULTCOST_H

#include <stddef.h>
#include <stdint.h>

/*
 * CPU time of a fault's way into a signal handler and back, and of the way in alone: the cost that a handler
 * cannot measure itself. Measured in this process at the first call (about 0.5 ms).
 */
struct fault_cost {
    uint64_t ns, entry_ns;
};
struct fault_cost fault_cost(void);

/* CPU time of the first touch of a new page: the mean of so many, measured now. */
uint64_t page_cost_ns(size_t pages);

/*
 * Time from where a timer interrupts a program to its signal handler, and from there back: a few
 * microseconds, 20 in virtual machines. Measured in this process at the first call (about 0.5 ms).
 */
uint64_t alarm_cost_ns(void);

#endif
