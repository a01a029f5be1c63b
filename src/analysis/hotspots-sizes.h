/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots-sizes.h - the rows of hotspots.h in caches of several sizes: the miss-ratio curve of some of them,
 * and what their misses cost in a hierarchy of caches.
 */
#ifndef CACHEGRAM_ANALYSIS_HOTSPOTS_SIZES_H
#define CACHEGRAM_ANALYSIS_HOTSPOTS_SIZES_H

#include "analysis/hotspots.h"
#include "model/curve.h"

/* Nonzero: the row belongs to what was asked for. */
typedef int analysis_selects(void *ctx, const struct analysis_hotspots *h,
                             const struct analysis_hotspot *row);

/*
 * The miss ratio of the rows that are selected, taken together: fills miss_ratio, low and high of points[n]
 * for their sizes, and *recorded with the references that were recorded of them. question: its size is not
 * used. NaN: of sizes below OCTAVES_LEAST lines, and low and high where samples are too few for an interval.
 * 0, or negative with err: -ENODATA if no row is selected at any size.
 */
int analysis_hotspots_curve(struct profile *p, const char *name,
                            const struct analysis_hotspots_question *question, analysis_selects *selects,
                            void *ctx, struct curve_point *points, size_t n, uint64_t *recorded,
                            struct error *err);

/* A level of a hierarchy of caches. */
struct analysis_level {
    double size_bytes;
    double cycles; /* that a miss costs more than a hit */
};

/*
 * Sets `stall` of h's rows, which are those of the question: their shares of the cycles that the misses of
 * all levels cost. The cycles of a miss are assumed to be the same for all code: how many misses overlap is
 * not known. 0, or negative with err.
 */
int analysis_hotspots_stall(struct profile *p, const struct analysis_hotspots_question *question,
                            const struct analysis_level *levels, size_t n, struct analysis_hotspots *h,
                            struct error *err);

#endif
