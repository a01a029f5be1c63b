/* SPDX-License-Identifier: Apache-2.0 */
/* busy-threads.h - which threads and processes of a program worked at the same time, by its profile's
 * windows.
 */
#ifndef CACHEGRAM_ANALYSIS_BUSY_THREADS_H
#define CACHEGRAM_ANALYSIS_BUSY_THREADS_H

#include <stddef.h>

#include "profile/profile.h"

struct analysis_busy {
    size_t threads;   /* the largest number of busy threads that a process had at one time; 0: not known */
    size_t processes; /* the largest number of busy processes at one time, likewise */
    /* How many times as fast as its busiest thread the process with most work was: its work divided by that
     * of this thread, at most `threads`; at least 1. */
    double parallel;
};

/*
 * Work is references where all were recorded, CPU time after that. A thread is busy if it did at least a
 * tenth of what the thread of a piece of work that is picked at random did: with n equal threads, a tenth of
 * 1/n of all. Likewise processes.
 */
struct analysis_busy analysis_busy_threads(struct profile *p);

#endif
