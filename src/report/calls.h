/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - the call paths of a row of hotspots. */
#ifndef CACHEGRAM_REPORT_CALLS_H
#define CACHEGRAM_REPORT_CALLS_H

#include "analysis/hotspots.h"
#include "report/report.h"

/* Calls are not shown of rows with a smaller share of all misses: too few samples. */
#define REPORT_CALLS_LEAST_ROW 0.01

/* Whether it is from main, or what is inlined there: what has called main is of no interest. */
int report_call_is_main(const struct analysis_hotspots *h, const struct analysis_call *call);
/* "f a.c:7", and what that was inlined into: " < g b.c:9". */
void report_call_text(const struct analysis_hotspots *h, const struct analysis_call *call, char *text,
                      size_t size);

/* As an indented tree up to main, without calls that make up less than 5% of the row's misses; nothing for a
 * row below REPORT_CALLS_LEAST_ROW. */
void report_calls_text(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row);
/* As a JSON array of objects, each with its callers. */
void report_calls_json(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row);

/* The part of a row's misses whose path is known up to one call. */
struct report_call_path {
    const struct analysis_call *calls[ANALYSIS_MOST_CALLS]; /* innermost first */
    size_t n;
    double share; /* of the row's misses, 0 to 1 */
};
/* The next path of a row after *next, which is 0 at first; all paths together have share 1. 0: there is none.
 * A row without calls has one path, of no calls. */
int report_next_path(const struct analysis_hotspots *h, const struct analysis_hotspot *row, size_t *next,
                     struct report_call_path *path);
/* Its calls, innermost first, with the functions that were inlined: "f a.c:7 < g b.c:9". Empty if it has
 * none.
 */
void report_path_text(const struct analysis_hotspots *h, const struct report_call_path *path, char *text,
                      size_t size);

#endif
