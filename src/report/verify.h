/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - an estimated curve beside the exact one: what `cachegram verify` prints. */
#ifndef CACHEGRAM_REPORT_VERIFY_H
#define CACHEGRAM_REPORT_VERIFY_H

#include "report/report.h"

struct report_verify {
    const char *estimate_of, *exact_of; /* the command, or file names */
    uint64_t estimate_references;       /* recorded ones that the estimate is made from */
    uint64_t exact_references;
    size_t bursts;
    unsigned line_bytes;
    double overhead_percent;            /* of the estimate's run, recorder included; NaN: not known */
    const struct curve_point *estimate; /* NaN miss ratio: the estimate has none there */
    const struct curve_point *exact;    /* same sizes */
    size_t n;
};

/* What the points say together; errors are estimate - exact, as ratios. */
struct report_verify_errors {
    size_t told;   /* points with an estimate */
    size_t inside; /* points whose band or bounds hold the exact value, of all n */
    double mean, worst,
        worst_at_size; /* absolute errors over points with an estimate; NaN if there is none */
};
struct report_verify_errors report_verify_errors(const struct report_verify *v);

void report_verify(FILE *out, const struct report_verify *v, enum report_format format,
                   const struct report_style *style);

#endif
