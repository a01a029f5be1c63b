/* SPDX-License-Identifier: Apache-2.0 */
/* breakpoints.h - whether the debug registers of this machine's CPUs work. */
#ifndef CACHEGRAM_BREAKPOINTS_H
#define CACHEGRAM_BREAKPOINTS_H

/*
 * Sets a hardware breakpoint by a perf event, and touches it. 1: it fired; 0: it did not, as in virtual
 * machines whose hypervisor ignores debug registers; -1: it cannot be set.
 */
int breakpoints_fire(void);

#endif
