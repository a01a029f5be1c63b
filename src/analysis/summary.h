/* SPDX-License-Identifier: Apache-2.0 */
/* summary.h - a profile's run: what ran, how it was recorded, what was seen of it. */
#ifndef CACHEGRAM_ANALYSIS_SUMMARY_H
#define CACHEGRAM_ANALYSIS_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profile/profile.h"

struct analysis_counter {
    char name[32];
    uint64_t value;
};

struct analysis_summary {
    char command[4096], started[64], mode[32], complete[8];
    char warning[8192]; /* one a line; empty: none */
    char clock[16];     /* that counts the references between bursts; "": not known */
    /* NaN if not in the profile. */
    double references, loads, stores, cold, cpu_seconds, start_cpu_seconds, wall_seconds, overhead_percent,
        exit_status, memory_bytes;
    double clock_error;      /* share by which rates of references may be wrong; NaN: not known */
    double missed_percent;   /* full mode, counting always: references missing, about; NaN: not told */
    char missed[512];        /* why, in words */
    char few_bursts[300];    /* why there are hardly any bursts; "": there are, or it is not known */
    double clock_references; /* of the whole run, counted; NaN: they were not */
    size_t bursts, processes, threads;
    uint64_t end[16]; /* bursts by how they ended (codes of docs/format.md); the last: other codes */
    size_t ncounters;
    struct analysis_counter counter[64];
};

/* 0, or negative with err filled: the profile cannot be read. */
int analysis_summary_load(struct profile *p, struct analysis_summary *s, struct error *err);

#endif
