/* SPDX-License-Identifier: Apache-2.0 */
/*
 * difference.h - what changed between two profiles of a program: miss ratios by cache size, and misses by
 * function or data object. Both profiles are taken as independent; a change is significant if its 95%
 * interval, from the intervals of the two values, does not contain 0.
 */
#ifndef CACHEGRAM_ANALYSIS_DIFFERENCE_H
#define CACHEGRAM_ANALYSIS_DIFFERENCE_H

#include <stddef.h>

#include "analysis/curve.h"
#include "analysis/hotspots.h"
#include "base/error.h"

struct analysis_change {
    double before, after;    /* NaN: unknown */
    double delta, low, high; /* after - before and its interval; NaN: unknown */
    int significant;
};

/* The change between two values with intervals; of points that are unknown, low and high are bounds. */
struct analysis_change analysis_change_of(const struct curve_point *before, const struct curve_point *after);

/* Misses of a function, or of a data object, per 1000 references of the whole program. */
struct analysis_function_change {
    const char *function;                /* "": the module's code has no names; of an object: its name */
    const char *source;                  /* its file, if the module has others of that name; NULL */
    const char *module;                  /* path; "": unknown */
    const struct profile_object *object; /* NULL: of a function, or not known */
    struct analysis_change misses;
};

struct analysis_function_changes {
    struct analysis_change total;
    struct analysis_function_change *rows; /* largest changes first; the names are those of the hotspots */
    size_t n;
};

/*
 * Pairs the functions of two profiles (ANALYSIS_BY_FUNCTION), or their data objects (ANALYSIS_BY_NOTHING), by
 * their names and the base names of their modules; modules that only one profile has count as one that was
 * renamed. Blocks for which there is no such pair are paired without the lines of their allocations, which
 * move when the source is changed. What one of the profiles lacks has no misses there. curves: both curves'
 * points at that size; their intervals count for the total, and for rows with too few misses for one of their
 * own. 0, or -ENOMEM with err; the caller frees rows.
 */
int analysis_function_changes(const struct analysis_hotspots *before, const struct analysis_hotspots *after,
                              const struct curve_point curves[2], struct analysis_function_changes *changes,
                              struct error *err);

#endif
