/* SPDX-License-Identifier: Apache-2.0 */
/* diff-parts.h - what `cachegram diff` and its page compare besides the curves. */
#ifndef CACHEGRAM_CLI_DIFF_PARTS_H
#define CACHEGRAM_CLI_DIFF_PARTS_H

#include "analysis/difference.h"
#include "profile/profile.h"
#include "report/difference.h"

/* Misses by function or data object in a cache of one size. */
struct diff_table {
    struct analysis_hotspots hotspots[2];
    struct analysis_function_changes changes; /* with names of the hotspots */
};
/* separate: for each thread. 0, or negative with err filled and nothing to clear: a profile holds no code,
 * for instance. */
int diff_table_load(struct profile *const profiles[2], const char *const names[2], double size_bytes,
                    int separate, int objects, struct diff_table *table, struct error *err);
void diff_table_clear(struct diff_table *table);

/* Prints the curves and what functions, data objects and phases changed, as text or JSON. all: with all rows
 * of the curves. 0, or negative with err filled. */
int diff_parts_print(const struct report_curves *curves, int all, enum report_format format,
                     struct error *err);
/* Names of the programs and machines. *programs: all 0 before. */
void diff_programs_load(struct profile *const profiles[2], struct report_difference_programs *programs);

#endif
