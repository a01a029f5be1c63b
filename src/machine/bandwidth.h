/* SPDX-License-Identifier: Apache-2.0 */
/* bandwidth.h - bandwidth of reading, writing and copying at each level, by number of cores. */
#ifndef CACHEGRAM_MACHINE_BANDWIDTH_H
#define CACHEGRAM_MACHINE_BANDWIDTH_H

#include "machine/machine.h"

/*
 * Fills the bandwidths of a level (machine->levels: memory) for 1, 2, ... cores, each with its own pinned
 * thread. Those of memory end where the largest buffers would not be more than twice the caches of the cores.
 * 0, or negative (-EINTR, -ENOMEM, errors of threads).
 */
int bandwidth_measure(struct machine *machine, uint32_t level, const struct machine_probe *probe,
                      const volatile int *interrupted, struct error *err);

#endif
