/* SPDX-License-Identifier: Apache-2.0 */
/* levels.h - what misses cost in the caches of a machine: option --machine of hotspots and annotate. */
#ifndef CACHEGRAM_CLI_LEVELS_H
#define CACHEGRAM_CLI_LEVELS_H

#include "analysis/hotspots-sizes.h"
#include "base/error.h"
#include "machine/machine.h"

struct cli_levels {
    struct analysis_level list[MACHINE_LEVELS]; /* first level first */
    size_t n;
};

/* The caches of a machine, by its name or the file that describes it, and the cycles that a miss in each
 * costs. 0, or negative with err. */
int cli_find_levels(const char *name, struct cli_levels *levels, struct error *err);

#endif
