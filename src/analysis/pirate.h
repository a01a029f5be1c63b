/* SPDX-License-Identifier: Apache-2.0 */
/* pirate.h - what was measured with part of the cache taken away (src/pirate), and what the model says of it.
 */
#ifndef CACHEGRAM_ANALYSIS_PIRATE_H
#define CACHEGRAM_ANALYSIS_PIRATE_H

#include <stddef.h>

#include "analysis/curve.h"
#include "base/error.h"
#include "profile/profile.h"

struct analysis_pirate {
    struct profile_pirate *rows; /* as profile_pirates gives them; malloc'ed */
    size_t n;
    char unit[16];          /* of ns_per_unit */
    double llc_bytes;       /* from which sizes are reckoned */
    double private_bytes;   /* that the program has in addition to its part of the last level */
    double threads, limit;  /* of the Pirate; its fetch ratio up to which a measurement is valid */
    double stopped_percent; /* of the time, to change the size; NaN: not in this run, or not known */
    double own_percent;     /* likewise: cachegram itself ran, beside its Pirate */
    double cpu_seconds, wall_seconds; /* of the first run, or the only one */
    double alone_ns, beside_ns;       /* a unit, alone and beside a Pirate of half a megabyte */
    char notes[4096];                 /* sentences, one a line */
};

/* From a profile: n is 0 where nothing was measured. */
int analysis_pirate_load(struct profile *p, struct analysis_pirate *r, struct error *err);
void analysis_pirate_clear(struct analysis_pirate *r);
/* The row that others of row i's way (`by`) are compared with: the largest size that is valid. NULL: none. */
const struct profile_pirate *analysis_pirate_base(const struct analysis_pirate *r, size_t i);
/* Time by unit relative to the same way's (`by`) largest size that is valid; NaN where row i is not. */
double analysis_pirate_slowdown(const struct analysis_pirate *r, size_t i);
/*
 * What the model says of what row i left to the program: the miss ratio at that many bytes and private_bytes,
 * by linear interpolation in the logarithm of the size; NaN outside the curve.
 */
double analysis_pirate_modelled(const struct analysis_pirate *r, size_t i,
                                const struct analysis_curve *curve);
/* Miss ratios that were measured, at the sizes that a model has for them; malloc'ed, NULL where there are
 * none. */
struct curve_point *analysis_pirate_marks(const struct analysis_pirate *r, size_t *n);

#endif
