/* SPDX-License-Identifier: Apache-2.0 */
/* naming.h - what name.c, frames.c and describe.c share: the rows of sites and frames while a profile gets
 * its names.
 */
#ifndef CACHEGRAM_SYMBOLS_NAMING_H
#define CACHEGRAM_SYMBOLS_NAMING_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "profile/site-counts.h"
#include "profile/sites.h"
#include "symbols/code.h"
#include "symbols/files.h"
#include "symbols/tally.h"

/* In struct naming.misses, what certainly brings a line into the cache. */
#define NAMING_MISSED ((uint32_t)SITE_COUNT_OBJECT)

/* A frame that has a row; open addressing. */
struct known_frame {
    char *function, *file;
    uint32_t line, column, guessed, id; /* 0: empty */
    uint64_t caller;
};

struct naming {
    struct profile *profile;
    const struct symbols_code *code;
    struct site_map *map;
    struct symbols_files files;
    struct error *err;
    double *references, *far; /* of each site of the code, estimated for the run */
    double *weights;          /* of bursts, by id: references of the run for each one recorded */
    uint64_t nweights;
    uint64_t *order; /* sites by references, most first */
    uint32_t *ids;   /* of each site: its row's; 0: made no references */
    /* of each row, from 1 */
    uint32_t nrows;
    uint32_t *image;  /* index */
    uint64_t *offset; /* or PROFILE_SITE_REST */
    uint32_t *made;   /* as of a site */
    uint64_t *row_references, *row_firsts;
    struct tally counts; /* by row */
    struct tally misses; /* by row, those that may bring a line into a cache of SYMBOLS_USE_LINES */
    uint64_t *object_references, *object_firsts; /* of each object; [0]: of none */
    char *object_used;                           /* likewise: something was counted */
    char *path_used;                             /* of each path, likewise */
    struct known_frame *frames;
    size_t nframes, frames_capacity;
    /* of the row that is read */
    uint64_t process;
    double weight;
    int exact;           /* of a part of the run in which every reference was recorded */
    int second;          /* pass */
    struct split *split; /* NULL: no code was replaced */
    struct profile_hit *hits;
    size_t nhits;
};

/* How exactly a place is named. */
enum naming_detail {
    NAMING_FUNCTION = 0, /* the compiled function only */
    NAMING_LINES,
    NAMING_COLUMNS, /* as well: tells the calls of one line apart */
};
/* The frames at an offset of the file: the rows of the innermost and the outermost one; 0: none. made: as of
 * a site. 0, or negative with n->err. */
int naming_place(struct naming *n, struct symbols_image *image, uint32_t made, uint64_t offset,
                 enum naming_detail detail, uint64_t *inner, uint64_t *outer);
/*
 * Where code of a JIT compiler has replaced other code: gives what both did sites of their own. Changes the
 * profile's counts and blocks, and n->code. Before n->map is loaded. 0, or negative with n->err.
 */
int naming_split(struct naming *n);
/* After references of sites were counted: what is not known by time belongs to the code that made most
 * references at its place. */
void naming_settle(struct naming *n);
/* After rows have numbers: that of a site which naming_settle has found to be the same as another one. */
void naming_settle_rows(struct naming *n);
void naming_split_clear(struct naming *n);
/* Stores by which paths rows were reached, but not yet the paths. Likewise. */
int naming_site_paths(struct naming *n);
/* Stores the paths through that image, by number; number nimages: those of which no image is known. lines:
 * as in symbols_image_frames. Likewise. */
int naming_paths(struct naming *n, struct symbols_image *image, uint32_t index, int lines);
/* Stores causes, and how lines are used. Likewise. */
int naming_describe(struct naming *n);

#endif
