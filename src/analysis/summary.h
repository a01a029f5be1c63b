/* SPDX-License-Identifier: Apache-2.0 */
/* summary.h - the run of a profile: what ran, how it was recorded, and the totals. */
#ifndef CACHEGRAM_ANALYSIS_SUMMARY_H
#define CACHEGRAM_ANALYSIS_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/extent.h"
#include "base/error.h"
#include "profile/profile.h"

struct analysis_counter {
    char name[32];
    uint64_t value;
};

struct analysis_summary {
    enum analysis_extent extent; /* of full mode */
    char command[4096], started[64], mode[32], complete[8];
    char warning[8192]; /* one per line; empty: none */
    char seed[24];      /* "": unknown */
    char clock[16];     /* which counts the references between bursts; "": unknown */
    /* NaN if not in the profile. */
    double references, loads, stores, cold, cpu_seconds, start_cpu_seconds, recorder_cpu_seconds,
        wall_seconds, overhead_percent, exit_status, memory_bytes;
    double clock_error;      /* relative error of rates of references; NaN: unknown */
    double missed_percent;   /* full mode, counting always: percentage of references missing, estimated; NaN:
                                unknown */
    char unprofiled[2048];   /* programs that ran without the agent, and why; "": none */
    char missed[512];        /* why they are missing, in words */
    char few_bursts[300];    /* why there are too few bursts; "": there are enough, or unknown */
    double clock_references; /* of the whole run, counted; NaN: not counted */
    /* Of the part after the first references in which all were counted, bursts included; NaN: there is none
     */
    double counted_references;
    size_t bursts, processes, threads;
    uint64_t end[16]; /* bursts by end reason (codes of docs/format.md); the last: other codes */
    size_t ncounters;
    struct analysis_counter counter[64];
};

/* 0, or negative with err filled: the profile cannot be read. */
int analysis_summary_load(struct profile *p, struct analysis_summary *s, struct error *err);

#endif
