/* SPDX-License-Identifier: Apache-2.0 */
/* pirate-profile.h - what `cachegram pirate` measured, for the report; and how many references a run makes.
 */
#ifndef CACHEGRAM_CLI_PIRATE_PROFILE_H
#define CACHEGRAM_CLI_PIRATE_PROFILE_H

#include "base/error.h"
#include "pirate/pirating.h"
#include "pirate/saved.h"
#include "report/pirate.h"

/* As pirate_profile_load, of a result that could not be kept; the rows are the report's from then on. */
void pirate_profile_unsaved(struct pirating_result *result, const struct pirating_options *options,
                            struct analysis_pirate *r);
/* What a profile holds of it, and the modelled curve beside it, whose points the caller frees; curve->n is 0
 * where the profile has none. */
int pirate_profile_load(const char *path, struct analysis_pirate *r, struct analysis_curve *curve,
                        struct error *err);
/* Runs the command once more, silently, in full mode; counts. */
int pirate_count_references(char **argv, double *references, struct error *err);

#endif
