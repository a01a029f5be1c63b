/* SPDX-License-Identifier: Apache-2.0 */
/* busy-threads.h - which threads and processes of a program worked at the same time, by its profile's
 * windows.
 */
#ifndef CACHEGRAM_ANALYSIS_BUSY_THREADS_H
#define CACHEGRAM_ANALYSIS_BUSY_THREADS_H

#include <stddef.h>

#include "profile/profile.h"

struct analysis_busy {
    /* The largest number of busy threads that a process had during a tenth of all work; 0: not known. */
    size_t threads;
    size_t processes; /* of busy processes, likewise */
    /* How many times as fast as its busiest thread the process with most work was: its work divided by that
     * of this thread, at most `threads`; at least 1. */
    double parallel;
};

/*
 * Work is references where all were recorded, CPU time after that; that of a window is spread evenly over its
 * elapsed time. A thread is busy at a time if it does at least a tenth of what the thread of a piece of work
 * that is picked at random then does: with n equal threads, a tenth of 1/n of all. So one that waits for the
 * others is not. Likewise processes.
 */
struct analysis_busy analysis_busy_threads(struct profile *p);

#endif
