/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters.h - hardware counters of this machine that count references (docs/methods.md, section 1: loads +
 * stores, one each for a read-modify-write), and whether they may be used. Names are looked up through
 * libpfm4, which is loaded on demand and need not be installed.
 */
#ifndef CACHEGRAM_COUNTERS_H
#define CACHEGRAM_COUNTERS_H

#include <stdint.h>
#include "base/error.h"

#define COUNTERS_MAX 3u
/* Environment variable with events to count instead, separated by commas ("MEM_INST_RETIRED:ALL_LOADS,..."):
 * for CPUs that this file does not know. In tests on machines without counters, a software event replaces
 * them ("task-clock"). */
#define COUNTERS_ENV "CACHEGRAM_REFERENCE_EVENTS"

/* References are the sum of weight * count. */
struct counters {
    unsigned n;
    struct counter {
        char name[64];
        uint32_t type; /* type, config, config1, config2 as in struct perf_event_attr */
        uint64_t config, config1, config2;
        double weight;
    } event[COUNTERS_MAX]; /* [0]: the one that interrupts */
};

/*
 * 0; or -ENODEV, with err saying what is missing: no counters, no libpfm4, an unknown CPU, an unknown name,
 * or counters that may not be used, or do not count (counters_check). *c is unchanged on failure.
 */
int counters_find(struct counters *c, struct error *err);
/*
 * Counts a known number of references of this thread. 0; or -ENODEV if the counters cannot be used, are in
 * use by others, or count less than nine tenths or more than twice as much: hypervisors let events be opened
 * that never count. counters_find does so, but for software events.
 */
int counters_check(const struct counters *c, struct error *err);
/* Why perf_event_open failed, in words: strerror says "No such file or directory" of an event that is not
 * there. */
const char *counters_why(int code);

#endif
