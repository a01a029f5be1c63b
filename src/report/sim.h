/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h (report) - what simulated caches did, for people and scripts. */
#ifndef CACHEGRAM_REPORT_SIM_H
#define CACHEGRAM_REPORT_SIM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/report.h"
#include "sim/cache.h"

/* One core's accesses at one level of one hierarchy. NaN: not known here; then CSV has an empty field. */
struct report_sim_row {
    uint32_t config; /* which hierarchy, 1 the first */
    uint32_t level;  /* 0: L1 */
    int core;        /* -1: all together */
    struct sim_level cache;
    uint64_t ways; /* as a number, for fully associative ones too */
    double accesses, misses, miss_ratio, evictions, writebacks, stores, store_misses;
    double cause[SIM_CAUSES];
    double low, high; /* miss ratio, where only part was simulated */
    double unknown;   /* time samples: accesses of which nothing is known */
    double mu, wood;  /* Wood's estimate of the share of these that miss, and the miss ratio with it */
};

struct report_sim {
    const char *const *traces;
    size_t ntraces;
    uint64_t references;
    uint32_t line_bytes, configs;
    double share; /* of the sets, or of the references, that was simulated; 1: exact; NaN: not known */
    const char *sampling; /* "sets", "time", "bursts", or NULL */
    int causes;
    const struct report_sim_row *rows;
    size_t n;
};

void report_sim(FILE *out, const struct report_sim *report, enum report_format format,
                const struct report_style *style);

#endif
