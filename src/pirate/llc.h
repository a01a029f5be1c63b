/* SPDX-License-Identifier: Apache-2.0 */
/* llc.h - the last-level cache that the Pirate and its Target share, and which CPUs are whose. */
#ifndef CACHEGRAM_MACHINE_LLC_H
#define CACHEGRAM_MACHINE_LLC_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* cpu_set_t */
#endif
#include <sched.h>
#include <stdint.h>
#include "base/error.h"

#define LLC_PIRATES 8u /* threads, at most; Eklov's machine was saturated by three (III.4.4) */

struct llc {
    uint64_t size_bytes;
    unsigned ways, line_bytes;
    /*
     * Bytes of a core's own caches that are not in the last level as well: those of its outermost private
     * cache where the last level is a victim cache or the like (it says so of itself, CPUID 4 or 8000001D),
     * 0 where it is inclusive. A Pirate thread's set has to be that much larger than what it is to steal, and
     * a Target has that much more than what is left to it.
     */
    uint64_t private_bytes;
    int inclusive;               /* it holds all that its cores' own caches hold */
    uint64_t inner_bytes;        /* of a core's outermost private cache; 0: it has none */
    unsigned cores;              /* that share it, and that we may run on */
    int pirate_cpu[LLC_PIRATES]; /* one on each core, not on the Target's first; the last cores first */
    cpu_set_t pirate_core[LLC_PIRATES]; /* all CPUs of that core, which shares its inner caches */
    unsigned pirates;                   /* how many of those there are */
    cpu_set_t cpus;                     /* all CPUs that share it and that we may run on */
};

/*
 * The last-level cache of `cpu`; or (cpu < 0) that with the most cores that this process may run on.
 * -ENOTSUP, with a sentence, where fewer than two cores share it: then there is no place for a Pirate.
 */
int llc_find(int cpu, struct llc *llc, struct error *err);
/* What is left to the Target when the first `threads` Pirate cores are taken. */
void llc_target_cpus(const struct llc *llc, unsigned threads, cpu_set_t *cpus);

#endif
