/* SPDX-License-Identifier: Apache-2.0 */
/* perf-count.h - counts events of a process from outside, by the kernel's names for them. */
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
    PERF_LLC_MISSES,   /* loads that missed the last level */
    PERF_LLC_FETCHES,  /* lines prefetched into it; with the misses, all lines fetched */
    PERF_TASK_CLOCK,   /* software: nanoseconds of CPU time; needs no counters */
    PERF_PAGE_FAULTS,  /* software */
    PERF_REFERENCES,   /* loads and stores, by the machine's own events (machine/counters.h) */
    PERF_KINDS
};

#define PERF_SLOTS (PERF_REFERENCES + COUNTERS_MAX) /* one event for each kind; several for references */

struct perf_count {
    int *fd; /* PERF_SLOTS for each thread that existed at opening; inherited by their new threads */
    size_t n;
    int missing[PERF_KINDS]; /* this machine does not count it */
    struct counters references;
};

/*
 * Starts counting in all threads of the process, in user mode. 0; -ENODEV with err filled if `wanted` cannot
 * be counted; other kinds may be missing.
 */
int perf_count_open(struct perf_count *c, pid_t pid, enum perf_event_kind wanted, struct error *err);
void perf_count_close(struct perf_count *c);
/* Sums since the start, by kind; NaN if missing. If counters were multiplexed, extrapolated by time. */
void perf_count_read(const struct perf_count *c, double sums[PERF_KINDS]);
/* Can it be counted in this process? 0, or -ENODEV with err filled. */
int perf_count_possible(enum perf_event_kind kind, struct error *err);
/* "instructions", "task-clock", ...; PERF_KINDS for an unknown name. */
enum perf_event_kind perf_count_kind(const char *name);

#endif
