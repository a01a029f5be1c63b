/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_ANALYSIS_BUSY_THREADS_H
#define CACHEGRAM_ANALYSIS_BUSY_THREADS_H

#include <stddef.h>

#include "profile/profile.h"

/* How many threads of a process worked at the same time, by the windows of a profile: those with a tenth of
 * all that was recorded completely, or of the CPU time after that. Of the process with most; 0: none, or not
 * known. */
size_t analysis_busy_threads(struct profile *p);

#endif
