/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots.h - attributes the misses of a cache of a given size to functions, source lines, modules,
 * instructions, and data objects. From a profile of full mode the result is exact, from bursts an estimate
 * with intervals (model/shares.h).
 */
#ifndef CACHEGRAM_ANALYSIS_HOTSPOTS_H
#define CACHEGRAM_ANALYSIS_HOTSPOTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/shares.h"
#include "profile/objects.h"
#include "profile/profile.h"
#include "profile/sites.h"

/* What code is distinguished by. */
enum analysis_by {
    ANALYSIS_BY_FUNCTION,
    ANALYSIS_BY_LINE,
    ANALYSIS_BY_MODULE,
    ANALYSIS_BY_INSN,
    ANALYSIS_BY_NOTHING /* only with objects */
};

struct analysis_hotspots_question {
    double size_bytes;
    enum analysis_by by;
    int objects; /* nonzero: also by data object */
    /* Functions that allocate for their callers, besides the usual ones: names or patterns (fnmatch), with
     * commas between; NULL: none. */
    const char *wrappers;
    uint32_t tid;     /* only this thread; 0: all */
    const char *comm; /* only processes whose executable has that base name; NULL: all */
};

/* A function, line, module or instruction, a data object, or a pair of these. Pointers are into struct
 * analysis_hotspots. */
struct analysis_hotspot {
    const struct profile_image *image; /* NULL: by ANALYSIS_BY_NOTHING */
    const struct profile_frame *frame; /* innermost one; NULL: the code has no names */
    const struct profile_frame *outer; /* the compiled function that contains it; NULL likewise */
    uint64_t offset; /* of an instruction, by ANALYSIS_BY_INSN; PROFILE_SITE_REST: of several */
    int rest;        /* all sites of the image that are not stored separately */
    const struct profile_object *object; /* with objects; NULL: not known */
    struct shares_result shares;
};

struct analysis_hotspots {
    const char *profile; /* file name; the caller's */
    unsigned line_bytes;
    double size_bytes;
    enum analysis_by by;
    int objects;           /* rows are also by data object; references are estimates then, in full mode too */
    int full;              /* exact */
    double missed_percent; /* see struct analysis_curve */
    size_t bursts;         /* from which the numbers are calculated; 0 in full mode */
    size_t other_bursts;   /* selected ones without counts of sites */
    double far; /* probability of a miss where bursts do not decide; NaN: unknown, 0.5 is assumed */
    struct shares_result total;
    struct analysis_hotspot *rows; /* by share of misses, largest first */
    size_t n;
    /* referenced by the rows */
    struct profile_image *images;
    size_t nimages;
    struct profile_frame *frames;
    size_t nframes;
    struct profile_object *data; /* names of blocks are those to be shown */
    size_t ndata;
    int own_malloc; /* with objects: a program has a malloc of its own, whose blocks are not known */
    uint32_t *same; /* of each of data the first one that is the same in a table */
};

/* 0, or negative with err: -ENODATA if the profile has no code, or none that was selected. */
int analysis_hotspots(struct profile *p, const char *name, const struct analysis_hotspots_question *question,
                      struct analysis_hotspots *h, struct error *err);
void analysis_hotspots_clear(struct analysis_hotspots *h);
/* The frame into which this one is inlined; NULL: none. */
const struct profile_frame *analysis_caller(const struct analysis_hotspots *h,
                                            const struct profile_frame *frame);

#endif
