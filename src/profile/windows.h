/* SPDX-License-Identifier: Apache-2.0 */
/* windows.h - the run as a sequence of windows of each thread, and their phases: writing and reading. */
#ifndef CACHEGRAM_PROFILE_WINDOWS_H
#define CACHEGRAM_PROFILE_WINDOWS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "profile/profile.h"

struct profile_time_window {
    uint64_t id;      /* 1, 2, ... */
    uint64_t process; /* id from profile_add_process */
    uint32_t tid;
    int exact;                 /* recorded in full mode; otherwise sampled */
    uint64_t start_ns, end_ns; /* since the run's start */
    uint64_t cpu_ns;           /* CPU time of the thread; in sampled windows without profiling */
    uint64_t references;       /* recorded; 0 in sampled windows */
    uint64_t cold;             /* first touches of a line; exact windows only */
    uint64_t own_cold;         /* first touches by this thread; likewise */
    uint64_t ticks, bursts;    /* samples of code, and bursts that began in it; sampled windows only */
    uint32_t phase;            /* from 1; 0: not known */
};

/* Deletes all windows and phases. 0, or negative with err. */
int profile_clear_time_windows(struct profile *p, struct error *err);
/* stack: stack distances in a cache that the threads of a process share, own: in one of this thread's (exact
 * windows; NULL otherwise, or own: they are the same). 0, or negative with err. */
int profile_add_time_window(struct profile *p, const struct profile_time_window *window,
                            const struct hist *stack, const struct hist *own, struct error *err);
/* Stores phases 1 .. n, calculated from the windows that are stored. 0, or negative with err. */
int profile_put_phases(struct profile *p, struct error *err);

/* All windows, ordered by id, in a malloc'ed array that the caller frees. Older profiles have none. */
int profile_time_windows(struct profile *p, struct profile_time_window **windows, size_t *n,
                         struct error *err);
/* Stack distances of an exact window; separate: in a cache of the thread's own. 0, or negative with err. */
int profile_time_window_stack(struct profile *p, uint64_t id, int separate, struct hist *stack,
                              struct error *err);

#endif
