/* SPDX-License-Identifier: Apache-2.0 */
/* bandwidth.h - how many bytes a second some cores read, write and copy from each level. */
#ifndef CACHEGRAM_MACHINE_BANDWIDTH_H
#define CACHEGRAM_MACHINE_BANDWIDTH_H

#include "machine/machine.h"

/*
 * Fills the bandwidths of level (machine->levels: memory) for 1 .. cores cores, each with a thread of its own
 * that is pinned to it. seconds: of each measurement. 0, or negative (-EINTR, -ENOMEM, threads).
 */
int bandwidth_measure(struct machine *machine, uint32_t level, unsigned cores, double seconds,
                      const volatile int *interrupted, struct error *err);

#endif
