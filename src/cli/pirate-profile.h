/* SPDX-License-Identifier: Apache-2.0 */
/* pirate-profile.h - results of `cachegram pirate` for the report, and the number of references of a run. */
#ifndef CACHEGRAM_CLI_PIRATE_PROFILE_H
#define CACHEGRAM_CLI_PIRATE_PROFILE_H

#include "base/error.h"
#include "pirate/pirating.h"
#include "pirate/saved.h"
#include "report/pirate.h"

/* As pirate_profile_load, for a result that could not be saved; the rows then belong to the report. */
void pirate_profile_unsaved(struct pirating_result *result, const struct pirating_options *options,
                            struct analysis_pirate *r);
/* Loads the results in a profile and the modelled curve next to them, whose points the caller frees; curve->n
 * is 0 if the profile has none. */
int pirate_profile_load(const char *path, struct analysis_pirate *r, struct analysis_curve *curve,
                        struct error *err);
/* Runs the command once more, without output, in full mode; counts its references. -EINTR, err filled, if it
 * does not end with the expected status. */
int pirate_count_references(char **argv, int expected, double *references, struct error *err);

#endif
