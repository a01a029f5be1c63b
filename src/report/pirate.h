/* SPDX-License-Identifier: Apache-2.0 */
/* pirate.h - a program measured with part of its cache taken away: for people and scripts, beside the model.
 */
#ifndef CACHEGRAM_REPORT_PIRATE_H
#define CACHEGRAM_REPORT_PIRATE_H

#include <stdio.h>
#include "report/report.h"

struct report_pirate {
    struct profile_pirate *rows; /* as profile_pirates gives them; malloc'ed */
    size_t n;
    char unit[16];                    /* of ns_per_unit */
    double llc_bytes;                 /* from which sizes are reckoned */
    double private_bytes;             /* that the program has besides what is left of the last level */
    double threads, limit;            /* of the Pirate; its fetch ratio up to which a measurement is valid */
    double stopped_percent;           /* of the time, to change the size; NaN: not in this run, or not told */
    double own_percent;               /* likewise: cachegram itself ran, beside its Pirate */
    double cpu_seconds, wall_seconds; /* of the first run, or the only one */
    double alone_ns, beside_ns;       /* a unit, alone and beside a Pirate of half a megabyte */
    char notes[4096];                 /* sentences, one a line */
};

/* From a profile: n is 0 where nothing was measured. */
int report_pirate_load(struct profile *p, struct report_pirate *r, struct error *err);
void report_pirate_clear(struct report_pirate *r);
/* Time by unit relative to the same way's (`by`) largest size that is valid; NaN where row i is not. */
double report_pirate_slowdown(const struct report_pirate *r, size_t i);
/*
 * What the model says of what row i left to the program: the miss ratio at that many bytes and private_bytes,
 * by linear interpolation in the logarithm of the size; NaN outside the curve.
 */
double report_pirate_modelled(const struct report_pirate *r, size_t i, const struct report_curve *curve);
/* Miss ratios that were measured, at the sizes that a model has for them; malloc'ed, NULL where there are
 * none. */
struct curve_point *report_pirate_marks(const struct report_pirate *r, size_t *n);
/* curve may be NULL, or empty: no model beside it. */
void report_pirate(FILE *out, const struct report_pirate *r, const struct report_curve *curve,
                   enum report_format format, const struct report_style *style);
/* "pirate": [...], without braces around it, each line indented by two spaces. */
void report_pirate_rows_json(FILE *out, const struct report_pirate *r, const struct report_curve *curve);

#endif
