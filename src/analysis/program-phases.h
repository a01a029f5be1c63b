/* SPDX-License-Identifier: Apache-2.0 */
/* program-phases.h - the curves of a profile's phases, for models of shared caches. */
#ifndef CACHEGRAM_ANALYSIS_PROGRAM_PHASES_H
#define CACHEGRAM_ANALYSIS_PROGRAM_PHASES_H

#include <stddef.h>

#include "analysis/program.h"
#include "profile/profile.h"

/*
 * Sets program->phases and what belongs to it, from the profile's windows; points[n]: the curve of the whole
 * run, with which the mean of the phases is made to agree. A profile without phases gets 0 of them: that is
 * no error. 0 or -ENOMEM.
 */
int analysis_program_phases(struct profile *p, const struct curve_point *points, size_t n,
                            struct analysis_program *program, struct error *err);

#endif
