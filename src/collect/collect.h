/* SPDX-License-Identifier: Apache-2.0 */
/* collect.h - `cachegram record` without its command line: runs a command and profiles it. */
#ifndef CACHEGRAM_COLLECT_H
#define CACHEGRAM_COLLECT_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* How survivors of bursts are watched. */
enum collect_watch {
    COLLECT_WATCH_AUTO, /* in the tails of bursts (watch/burst-tail.h), then PAGE */
    COLLECT_WATCH_PAGE,
    COLLECT_WATCH_NONE
};

/* What is done with the references; all but the last exist to measure the cost of recording alone. */
enum collect_reduce {
    COLLECT_REDUCE_NONE,     /* buffers are discarded unread */
    COLLECT_REDUCE_COUNTS,   /* they are counted */
    COLLECT_REDUCE_DISTANCES /* histograms of distances */
};

/* How references are counted between bursts (wire.h). */
enum collect_clock {
    COLLECT_CLOCK_AUTO, /* the best available one */
    COLLECT_CLOCK_PMU,
    COLLECT_CLOCK_COUNT,
    COLLECT_CLOCK_COUNT_ALWAYS,
    COLLECT_CLOCK_CPUTIME,
};

struct collect_options {
    const char *output; /* the profile */
    const char *trace;  /* NULL, or a file for the references themselves */
    const char *version;
    int full;            /* every reference; else bursts */
    double lines_rate;   /* full mode: share of the lines for which distances are measured, 0 < rate <= 1 */
    int unfiltered;      /* tests: the agent does not filter them, only the collector does */
    uint64_t burst_refs; /* burst length */
    uint64_t gap_us;     /* mean CPU time between a thread's bursts; 0: from overhead_percent */
    double overhead_percent; /* budget: additional CPU time, relative to the program's own */
    uint64_t allowance_ns;   /* CPU time that may be added besides, spent first; not with gap_us or full */
    unsigned line_bytes;
    uint64_t seed;
    enum collect_watch watch;
    unsigned count_vector; /* for tests, like the next four: count in that vector register; 0: chosen by the
                              agent */
    unsigned watch_lines;  /* lines watched after each burst, whatever the cost; 0: chosen by the
                              budget */
    unsigned switch_ms;    /* mean time between switches of full mode, counting and bursts; 0: none */
    unsigned full_refs, count_refs; /* the parts that begin a run with an allowance end after so many
                                       references, whatever they have used; 0: by the allowance */
    int follow;                     /* children too */
    int objects;                    /* data objects are identified, and allocations sampled */
    int call_graph;                 /* call paths are recorded */
    enum collect_reduce reduce;
    enum collect_clock clock; /* of bursts */
    char **argv;              /* the command, NULL-terminated */
};

struct collect_result {
    int ran; /* the command was started; if not, only the returned status is valid */
    uint64_t references, bursts;
    int full;                 /* every reference was recorded, by request or since the allowance sufficed */
    uint64_t full_references; /* else, those recorded in full mode, before the first burst */
    double cpu_seconds;       /* of the command and its waited-for children, with profiling */
    double overhead_percent;  /* CPU time of bursts and watching over the rest; NaN: not known */
    double recorder_overhead_percent; /* the recorder's own CPU time over the target's; NaN: not known */
    char warning[2048];               /* what limits the profile, one warning per line; or "" */
    char nothing[256]; /* burst mode: why there are no bursts; "": there are, or the warning says why */
    uint64_t trace_references; /* in the trace, if there is one */
    int stopped;               /* the signal that asked cachegram to stop meanwhile; 0: none */
    struct error trouble;      /* why the profile is incomplete, or "" */
};

/*
 * Returns the exit status for the shell: the command's own, 128+N if signal N killed it; 125 (we
 * failed), 126 (not executable), 127 (not found) with err filled when it was not started.
 */
int collect_run(const struct collect_options *options, struct collect_result *result, struct error *err);

#endif
