/* SPDX-License-Identifier: Apache-2.0 */
/* saved.h - stores measurements in a profile, next to a recording of the same command. */
#ifndef CACHEGRAM_PIRATE_SAVED_H
#define CACHEGRAM_PIRATE_SAVED_H

#include "base/error.h"
#include "pirate/pirating.h"

/* The measured command line as profiles store it: options->argv, or that of the process. */
#define PIRATE_COMMAND 4096
void pirate_command(const struct pirating_options *options, char text[PIRATE_COMMAND]);
/*
 * Adds the result to the profile at path if it is of the same command, replacing an earlier result of the
 * same method; otherwise creates a new one (an existing file moves to PATH.old).
 */
int pirate_profile_save(const char *path, const char *command, const struct pirating_options *options,
                        const struct pirating_result *result, struct error *err);
/* Can the result be saved at path? To be called before a long measurement. -errno with err filled. */
int pirate_profile_possible(const char *path, struct error *err);

#endif
