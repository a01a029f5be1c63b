/* SPDX-License-Identifier: Apache-2.0 */
/* difference-phases.h - the phases of a profile with intervals, to be compared with those of another one.
 * Phases of two runs have no common numbers: nothing says which of one run is which of the other. */
#ifndef CACHEGRAM_ANALYSIS_DIFFERENCE_PHASES_H
#define CACHEGRAM_ANALYSIS_DIFFERENCE_PHASES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/curve.h"
#include "profile/profile.h"

struct analysis_phase_row {
    uint32_t phase; /* from 1 */
    size_t windows, bursts;
    double refs_share;          /* of the run's references */
    struct curve_point *points; /* at the sizes asked for; NaN: not enough samples */
};

struct analysis_phase_rows {
    struct analysis_phase_row *list; /* the one with most references first; at most `most` */
    size_t n;
    size_t left_out; /* phases with fewer references */
};

/* Of the profile `name`, at the sizes of points[npoints]. -ENODATA: it has no phases. The caller clears it.
 */
int analysis_phase_rows(struct profile *p, const char *name, const struct curve_point *points, size_t npoints,
                        size_t most, struct analysis_phase_rows *rows, struct error *err);
void analysis_phase_rows_clear(struct analysis_phase_rows *rows);

#endif
