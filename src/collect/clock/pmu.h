/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmu.h - a thread's references counted by the machine's counters, from outside: the clock `pmu`.
 *
 * The counters are one group of perf events. The first of them is the trigger as well: it overflows after so
 * many of its events, and sends the SIGTRAP that begins a burst (trigger.h). With that the kernel writes all
 * counts down for us, at the very instruction; when the burst is over and the next trigger is set, we read
 * them again. So what is counted between the two is native code only.
 */
#ifndef CACHEGRAM_COLLECT_PMU_H
#define CACHEGRAM_COLLECT_PMU_H

#include <stdint.h>
#include "collect/clock/refclock.h"
#include "machine/counters.h"

/* Counts at a moment. */
struct pmu_reading {
    uint64_t at_ns;  /* CLOCK_MONOTONIC */
    uint64_t cpu_ns; /* that the thread has run since the group was opened */
    uint64_t count[COUNTERS_MAX];
};

struct pmu {
    const struct counters *counters;
    int fd[COUNTERS_MAX]; /* [0] leads the group; -1 */
    void *ring;           /* the kernel's records of overflows; NULL: none */
    int counting;         /* `from` is valid: a stretch has begun, and no overflow ended it yet */
    struct pmu_reading from;
};

/*
 * Opens the counters on a thread, not yet enabled: the first interrupts after `period` of its events. 0, or
 * negative errno; then nothing is open.
 */
int pmu_open(struct pmu *p, const struct counters *counters, uint32_t tid, uint64_t period);
void pmu_close(struct pmu *p);
/* A stretch begins, unless one goes on that no overflow has ended. */
void pmu_begin(struct pmu *p);
/*
 * Looks whether an overflow has ended the stretch; if so, fills in *s (but for its tid and trigger_per_ns)
 * and *first, how many events of the first counter were in it. Whether it did.
 */
int pmu_ended(struct pmu *p, struct refclock_stretch *s, double *first);

#endif
