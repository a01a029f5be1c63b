/* SPDX-License-Identifier: Apache-2.0 */
/* bandwidth.h - bandwidth of reading, writing and copying at each level, by number of cores. */
#ifndef CACHEGRAM_MACHINE_BANDWIDTH_H
#define CACHEGRAM_MACHINE_BANDWIDTH_H

#include "machine/machine.h"

/*
 * Fills the bandwidths of a level (machine->levels: memory) for 1 .. cores cores, each with its own pinned
 * thread. seconds: of each measurement. 0, or negative (-EINTR, -ENOMEM, errors of threads).
 */
int bandwidth_measure(struct machine *machine, uint32_t level, unsigned cores, double seconds,
                      const volatile int *interrupted, struct error *err);

#endif
