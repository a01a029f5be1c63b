/* SPDX-License-Identifier: Apache-2.0 */
/* perf-count.h - events of a process counted from outside, by the kernel's own names for them. */
#ifndef CACHEGRAM_PERF_COUNT_H
#define CACHEGRAM_PERF_COUNT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "machine/counters.h"

enum perf_event_kind {
    PERF_INSTRUCTIONS, /* retired */
    PERF_CYCLES,       /* of the core's clock */
    PERF_LLC_MISSES,   /* loads that the last level lacked */
    PERF_LLC_FETCHES,  /* lines prefetched into it; with the misses, all that was fetched */
    PERF_TASK_CLOCK,   /* software: nanoseconds of CPU time; needs no counters */
    PERF_PAGE_FAULTS,  /* software */
    PERF_REFERENCES,   /* loads and stores, by the machine's own events (machine/counters.h) */
    PERF_KINDS
};

#define PERF_SLOTS (PERF_REFERENCES + COUNTERS_MAX) /* each kind is one event, but for references */

struct perf_count {
    int *fd; /* PERF_SLOTS for each thread that was there; threads that these make are counted with them */
    size_t n;
    int missing[PERF_KINDS]; /* this machine does not count it */
    struct counters references;
};

/*
 * Starts counting in all threads of the process, in user code. 0; -ENODEV where `wanted` cannot be counted,
 * with a sentence; the others may be missing.
 */
int perf_count_open(struct perf_count *c, pid_t pid, enum perf_event_kind wanted, struct error *err);
void perf_count_close(struct perf_count *c);
/* Sums since the start, by kind; NaN where missing. Where the counters were shared out, extrapolated by time.
 */
void perf_count_read(const struct perf_count *c, double sums[PERF_KINDS]);
/* Can it be counted here, in this very process? 0, or -ENODEV with a sentence. */
int perf_count_possible(enum perf_event_kind kind, struct error *err);
/* "instructions", "task-clock": PERF_KINDS if there is none of the name. */
enum perf_event_kind perf_count_kind(const char *name);

#endif
