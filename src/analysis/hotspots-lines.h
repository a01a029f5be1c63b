/* SPDX-License-Identifier: Apache-2.0 */
/* hotspots-lines.h - how the rows of a table of hotspots use lines. Used by hotspots.c only. */
#ifndef CACHEGRAM_ANALYSIS_HOTSPOTS_LINES_H
#define CACHEGRAM_ANALYSIS_HOTSPOTS_LINES_H

#include "analysis/hotspots-groups.h"

/* Fills used_share, stride and conflicts of the rows, which are not sorted yet. 0, or negative with err. */
int analysis_lines_read(struct profile *p, struct analysis_hotspots *h, const struct analysis_groups *groups,
                        struct error *err);

/* Whether enough is known of so many lines: the use of `known` of them, from `whole` that were looked at. */
int analysis_is_use_known(double lines, double known, double whole);

#endif
