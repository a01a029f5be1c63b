/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_FAULTCOST_H
#define CACHEGRAM_FAULTCOST_H

#include <stddef.h>
#include <stdint.h>

/*
 * CPU time that the kernel takes for a fault's way into a signal handler and back, and of it the way in, as
 * measured by the first call (some .5 ms) on ourselves: what such a handler cannot see of its own cost.
 */
struct fault_cost {
    uint64_t ns, entry_ns;
};
struct fault_cost fault_cost(void);

/* CPU time that the touch of a new page takes: the mean of so many, tried now. */
uint64_t page_cost_ns(size_t pages);

/*
 * Time that goes by from where a timer interrupts a program to its signal handler, and from there back: some
 * microseconds, and 20 in virtual machines. As measured by the first call (some .5 ms) on ourselves.
 */
uint64_t alarm_cost_ns(void);

#endif
