/* SPDX-License-Identifier: Apache-2.0 */
/* saved.h - what was measured, kept in a profile beside what was recorded of the same command. */
#ifndef CACHEGRAM_PIRATE_SAVED_H
#define CACHEGRAM_PIRATE_SAVED_H

#include "base/error.h"
#include "pirate/pirating.h"

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

#endif
