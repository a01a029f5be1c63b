/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pirate.h - the Pirate: threads that keep a set of lines in the shared cache by sweeping it, line after
 * line, as fast as possible, so that the rest is left to other programs (Eklov's thesis, Paper III).
 */
#ifndef CACHEGRAM_MACHINE_PIRATE_H
#define CACHEGRAM_MACHINE_PIRATE_H

#include <stdint.h>
#include "base/error.h"
#include "pirate/hold.h"
#include "pirate/llc.h"

struct pirate; /* opaque */

/*
 * Allocates memory for sets of up to largest_bytes (huge pages if available), and starts an idle thread on
 * each of the first `threads` CPUs of llc->pirate_cpu. -ENOMEM, -EINVAL, or the error of starting or pinning
 * threads. All signals are blocked in the threads.
 */
int pirate_new(const struct llc *llc, unsigned threads, uint64_t largest_bytes, struct pirate **pirate,
               struct error *err);
/* Ends the threads, frees the memory. NULL is allowed. */
void pirate_free(struct pirate *p);

/*
 * Times known hits and known misses of the last level on the first thread's CPU, on which nothing else should
 * run; takes 0.1 s. Must precede pirate_steal. -ENOTSUP as hold_calibrate.
 */
int pirate_calibrate(struct pirate *p, struct error *err);
const struct hold_scale *pirate_scale(const struct pirate *p);

/*
 * From now on the first `threads` threads sweep `bytes` in all, each its own part; 0: idle. Returns when the
 * set has been fetched: first what was added, then all of it once. Other users of the cache should be stopped
 * meanwhile. bytes: size of the set, that is, what is taken of the last level plus the threads' private
 * caches (llc.h).
 */
void pirate_steal(struct pirate *p, unsigned threads, uint64_t bytes);
/* Counts of all threads since pirate_new; to be used as differences. Idle time is not counted. */
struct hold_count pirate_count(const struct pirate *p);
/*
 * Does the calling thread's CPU really share the last level with that of the Pirate's first thread? The
 * system's answer may be wrong, since the host of a virtual machine migrates its CPUs. Measured by the time
 * that a line takes from one to the other: through a shared cache, or as long as from memory. Takes some ten
 * microseconds; the Pirate is idle afterwards. 1; 0; -EAGAIN if one of the two did not run meanwhile.
 */
int pirate_is_shared(struct pirate *p);
/* The time of such a transfer, at the last successful measurement, in ticks; 0: none yet. */
double pirate_transfer_ticks(const struct pirate *p);
/* Ticks of the time stamp counter per nanosecond, measured by calibration. */
double pirate_ticks_per_ns(const struct pirate *p);
/* Is all its memory in huge pages? */
int pirate_has_huge_pages(const struct pirate *p);

#endif
