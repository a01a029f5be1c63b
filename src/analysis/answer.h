/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what a curve says in one sentence: what hits in a first-level cache, and which larger cache
 * would help. */
#ifndef CACHEGRAM_ANALYSIS_ANSWER_H
#define CACHEGRAM_ANALYSIS_ANSWER_H

#include <stddef.h>

#include "model/curve.h"

/* A larger cache is one of so many times the size: the usual step between caches that can be bought. */
#define ANSWER_STEP 4.
/* Least gain that is worth a sentence, a difference of miss ratios; a curve that falls by less is flat. */
#define ANSWER_LEAST_GAIN 0.005

struct analysis_answer {
    double first_bytes, hit_ratio; /* of the first-level cache; NaN: not known */
    double hit_low, hit_high; /* its interval, which may be known where it is not; both hit_ratio if exact */
    /* The step beyond that cache with the largest gain, if the intervals at its two ends do not overlap; else
     * gain is 0. gain_low, gain_high: what these intervals leave possible. */
    double from_bytes, to_bytes, gain, gain_low, gain_high;
    double most_gain; /* of any larger cache on the curve, within the intervals */
    int flat;         /* nonzero: that is less than ANSWER_LEAST_GAIN */
    int separate;     /* of caches that each thread has for itself (the caller's work) */
};

/* `first` is the point of the first-level cache; points[n], by size, those of the curve. */
void analysis_answer_find(const struct curve_point *first, const struct curve_point *points, size_t n,
                          struct analysis_answer *answer);

#endif
