/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.h - output of `cachegram timeline` and `cachegram phases`: miss ratio over time, and of phases. */
#ifndef CACHEGRAM_REPORT_TIMELINE_H
#define CACHEGRAM_REPORT_TIMELINE_H

#include "analysis/timeline.h"
#include "report/report.h"

/* Windows by size in csv and json; in text a heat map and the phases. */
void report_timeline(FILE *out, const struct analysis_timeline *timeline, const struct analysis_grid *grid,
                     enum report_format format, const struct report_style *style);
void report_phases(FILE *out, const struct analysis_timeline *timeline, enum report_format format,
                   const struct report_style *style);

/*
 * Draws the grid: cache size upwards, time to the right, the miss ratio as colour (256 colours) or shade, and
 * the phases as a ribbon above. Shades are ASCII characters where the locale is not UTF-8.
 */
void report_heatmap(FILE *out, const struct analysis_timeline *timeline, const struct analysis_grid *grid,
                    const struct report_style *style);
/* For below a heat map whose columns have equal work: of the phases that are much narrower there than their
 * time is long, the one with most of it, if any. */
void report_slow_phase(FILE *out, const struct analysis_timeline *timeline);
/* Columns that a heat map has in that style. */
size_t report_heatmap_columns(const struct report_style *style);

#endif
