/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - output of `cachegram verify`: an estimated curve and the exact one. */
#ifndef CACHEGRAM_REPORT_VERIFY_H
#define CACHEGRAM_REPORT_VERIFY_H

#include "report/report.h"

struct report_verify {
    const char *estimate_of, *exact_of; /* the command, or file names */
    uint64_t estimate_references;       /* recorded ones from which the estimate is calculated */
    uint64_t full_references;           /* of these, those of the run's first part, recorded in full mode */
    uint64_t exact_references;
    int complete; /* the estimate is of every reference, too: not an estimate */
    size_t bursts;
    unsigned line_bytes;
    double overhead_percent;            /* of the recorded run, recorder included; NaN: unknown */
    const struct curve_point *estimate; /* miss ratio NaN: no estimate */
    const struct curve_point *exact;    /* same sizes */
    size_t n;
    /* Over time, at sizes of their own: see analysis_cdf_error. */
    const struct report_verify_time {
        double size_bytes, cdf_error, at_time;
    } * times;
    size_t ntimes;        /* 0: not known */
    size_t parts;         /* of the run, that were compared */
    int separate;         /* the curves are those of a cache for each thread */
    size_t unknown_parts; /* of them without an estimate at some size: taken as the mean of the others */
};

/* Summary over all points; errors are estimate - exact, as ratios. */
struct report_verify_errors {
    size_t estimated; /* points with an estimate */
    size_t inside;    /* points whose interval or bounds contain the exact value, of all n */
    /* absolute errors over points with an estimate; NaN if there are none */
    double mean, worst, worst_at_size;
};

void report_verify(FILE *out, const struct report_verify *v, enum report_format format,
                   const struct report_style *style);

#endif
