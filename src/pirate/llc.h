/* SPDX-License-Identifier: Apache-2.0 */
/* llc.h - the last-level cache that Pirate and Target share, and the CPUs of each. */
#ifndef CACHEGRAM_MACHINE_LLC_H
#define CACHEGRAM_MACHINE_LLC_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* cpu_set_t */
#endif
#include <sched.h>
#include <stdint.h>
#include "base/error.h"

#define LLC_PIRATES 8u /* most threads; three saturated Eklov's machine (III.4.4) */

struct llc {
    uint64_t size_bytes;
    unsigned line_bytes;
    /*
     * Bytes of a core's private caches that are not also in the last level. Where the last level is not
     * inclusive, for example a victim cache (CPUID 4 or 8000001D), this is the size of the outermost private
     * cache; 0 where it is inclusive. A Pirate thread's set must be larger by this than what it takes of the
     * last level, and a Target has this in addition to what is left to it.
     */
    uint64_t private_bytes;
    int inclusive;                      /* it contains all lines of its cores' private caches */
    uint64_t inner_bytes;               /* of a core's outermost private cache; 0: it has none */
    unsigned cores;                     /* that share it, and on which we may run */
    int pirate_cpu[LLC_PIRATES];        /* one per core, not the Target's first one; highest cores first */
    cpu_set_t pirate_core[LLC_PIRATES]; /* all CPUs of that core, which shares its inner caches */
    unsigned pirates;                   /* number of those */
    cpu_set_t cpus;                     /* all CPUs that share it and on which we may run */
};

/*
 * The last-level cache of `cpu`; or (cpu < 0) the one with most cores on which this process may run. -ENOTSUP
 * with err filled if fewer than two cores share it: a Pirate needs a core of its own.
 */
int llc_find(int cpu, struct llc *llc, struct error *err);
/* CPUs that are left to the Target when the first `threads` Pirate cores are in use. */
void llc_target_cpus(const struct llc *llc, unsigned threads, cpu_set_t *cpus);

#endif
