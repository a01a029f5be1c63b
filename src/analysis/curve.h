/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve.h - from a profile to the curve of miss ratios: reads what the profile holds, weighs it, and asks the
 * model that fits. What comes out is numbers; src/report puts them into words and tables.
 *
 *     mode        the profile holds                                     the curve is
 *     full        histograms of every reference                         exact (curve.c)
 *     burst       histograms of bursts, rates at them, watched lines    estimated, with bounds
 * (curve-bursts.c) sparse      reuse distances of single references, by windows      the papers' models
 * (curve-sparse.c)
 */
#ifndef CACHEGRAM_ANALYSIS_CURVE_H
#define CACHEGRAM_ANALYSIS_CURVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/curve.h"
#include "profile/profile.h"

enum analysis_model { ANALYSIS_MODEL_LRU, ANALYSIS_MODEL_RANDOM, ANALYSIS_MODEL_STATSTACK };

/* What the curve is to be of. */
struct analysis_question {
    enum analysis_model model;
    uint32_t tid;  /* only this thread's bursts; 0: all */
    unsigned ways; /* of a set-associative cache (LRU); 0: fully associative */
};

struct analysis_curve {
    const char *profile; /* file name */
    const char *model;   /* "lru", "random", "statstack" */
    int full;            /* the profile holds every reference */
    unsigned line_bytes;
    uint64_t references; /* recorded ones, behind this curve */
    size_t bursts;
    size_t windows, samples; /* of sparse reuse distances; 0 in other profiles */
    unsigned ways;           /* 0: fully associative */
    size_t watches;          /* survivors of those bursts that were chosen for watching */
    size_t unfollowed;       /* of those, refused or without an outcome */
    size_t dropped;          /* of those, given up */
    /* Of several processes, CPU time in user mode, profiling left out, and how much of it the bursts stand
     * for; NaN: not told. */
    double user_seconds, sampled_seconds;
    double clock_error; /* of the reference clock, the largest told, as a share; NaN: not told */
    /* Of the run, by the weights of its bursts; NaN where they do not tell (other modes: always). */
    double ns_per_instruction, references_per_instruction; /* references: touches of lines, as in the curve */
    struct curve_point *points;                            /* owned by the caller */
    size_t n;
};

/*
 * Compute curve->points[].miss_ratio, low and high for the sizes in them, and fill full, model,
 * line_bytes, references and all that follows. -EINVAL where the profile does not carry what the model needs,
 * -ENODATA where it holds no references.
 */
int analysis_curve_compute(struct profile *p, const struct analysis_question *question,
                           struct analysis_curve *curve, struct error *err);

#endif
