/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pirate.h - the Pirate: threads that keep a set of lines in the shared cache by sweeping it, line after
 * line, as fast as they can, so that others have to do with the rest (Eklov's thesis, Paper III).
 */
#ifndef CACHEGRAM_MACHINE_PIRATE_H
#define CACHEGRAM_MACHINE_PIRATE_H

#include <stdint.h>
#include "base/error.h"
#include "pirate/hold.h"
#include "pirate/llc.h"

struct pirate; /* opaque */

/*
 * Memory for sets of up to largest_bytes (huge pages where there are any), and a thread, at rest, on each of
 * the first `threads` CPUs of llc->pirate_cpu. -ENOMEM, -EINVAL, or what starting threads and pinning them
 * said. All signals are blocked in the threads.
 */
int pirate_new(const struct llc *llc, unsigned threads, uint64_t largest_bytes, struct pirate **pirate,
               struct error *err);
/* Ends the threads, returns the memory. NULL is allowed. */
void pirate_free(struct pirate *p);

/*
 * Times known hits and known misses of the last level, on the first thread's CPU, while nothing else should
 * run on it: a tenth of a second. Must come before pirate_steal. -ENOTSUP as hold_calibrate.
 */
int pirate_calibrate(struct pirate *p, struct error *err);
const struct hold_scale *pirate_scale(const struct pirate *p);

/*
 * From now on the first `threads` threads sweep `bytes` in all, each a part of its own; 0: rest. Returns when
 * the set has been brought in: what it gained first, then all of it once. Whoever uses the cache at the same
 * time should be stopped meanwhile. bytes: of the set, so what is stolen and the threads' private caches
 * (llc.h).
 */
void pirate_steal(struct pirate *p, unsigned threads, uint64_t bytes);
/* What all threads have counted since pirate_new; take differences. Rest is not counted. */
struct hold_count pirate_count(const struct pirate *p);
/*
 * Does the calling thread's CPU really share the last level with that of the Pirate's first thread? The
 * system may say so wrongly: the host of a virtual machine moves its CPUs about. Told by how long a line
 * takes from one to the other: through a cache that they share, or as long as from memory. Some tens of
 * microseconds; the Pirate rests afterwards. 1; 0; -EAGAIN if one of the two did not run meanwhile.
 */
int pirate_is_shared(struct pirate *p);
/* The time that such a line took, the last time that it became clear, in ticks; 0: not yet. */
double pirate_transfer_ticks(const struct pirate *p);
/* Ticks of the time stamp counter in a nanosecond, as calibration found it. */
double pirate_ticks_per_ns(const struct pirate *p);
/* Does all its memory lie in huge pages? */
int pirate_has_huge_pages(const struct pirate *p);

#endif
