/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h (report) - results of simulated caches, for people and scripts. */
#ifndef CACHEGRAM_REPORT_SIM_H
#define CACHEGRAM_REPORT_SIM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/report.h"
#include "sim/cache.h"

/* One core's accesses at one level of one hierarchy. NaN: unknown; CSV has an empty field then. */
struct report_sim_row {
    uint32_t config; /* number of the hierarchy, from 1 */
    uint32_t level;  /* 0: L1 */
    int core;        /* -1: sum of all */
    struct sim_level cache;
    uint64_t ways; /* as a number, also for fully associative caches */
    double accesses, misses, miss_ratio, evictions, writebacks, stores, store_misses;
    double cause[SIM_CAUSES];
    double low, high; /* miss ratio, if only part was simulated */
    double unknown;   /* time samples: accesses whose result is unknown */
    double mu, wood;  /* Wood's estimate of the share of these that miss, and the miss ratio with it */
    double share;     /* of the sets, or of the references, that was simulated; 1: exact; NaN: unknown */
};

struct report_sim {
    const char *const *traces;
    size_t ntraces;
    uint64_t references;
    uint32_t line_bytes, configs;
    const char *sampling; /* "sets", "time", "bursts", or NULL */
    int causes;
    const struct report_sim_row *rows;
    size_t n;
};

void report_sim(FILE *out, const struct report_sim *report, enum report_format format,
                const struct report_style *style);

#endif
