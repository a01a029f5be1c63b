/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve.h - from a profile to its miss-ratio curve: reads the profile, weights it, and calls the model for
 * its mode. The results are numbers; src/report formats them.
 *
 *  - full mode: histograms of every reference; the curve is exact (curve.c)
 *  - full mode with --lines: histograms of a sample of lines; an estimate with intervals (curve.c)
 *  - burst mode: histograms of bursts, their rates, watched lines; an estimate with intervals
 * (curve-bursts.c)
 *  - sparse mode: reuse distances of sampled references, by windows; StatStack or StatCache (curve-sparse.c)
 */
#ifndef CACHEGRAM_ANALYSIS_CURVE_H
#define CACHEGRAM_ANALYSIS_CURVE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/extent.h"
#include "base/error.h"
#include "model/curve.h"
#include "profile/profile.h"

/* -EINVAL with err filled if the profile has a sample of lines; 0; or negative with err. */
int analysis_refuse_lines(struct profile *p, const char *name, struct error *err);

enum analysis_model { ANALYSIS_MODEL_LRU, ANALYSIS_MODEL_RANDOM, ANALYSIS_MODEL_STATSTACK };

/* Which curve to compute. */
struct analysis_question {
    enum analysis_model model;
    uint32_t tid;   /* only this thread's bursts; 0: all */
    int separate;   /* each thread has a cache of its own (LRU); else all of a process share one */
    unsigned ways;  /* of a set-associative cache (LRU); 0: fully associative */
    uint32_t phase; /* only windows of this phase (LRU, all threads, fully associative); 0: all */
};

struct analysis_curve {
    const char *profile;         /* file name */
    const char *model;           /* "lru", "random", "statstack" */
    int full;                    /* full mode: the profile contains every reference, up to its extent */
    enum analysis_extent extent; /* of what was recorded */
    double lines_rate;           /* share of the lines whose distances were measured; 1 in other profiles */
    double missed_percent;       /* percentage of missing references, estimated; 0: none, or unknown */
    unsigned line_bytes;
    uint64_t references; /* recorded ones from which the curve is computed */
    size_t bursts;
    double unseen;         /* parts of the run that are shorter than this share of it may have no burst */
    double unseen_strings; /* share of the touches that string instructions made which no burst has */
    double unseen_string_bytes; /* and how many bytes each of these covers, at least */
    int estimated;              /* of full mode, but by a model of reuse distances: random, statstack */
    uint64_t
        skipped_references;   /* recorded at first, without distinguishing threads: not in a curve of one */
    uint64_t full_references; /* of `references`, those of the first part, recorded in full mode; 0: none */
    size_t windows, samples;  /* of sparse reuse distances; 0 in other profiles */
    unsigned ways;            /* 0: fully associative */
    uint32_t phase;           /* 0: the whole run */
    /* Only references by this function, to this object; NULL: all. The points are then the caller's work
     * (hotspots-sizes.h), and `selected` of the references are of these. */
    const char *function, *object;
    const char *whole_name; /* of the one function that is meant by `function`; NULL: several are */
    uint64_t selected;
    size_t watches;   /* survivors of those bursts that were chosen to be watched */
    size_t unwatched; /* of these, refused or without an outcome */
    size_t censored;  /* of these, censored */
    /* If there are several processes: their CPU time in user mode without profiling, and the part of it that
     * the bursts represent; NaN: not known. */
    double user_seconds, sampled_seconds;
    double
        sampled_error; /* standard deviation of sampled_seconds, as bursts are placed at random; likewise */
    size_t processes;  /* 0: not known */
    /* Threads that worked at the same time, in a curve of all threads: what each does in tens of thousands of
     * references counts as in a cache of its own. 0: not known. */
    size_t busy_threads;
    size_t busy_processes; /* that worked at the same time, each in caches of its own; 0: not known */
    int separate;          /* the curve is that of such caches, at all sizes */
    double clock_error;    /* largest known relative error of the reference clock; NaN: not known */
    /* Means over the run, by the weights of its bursts; NaN: not known (always in other modes). */
    double ns_per_instruction, references_per_instruction; /* references: touches of lines, as in the curve */
    struct curve_point *points;                            /* owned by the caller */
    size_t n;
};

/*
 * Computes miss_ratio, low and high of curve->points[] for their sizes, and sets full, model, line_bytes,
 * references and all members after it. -EINVAL if the profile lacks what the model needs, -ENODATA if it has
 * no references.
 */
int analysis_curve_compute(struct profile *p, const struct analysis_question *question,
                           struct analysis_curve *curve, struct error *err);

/*
 * The sizes of points[n] and those of a standard grid, in order; NULL: out of memory. The caller frees it. A
 * curve is made monotone over both, so that a size has the same answer whichever others of the grid are
 * requested with it, and nearly the same beside sizes between them.
 */
struct curve_point *analysis_curve_with_grid(const struct curve_point *points, size_t n, size_t *all_n);
/* The point of that size in points[n], which are in order; NULL: there is none. */
struct curve_point *analysis_curve_find(struct curve_point *points, size_t n, double size_bytes);

#endif
