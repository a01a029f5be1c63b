/* SPDX-License-Identifier: Apache-2.0 */
/* corun.h - results of programs that share a cache, for people and scripts. */
#ifndef CACHEGRAM_REPORT_CORUN_H
#define CACHEGRAM_REPORT_CORUN_H

#include <stdint.h>
#include <stdio.h>
#include "report/base.h"
#include "report/report.h"

/* NaN: not enough samples. Miss ratios are of the shared cache, relative to the program's references. */
struct report_corun_row {
    const char *program;
    double solo_miss_ratio, shared_miss_ratio, shared_low, shared_high;
    double solo_cpi, shared_cpi, cpi_low, cpi_high, slowdown;
    double share_bytes, partition_bytes; /* partition: 0 none */
    double bytes_per_cycle;              /* from and to memory, when sharing */
    double wrong_cpi_change;             /* with --cpi-error: largest relative change of shared_cpi */
    uint32_t phases;                     /* 1: none, or not used */
    uint32_t found_phases;               /* of the profile, unless they were not asked for */
    int in_several;                      /* its threads are in several of them at a time: none is used */
    double mean_miss_ratio, mean_cpi, mean_slowdown; /* shared, without phases; NaN: no program has any */
};

struct report_corun {
    const struct report_corun_row *rows;
    uint32_t n, profiles;            /* programs; the first `profiles` of them are of different profiles */
    const struct report_base *bases; /* of each program */
    uint64_t size_bytes;             /* of the shared cache */
    const char *machine;
    int converged, exact; /* exact: all profiles contain every reference */
    unsigned iterations;
    double residual, wait_cycles, utilisation; /* utilisation NaN: no limit is known */
    double cpi_error;                          /* assumed error; 0: none */
};

void report_corun(FILE *out, const struct report_corun *corun, enum report_format format,
                  const struct report_style *style);

#endif
