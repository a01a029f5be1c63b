/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded.h - what tables of hotspots are made from: names, counts, and weights of bursts. It is loaded from
 * a profile once, and kept with it: only the first of several tables takes long.
 */
#ifndef CACHEGRAM_ANALYSIS_RECORDED_H
#define CACHEGRAM_ANALYSIS_RECORDED_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/burst-weights.h"
#include "analysis/hotspots-groups.h"
#include "analysis/hotspots.h"
#include "profile/paths.h"

/* Touches of an object by a site, in a row of counts. */
struct recorded_count {
    uint32_t site, object; /* ids */
    uint64_t what : 9;     /* SITE_COUNT_MORE, also for executions, and the others of profile/site-counts.h */
    uint64_t count : 55;
};

/* Counts of a burst and process: [first, first + n). */
struct recorded_counts {
    uint64_t burst, process;
    size_t first, n;
};

/* The rows of a table, as far as they are the same for any cache, phase and thread. */
struct recorded_rows {
    enum analysis_by by;
    int objects, fields;
    struct analysis_groups groups;
    struct analysis_hotspot *rows; /* without shares */
    size_t n;
    uint32_t *of_count; /* of each count: its row; of SITE_COUNT_MORE, its group; ANALYSIS_NO_GROUP: none */
};

struct analysis_recorded {
    unsigned users;
    char *name; /* of the profile */
    struct profile_image *images;
    size_t nimages;
    struct profile_frame *frames;
    size_t nframes;
    struct profile_site *sites;
    size_t nsites;
    struct recorded_counts *counts; /* by burst and process */
    size_t ncounts;
    struct recorded_count *list;
    size_t nlist;
    struct profile_line_use *uses;
    size_t nuses;
    struct profile_stride *strides;
    size_t nstrides;
    struct profile_stride *fetch_strides;
    size_t nfetch_strides;
    struct profile_conflict *conflicts;
    size_t nconflicts;
    /* With calls. */
    int has_paths;
    struct profile_path *paths; /* by id */
    size_t npaths;
    struct profile_site_path *site_paths;
    size_t nsite_paths;
    /* With objects. */
    int has_objects, own_malloc;
    char *wrappers; /* NULL: none */
    struct profile_object *data;
    size_t ndata;
    uint32_t *same;
    struct analysis_allocation *allocations;
    /* With fields. */
    struct profile_field *parts;
    size_t nparts;
    struct analysis_fields *fields; /* NULL: not loaded yet */
    struct recorded_rows **rows;    /* those of tables that were made */
    size_t nrows;
    struct analysis_sample *sample[2]; /* by h->separate; NULL: not needed yet */
    struct analysis_weights **weights;
    size_t nweights;
};

/* *r is that of the profile, loaded if need be; wrappers as in the question. The caller releases it. 0, or
 * negative with err. */
int analysis_recorded_get(struct profile *p, const char *name, const char *wrappers,
                          struct analysis_recorded **r, struct error *err);
void analysis_recorded_release(struct analysis_recorded *r); /* NULL is allowed */
/* Lends images and frames to h, and what of objects and fields h asks for. 0, or negative with err. */
int analysis_recorded_lend(struct analysis_recorded *r, struct profile *p, struct analysis_hotspots *h,
                           struct error *err);
/* *rows are those of h, which has got what is lent to it; r keeps them. 0, or negative with err. */
int analysis_recorded_rows(struct analysis_recorded *r, const struct analysis_hotspots *h,
                           enum analysis_by by, int objects, const struct recorded_rows **rows,
                           struct error *err);
/* Loads the call paths, if they are not loaded. 0, or negative with err. */
int analysis_recorded_paths(struct analysis_recorded *r, struct profile *p, struct error *err);
void analysis_recorded_rows_free(struct recorded_rows *rows); /* NULL is allowed */
/* Of a profile of bursts, for h's size and phase, and what is selected. r keeps them. 0, or negative with
 * err. */
int analysis_recorded_weights(struct analysis_recorded *r, struct profile *p,
                              const struct analysis_hotspots *h, const struct analysis_selection *selection,
                              const struct analysis_weights **weights, struct error *err);

#endif
