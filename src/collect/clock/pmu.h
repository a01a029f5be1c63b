/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmu.h - counts a thread's references by hardware counters, from outside: the clock `pmu`.
 *
 * The counters are one group of perf events. The first one is also the trigger: after so many events it
 * overflows and sends the SIGTRAP that begins a burst (trigger.h). At this very instruction the kernel
 * records all counts. When the burst is over and the next trigger is set, the collector reads them again. So
 * only native code lies between the two readings.
 */
#ifndef CACHEGRAM_COLLECT_PMU_H
#define CACHEGRAM_COLLECT_PMU_H

#include <stdint.h>
#include "collect/clock/refclock.h"
#include "machine/counters.h"

/* Counts at a moment. */
struct pmu_reading {
    uint64_t at_ns;  /* CLOCK_MONOTONIC */
    uint64_t cpu_ns; /* CPU time of the thread since the group was opened */
    uint64_t count[COUNTERS_MAX];
};

struct pmu {
    const struct counters *counters;
    int fd[COUNTERS_MAX]; /* [0] leads the group; -1 */
    void *ring;           /* the kernel's records of overflows; NULL: none */
    int counting;         /* `from` is valid: a stretch has begun, and no overflow has ended it yet */
    struct pmu_reading from;
};

/*
 * Opens the counters on a thread, disabled: the first one interrupts after `period` of its events. 0, or
 * negative errno; then nothing is open.
 */
int pmu_open(struct pmu *p, const struct counters *counters, uint32_t tid, uint64_t period);
void pmu_close(struct pmu *p);
/* Begins a stretch, unless one is in progress. */
void pmu_begin(struct pmu *p);
/*
 * Checks whether an overflow has ended the stretch. If so, sets *s (except tid and trigger_per_ns) and
 * *first, the number of the first counter's events in it, and returns nonzero.
 */
int pmu_ended(struct pmu *p, struct refclock_stretch *s, double *first);

#endif
