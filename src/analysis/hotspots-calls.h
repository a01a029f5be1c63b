/* SPDX-License-Identifier: Apache-2.0 */
/* hotspots-calls.h - by which calls the code of each row was reached when it missed. */
#ifndef CACHEGRAM_ANALYSIS_HOTSPOTS_CALLS_H
#define CACHEGRAM_ANALYSIS_HOTSPOTS_CALLS_H

#include "analysis/hotspots-groups.h"

/*
 * Fills h->calls, and its part of each of the first most_rows (0: all) of h->rows, from the sampled touches
 * that miss in a cache of so many lines, or are first touches in their burst. All bursts, threads and
 * processes count alike. Rows with objects get the calls of their code with any object. A profile without
 * call paths, or whose rows are not code, gets no calls. 0, or negative with err.
 */
int analysis_calls_find(struct profile *p, struct analysis_hotspots *h, size_t most_rows,
                        const struct analysis_groups *groups, double lines, struct error *err);

#endif
