/* SPDX-License-Identifier: Apache-2.0 */
/* places.h - data with one kind of costly references, and the code that makes them: sharing between
 * threads, conflicts within sets of a cache. */
#ifndef CACHEGRAM_ANALYSIS_PLACES_H
#define CACHEGRAM_ANALYSIS_PLACES_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

#define PLACES_MOST 3u
#define PLACES_FIELDS 3u
#define PLACES_NAME 4096 /* bytes: arguments of templates are long */

struct analysis_place {
    double share;                            /* of the references */
    char object[PLACES_NAME];                /* name of the data; "": not known, or it has none */
    int stack;                               /* the data is one */
    char function[PLACES_NAME], module[512]; /* that makes most of these references; "": not known */
    char file[512];                          /* "": not known, or they are in many lines */
    uint32_t line;
    char inlined[PLACES_NAME]; /* the line's function, if it is another one; else "" */
    unsigned line_bytes;
    /* False sharing, of data whose structure is known: members with most of these references, most first. */
    size_t nfields;
    char fields[PLACES_FIELDS][128];
};

/* All return the number of places: only those whose share is significant, largest first. name: the profile's
 * file, for messages; wrappers: as in struct analysis_hotspots_question. */
/* Of references to lines in which another thread writes other bytes meanwhile. */
size_t analysis_shared(struct profile *p, const char *name, const char *wrappers,
                       struct analysis_place places[PLACES_MOST]);
/* Of references to lines in which another thread wrote the same bytes since (true sharing). */
size_t analysis_shared_truly(struct profile *p, const char *name, const char *wrappers,
                             struct analysis_place places[PLACES_MOST]);
/* Of references that miss in a cache of 64 sets of 8 lines, although one without sets would hold the line. */
size_t analysis_conflicts(struct profile *p, const char *name, const char *wrappers,
                          struct analysis_place places[PLACES_MOST]);

#endif
