/* SPDX-License-Identifier: Apache-2.0 */
/* run-internal.h - a recording in progress, for the files of this folder. */
#ifndef CACHEGRAM_RUN_INTERNAL_H
#define CACHEGRAM_RUN_INTERNAL_H

#include <limits.h>
#include <sys/resource.h>
#include "base/random.h"
#include "collect/clock/budget.h"
#include "collect/collect.h"
#include "collect/drain/drain.h"
#include "collect/launch/session.h"

/* For tests: from full mode to bursts and back, at random moments, so far apart in the mean. */
struct switching {
    uint64_t mean_ns; /* 0: no */
    uint64_t next_ns;
    struct random_state random;
};

/* When bursts begin, and how far apart they are (pace.c). */
struct pace {
    int budgeted; /* bursts keep to a budget */
    int counts;   /* for now every reference is counted, at the allowance's expense (begin_counting) */
    struct budget budget;
    uint64_t next_ns; /* when the gap is set again */
    struct switching switching;
    /* When as many buffers had been reduced as there are: how many, and what had been spent. */
    uint64_t first_buffers, first_ns;
    double left_ns; /* of the allowance, after full mode */
};

struct run {
    const struct collect_options *options;
    struct collect_result *result;
    struct profile *profile;
    struct session session;
    struct reducer *reducer;
    struct drain *drain;
    struct tee *tee;
    struct watches *watches; /* NULL: none */
    double filter_share;     /* of the lines that the agent's filter lets pass; 0: it does not filter */
    uint64_t start_ns;
    uint64_t recorder_before_ns; /* CPU time of this process that belongs to earlier recordings */
    pid_t command;
    int wait_status;
    struct rusage usage; /* the command's, and its waited-for children's */
    const char *obstacle;
    int is_static;            /* the command is statically linked: only its children can be profiled */
    enum collect_clock clock; /* options->clock, but never AUTO */
    struct counters counters; /* of the clock `pmu` */
    int full;                 /* every reference is recorded, so far */
    struct pace pace;
    /* Of a run that begins in full mode: all that was used until bursts were placed by CPU time, and what of
     * it profiling had cost the program: in full mode, in that and in bursts, and by counting. */
    struct budget_use before;
    uint64_t full_ns, recorded_ns;
    struct drain_counting counted;
    uint64_t counted_references, counted_strings; /* drain_all_counted and its strings, likewise */
    char agent[PATH_MAX];
};

/* prepare.c: everything that can fail before the command is started. */
int run_prepare(struct run *r, struct error *err);

/* pace.c. After run_prepare; then, in each pass, whether full mode is over, and how far apart bursts are from
 * now on. buffers: drained so far. */
void pace_begin(struct run *r);
void pace_mode(struct run *r, uint64_t now_ns, uint64_t buffers);
void pace_gap(struct run *r, uint64_t now_ns);

/* outcome.c: what the profile and the result say about the run when it has ended; closes the profile and the
 * trace. */
void run_finish(struct run *r, int exit_status);
/* Adds a line to the warnings. */
void run_warn(struct collect_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
