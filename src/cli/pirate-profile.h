/* SPDX-License-Identifier: Apache-2.0 */
/* pirate-profile.h - what `cachegram pirate` measured, kept in a profile; and how many references a run
 * makes. */
#ifndef CACHEGRAM_CLI_PIRATE_PROFILE_H
#define CACHEGRAM_CLI_PIRATE_PROFILE_H

#include "base/error.h"
#include "pirate/pirating.h"
#include "report/pirate.h"

/* The command line to be measured, as profiles keep it: options->argv, or that of the process. */
#define PIRATE_COMMAND 4096
void pirate_command(const struct pirating_options *options, char text[PIRATE_COMMAND]);
/*
 * Adds the result to the profile at path if it is of the same command, in place of an earlier result by the
 * same way; else makes a new one (the old one moves to PATH.old).
 */
int pirate_profile_save(const char *path, const char *command, const struct pirating_options *options,
                        const struct pirating_result *result, struct error *err);
/* Could it be kept at path? To be asked before much time goes into a measurement. -errno with a sentence. */
int pirate_profile_possible(const char *path, struct error *err);
/* As pirate_profile_load, of a result that could not be kept; the rows are the report's from then on. */
void pirate_profile_unsaved(struct pirating_result *result, const struct pirating_options *options,
                            struct analysis_pirate *r);
/* And the modelled curve beside it, of *n points that the caller frees; curve->n is 0 where the profile has
 * none. */
int pirate_profile_load(const char *path, struct analysis_pirate *r, struct analysis_curve *curve,
                        struct error *err);
/* Runs the command once more, silently, in full mode; counts. */
int pirate_count_references(char **argv, double *references, struct error *err);

#endif
