/* SPDX-License-Identifier: Apache-2.0 */
/* pirate.h - measurements with part of the cache occupied (src/pirate), and the modelled values to compare
 * with. */
#ifndef CACHEGRAM_ANALYSIS_PIRATE_H
#define CACHEGRAM_ANALYSIS_PIRATE_H

#include <stddef.h>

#include "analysis/curve.h"
#include "base/error.h"
#include "profile/profile.h"

struct analysis_pirate {
    struct profile_pirate *rows; /* as profile_pirates returns them; malloc'ed */
    size_t n;
    char unit[16];         /* of ns_per_unit */
    double llc_bytes;      /* of which available sizes are parts */
    double private_bytes;  /* private caches that the program has in addition to its part of the last level */
    double threads, limit; /* of the Pirate; its fetch ratio up to which a measurement is valid */
    double stopped_percent;           /* of the time, to change the size; NaN: not in this run, or unknown */
    double cachegram_percent;         /* likewise: cachegram itself ran, without the Pirate */
    double cpu_seconds, wall_seconds; /* of the first run, or the only one */
    double alone_ns, with_pirate_ns;  /* time per unit, alone and next to a Pirate of half a megabyte */
    char notes[4096];                 /* one sentence per line */
};

/* Loads from a profile: n is 0 if nothing was measured. */
int analysis_pirate_load(struct profile *p, struct analysis_pirate *r, struct error *err);
void analysis_pirate_clear(struct analysis_pirate *r);
/* The row with which others of the same method (`by`) as row i are compared: the largest valid size. NULL:
 * none. */
const struct profile_pirate *analysis_pirate_base(const struct analysis_pirate *r, size_t i);
/* Time per unit relative to the largest valid size of the same method (`by`); NaN if row i is not valid. */
double analysis_pirate_slowdown(const struct analysis_pirate *r, size_t i);
/*
 * Modelled miss ratio for what row i left to the program: for that many bytes plus private_bytes, by linear
 * interpolation in the logarithm of the size; NaN outside the curve.
 */
double analysis_pirate_modelled(const struct analysis_pirate *r, size_t i,
                                const struct analysis_curve *curve);
/*
 * Measured miss ratios, at the sizes that correspond to them in a model; malloc'ed, NULL if there are none.
 */
struct curve_point *analysis_pirate_marks(const struct analysis_pirate *r, size_t *n);

#endif
