/* SPDX-License-Identifier: Apache-2.0 */
/* findings.h - what a programmer should look at first: the one place with a large part of the misses, if
 * there is; false sharing between threads; conflicts within sets of a cache. */
#ifndef CACHEGRAM_ANALYSIS_FINDINGS_H
#define CACHEGRAM_ANALYSIS_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/places.h"
#include "profile/objects.h"
#include "profile/profile.h"

#define FINDINGS_MOST 2u
#define FINDINGS_NAME PLACES_NAME

#define PARTS_MOST 3u

/* What would help. */
enum analysis_remedy {
    ANALYSIS_REMEDY_BLOCK, /* reuse sooner: smaller pieces of work */
    /* New memory each time, or, if cold is not known, at least more than caches hold: reuse it, or process it
     * while the cache holds it. */
    ANALYSIS_REMEDY_STREAM,
    ANALYSIS_REMEDY_ORDER,  /* a large stride through partly used lines: walk in the order of memory */
    ANALYSIS_REMEDY_PACK,   /* partly used lines: place together what is used together */
    ANALYSIS_REMEDY_UNKNOWN /* lines are used well; whether they were touched before is not known */
};

struct analysis_finding {
    double size_bytes;
    unsigned level;          /* of the caches that are often about as large: 1 or 2 */
    int separate;            /* each thread has such a cache */
    double share, low, high; /* of all misses, with 95% interval */
    double miss_ratio;       /* of the program */
    char function[FINDINGS_NAME], module[512];
    char source[512]; /* the function's file, if the module has others of that name; else "" */
    char file[512];   /* the user's (analysis_own_frame); "": not known, or the misses are in many lines */
    uint32_t line;
    double line_share; /* part of these misses that the line has */
    /* The user's function that the line is in, or, where no line has most of them, the one with most, if the
     * compiler has put it into this one; "": it has not. inlined_share: the part of them. */
    char inlined[FINDINGS_NAME];
    double inlined_share;
    /* Where no line and no function has most of them: those of the user's functions that the compiler has put
     * into this one, with a quarter of them or more, by share. */
    char parts[PARTS_MOST][FINDINGS_NAME];
    double part_shares[PARTS_MOST];
    size_t nparts;
    /* The function with the call by which most of these misses were reached; "": not known, or there are
     * several. caller_share: the part of them. */
    char caller[FINDINGS_NAME], caller_file[512];
    uint32_t caller_line;
    double caller_share;
    int common; /* the function is in a library that is called from everywhere, as memcpy is */
    char object[FINDINGS_NAME]; /* name of the data that most of these misses are of; "": not known, or
                                   several */
    double object_share;        /* part of these misses that are of it */
    char other[FINDINGS_NAME]; /* the data that nearly as many are of, as of a copy's source and target, where
                                  these two have nearly all; "": there is none */
    double other_share;
    char field[512];    /* of its structures, such as "[].hot"; "": not known, none, or several */
    double field_share; /* likewise */
    double cold;        /* part of these misses on lines that were never touched before; NaN: not known */
    int forked;         /* a process's parent may have touched them before it forked */
    double gone_bytes;  /* a larger cache that leaves less than a tenth of these misses; 0: none is known */
    double kept_bytes; /* the largest cache that certainly still has most of these misses; 0: none is known */
    unsigned line_bytes;
    double used_bytes; /* of a line (if there is an object, of its lines), in the mean; NaN: not known */
    int64_t stride;    /* likewise; from one access to the next; 0: it varies, or is not known */
    int crossed;       /* the same code walks other data in the order of memory */
    enum analysis_remedy remedy;
};

#define SPREAD_MOST 3u

/* What is known of the misses in a cache where no function certainly has a large part of them. */
struct analysis_spread {
    double size_bytes;
    unsigned level;
    int separate;
    int exact;                  /* the shares are; else their intervals are not shown */
    int few;                    /* too few misses were seen: nothing below is known */
    char object[FINDINGS_NAME]; /* data that certainly has a large part of the misses; "": there is none */
    double object_share;        /* of all misses */
    unsigned line_bytes;
    double used_bytes; /* of a line of the object; NaN: not known */
    /* With most misses, or, where there is an object, most misses on it; only those whose share is known. */
    char functions[SPREAD_MOST][FINDINGS_NAME];
    double shares[SPREAD_MOST]; /* of all misses */
    size_t n;
};

/* Only what is significant. */
struct analysis_findings {
    struct analysis_finding misses[FINDINGS_MOST]; /* at some common sizes, smallest first */
    size_t nmisses;
    struct analysis_spread spread[FINDINGS_MOST]; /* at the others of these sizes */
    size_t nspread;
    struct analysis_place shared[PLACES_MOST], truly[PLACES_MOST], conflicts[PLACES_MOST];
    size_t nshared, ntruly, nconflicts; /* shared falsely, and truly */
};
/* wrappers, separate: as in struct analysis_hotspots_question. */
void analysis_findings(struct profile *p, const char *name, const char *wrappers, int separate,
                       struct analysis_findings *findings);

#endif
