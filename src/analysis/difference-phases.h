/* SPDX-License-Identifier: Apache-2.0 */
/*
 * difference-phases.h - the phases of two profiles with intervals, and which of one belongs to which of the
 * other. Phases of two runs have no common numbers. They are paired by their code: the functions that make
 * the references of their bursts (docs/methods.md, section 13).
 */
#ifndef CACHEGRAM_ANALYSIS_DIFFERENCE_PHASES_H
#define CACHEGRAM_ANALYSIS_DIFFERENCE_PHASES_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/difference.h"
#include "base/error.h"
#include "model/curve.h"
#include "profile/profile.h"

struct analysis_phase_row {
    uint32_t phase; /* from 1 */
    size_t windows, bursts;
    double refs_share;          /* of the run's references */
    struct curve_point *points; /* at the sizes asked for; NaN: not enough samples */
    int code_known;             /* 0: no burst began in it, so the profile does not have it */
};

struct analysis_phase_rows {
    struct analysis_phase_row *list; /* the one with most references first; at most `most` */
    size_t n;
    size_t left_out; /* phases with fewer references */
};

struct analysis_phase_pair {
    const struct analysis_phase_row *before, *after; /* NULL: it has no counterpart */
    double alike; /* of a pair: share of the references that both have in common, by code; NaN: no pair */
    struct analysis_change *changes; /* of a pair: of its miss ratios; NULL: no pair */
};

struct analysis_phase_difference {
    struct analysis_phase_rows rows[2]; /* before and after */
    struct analysis_phase_pair *pairs;  /* by references before; then the phases without counterpart */
    size_t npairs;
};

/* Of two profiles, before and after, at the sizes of points[npoints], of caches for each thread if
 * `separate`; of each the phases with most references. -ENODATA: one of them has no phases. The caller clears
 * it. */
int analysis_phase_difference(struct profile *const profiles[2], const char *const names[2], int separate,
                              const struct curve_point *points, size_t npoints,
                              struct analysis_phase_difference *d, struct error *err);
void analysis_phase_difference_clear(struct analysis_phase_difference *d);

/* Pairs the phases of d->rows, which are at the same number of sizes. 0, or negative with err. */
int analysis_phase_pairs(struct profile *const profiles[2], const char *const names[2], size_t npoints,
                         struct analysis_phase_difference *d, struct error *err);

#endif
