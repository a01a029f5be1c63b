/* SPDX-License-Identifier: Apache-2.0 */
/* thread-hist.h - what was recorded in full mode, as distances in a cache of its own for each thread. */
#ifndef CACHEGRAM_ANALYSIS_THREAD_HIST_H
#define CACHEGRAM_ANALYSIS_THREAD_HIST_H

#include <stdint.h>

#include "base/error.h"
#include "base/hist.h"
#include "profile/profile.h"

struct thread_hist {
    struct hist stack;
    uint64_t cold, left; /* first touches; lines of threads that went on after full mode */
};

/*
 * Given what all threads did in caches that those of a process share, sets *h to what they did in caches of
 * their own. tid: sets it to what this thread did, in all processes. 0, or negative with err; -ENODATA: the
 * profile `name` does not distinguish threads, or has no such thread.
 */
int thread_hist_separate(struct profile *p, const char *name, uint32_t tid, struct thread_hist *h,
                         struct error *err);

/* Whether a profile of full mode distinguishes threads, or need not: 0; else -ENODATA, or another error. */
int thread_hist_check(struct profile *p, const char *name, struct error *err);

#endif
