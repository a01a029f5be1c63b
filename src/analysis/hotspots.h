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

#include "analysis/extent.h"
#include "base/error.h"
#include "model/curve.h"
#include "model/shares.h"
#include "profile/fields.h"
#include "profile/objects.h"
#include "profile/profile.h"
#include "profile/sites.h"

/* How many differences of addresses must have been seen for a stride to be reported. */
#define ANALYSIS_LEAST_STEPS 64
/* How many lines must have been seen from their fetch to their eviction before the bytes used of a line are
 * told: where these are evenly distributed from 0 to 64, the mean of 16 lines has a standard error of 5. */
#define ANALYSIS_LEAST_WHOLE 16
/* Fewest samples for the share of cold misses. */
#define ANALYSIS_COLD_LEAST 8

/* What code is distinguished by. */
enum analysis_by {
    ANALYSIS_BY_FUNCTION,
    ANALYSIS_BY_LINE,
    ANALYSIS_BY_MODULE,
    ANALYSIS_BY_INSN,
    ANALYSIS_BY_NOTHING /* only with objects */
};

struct analysis_recorded; /* analysis/recorded.h */

struct analysis_hotspots_question {
    double size_bytes;
    enum analysis_by by;
    int objects; /* nonzero: also by data object */
    int fields;  /* with objects: also by field of structures */
    /* Functions that allocate for their callers, besides the usual ones: names or patterns (fnmatch), with
     * commas between; NULL: none. */
    const char *wrappers;
    /* nonzero: each thread has a cache of its own; else those of a process share one. Call paths and
     * evictions are always of misses in a shared one. */
    int separate;
    uint32_t tid;     /* only this thread; 0: all */
    uint32_t phase;   /* only bursts in windows of this phase; 0: the whole run */
    const char *comm; /* only processes whose executable has that base name; NULL: all */
    int causes;       /* nonzero: also the causes of misses */
    int calls;        /* nonzero: also by which calls the code of a row was reached, if rows are code */
    size_t call_rows; /* with calls: only those of the first rows; 0: of all */
};

#define ANALYSIS_MOST_CALLS 128u /* of a path */

/* A call on the way to a row's code. The nodes of a row are a tree in preorder: what follows a node with a
 * larger depth are the callers of the function that contains its call, by share, largest first. */
struct analysis_call {
    const struct profile_image *image; /* NULL: not known */
    uint64_t offset;                   /* in the file */
    const struct profile_frame *frame; /* innermost one; NULL: the code has no names */
    unsigned depth;                    /* 0: calls the row's code; below ANALYSIS_MOST_CALLS */
    double share;                      /* of the row's misses, 0 to 1 */
};

/* A function, line, module or instruction, a data object, or a pair of these. Pointers are into struct
 * analysis_hotspots. */
struct analysis_hotspot {
    const struct profile_image *image; /* NULL: by ANALYSIS_BY_NOTHING */
    const struct profile_frame *frame; /* innermost one; NULL: the code has no names */
    const struct profile_frame *outer; /* the compiled function that contains it; NULL likewise */
    const char *source; /* by ANALYSIS_BY_FUNCTION: its file, if the image has others of that name; NULL */
    uint64_t offset;    /* of an instruction, by ANALYSIS_BY_INSN; PROFILE_SITE_REST: of several */
    int rest;           /* all sites of the image that are not stored separately */
    const struct profile_object *object; /* with objects; NULL: not known */
    const struct profile_field *field; /* with fields; NULL: not known, or the object has none. With an empty
                                          name: several, by the same instructions */
    size_t number;                     /* of the row before sorting */
    double cold;       /* with causes: part of its misses on lines that were never touched before, 0 to 1 */
    double cold_known; /* likewise: part that certainly was: first touches that full mode recorded */
    double
        cold_guessed; /* likewise: part of its misses of which that is estimated, by the program's others */
    /* From pieces of the run, whatever the size of the cache, and of all processes and threads: */
    double used_share; /* of the bytes of a line, those that are touched before a small cache evicts it; NaN:
                          not known */
    int64_t
        stride; /* between successive addresses of the instruction that fetches most of the lines; 0: none */
    double conflicts;    /* part of the run's references that miss in 64 sets of 8 lines, but not in as many
                            lines without sets; NaN: not known */
    size_t call, ncalls; /* its nodes in struct analysis_hotspots.calls */
    double stall; /* its part of the cycles that misses cost (hotspots-sizes.h), 0 to 1; NaN: not asked for */
    struct shares_result shares;
};

/* Sampled reuses by one row of lines, with one of the lines that were touched in between. */
struct analysis_evictions {
    size_t victim, evictor; /* rows */
    double reuses;          /* represented ones at distances that miss */
};

/* The call that allocates a block. */
struct analysis_allocation {
    size_t name_length; /* of the object's name without what tells it from other calls of its line */
    uint32_t column;    /* 0: not known */
    uint64_t offset;    /* in its module */
};

struct analysis_hotspots {
    const char *profile; /* file name; the caller's */
    unsigned line_bytes;
    double size_bytes;
    enum analysis_by by;
    int objects;         /* rows are also by data object; references are estimates then, in full mode too */
    int fields;          /* likewise */
    int full;            /* exact */
    int separate;        /* a cache for each thread */
    size_t busy_threads; /* analysis_busy_threads */
    uint32_t phase;      /* 0: the whole run */
    int part_left_out;   /* a part of the phase was recorded completely: its code is not counted by phase */
    enum analysis_extent extent; /* of full mode */
    double missed_percent;       /* see struct analysis_curve */
    size_t bursts;               /* from which the numbers are calculated; 0 in full mode */
    double exact_references;     /* recorded completely before the first burst, and part of the numbers */
    double unseen_strings; /* share of the misses by string instructions that no burst has, nor any row */
    size_t other_bursts;   /* selected ones without counts of sites */
    double far;      /* probability of a miss where bursts do not decide; NaN: unknown, 0.5 is assumed */
    int no_estimate; /* set by analysis_hotspots_widen: the curve has none at this size */
    struct shares_result total;
    struct analysis_hotspot *rows; /* by share of misses, largest first */
    size_t n;
    struct analysis_evictions *evictions; /* with causes: in no order */
    size_t nevictions;
    int with_calls;              /* they were asked for */
    struct analysis_call *calls; /* of all rows; none if the profile holds no call paths */
    size_t ncalls;
    double
        cold_samples; /* effective number of samples from which their part was estimated; infinite: exact */
    double sample_reuses; /* fewest that a sampled reuse represents */
    /* referenced by the rows; of `recorded` */
    struct analysis_recorded *recorded;
    struct profile_image *images;
    size_t nimages;
    struct profile_frame *frames;
    size_t nframes;
    struct profile_object *data; /* names of blocks are those to be shown */
    size_t ndata;
    struct profile_field *parts; /* fields */
    size_t nparts;
    int own_malloc; /* with objects: a program has a malloc of its own, whose blocks are not known */
    uint32_t *same; /* of each of data the first one that is the same in a table */
    struct analysis_allocation *allocations; /* of each of data; those of blocks are set */
};

/* The first table of a profile that is open takes longest: most of what it reads is kept with the profile.
 * 0, or negative with err: -ENODATA if the profile has no code, or none that was selected. */
int analysis_hotspots(struct profile *p, const char *name, const struct analysis_hotspots_question *question,
                      struct analysis_hotspots *h, struct error *err);
void analysis_hotspots_clear(struct analysis_hotspots *h);
/* Widens the interval of an estimated miss ratio to that of the curve, which takes more into account: errors
 * of the clock, and how little a few bursts say. */
void analysis_widen_ratio(struct shares_result *total, const struct curve_point *curve);
/* The curve's point at the size of h; its interval is 0 to 1 if there is none. */
struct curve_point analysis_hotspots_point(struct profile *p, const struct analysis_hotspots *h);
/* Likewise with the curve, where the table is of the whole run and estimated: then every command that prints
 * the miss ratio has the same interval, and none has an estimate where the curve has none. */
void analysis_hotspots_widen(struct profile *p, const struct analysis_hotspots_question *question,
                             struct analysis_hotspots *h);
/* What the profile has under that id; NULL: the id is 0, or the profile is damaged. Of objects that a table
 * does not distinguish, one represents all; objects that were never touched are not there. */
const struct profile_image *analysis_image_of(const struct analysis_hotspots *h, uint64_t id);
const struct profile_frame *analysis_frame_of(const struct analysis_hotspots *h, uint64_t id);
const struct profile_object *analysis_object_of(const struct analysis_hotspots *h, uint64_t id);
/* What it is, in a sentence, such as "blocks of main"; cut to the size. "": it has no name that says more
 * than which code touches it. object: NULL: not known. */
void analysis_object_text(const struct profile_object *object, char *text, size_t size);
/* Whether that is a function's name as a user may give it, or a pattern of fnmatch for such names: "f" is
 * "f(int)", "f<int>", "ns::f" and "long C.f(int)", too, but not a parameter or an argument of another one. */
int analysis_function_matches(const char *asked, const char *function);
/* The frame into which this one is inlined; NULL: none. */
const struct profile_frame *analysis_caller(const struct analysis_hotspots *h,
                                            const struct profile_frame *frame);
/* Whether the source is the user's, and not that of an installed library, such as std::vector. */
int analysis_is_own(const struct profile_frame *frame);
/* The innermost frame, from this one outwards, whose source is not that of an installed library, such as
 * std::vector: the line that the user has written. If there is none, or for NULL, the frame itself. */
const struct profile_frame *analysis_own_frame(const struct analysis_hotspots *h,
                                               const struct profile_frame *frame);

#endif
