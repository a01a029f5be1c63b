/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_FAULTCOST_H
#define CACHEGRAM_FAULTCOST_H

#include <stdint.h>

/*
 * CPU time that the kernel takes for a fault's way into a signal handler and back, as measured by the first
 * call (some 0.1 ms) on ourselves: what such a handler cannot see of its own cost.
 */
uint64_t fault_cost_ns(void);

/*
 * Time that goes by from where a timer interrupts a program to its signal handler, and from there back: some
 * microseconds, and 20 in virtual machines. As measured by the first call (some .5 ms) on ourselves.
 */
uint64_t alarm_cost_ns(void);

#endif
