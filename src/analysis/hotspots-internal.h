/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots-internal.h - a table of hotspots while it is made, for the files that make it.
 *
 * From the lowest to the highest; each uses those before it:
 *
 *   hotspots-counts.c  adds up what was counted in bursts, by rows
 *   hotspots-far.c     the misses that bursts do not decide
 *   hotspots.c         the rows, and the order of all of it
 */
#ifndef CACHEGRAM_ANALYSIS_HOTSPOTS_INTERNAL_H
#define CACHEGRAM_ANALYSIS_HOTSPOTS_INTERNAL_H

#include "analysis/burst-weights.h"
#include "analysis/hotspots-causes.h"
#include "analysis/hotspots-groups.h"
#include "analysis/recorded.h"
#include "analysis/selection.h"
#include "model/far-shares.h"
#include "base/octaves.h"
#include "model/shares.h"

/* State while counts are read. */
struct reading {
    const struct analysis_hotspots_question *question;
    struct analysis_hotspots *h;
    const struct analysis_recorded *recorded;
    const struct recorded_rows *rows;       /* without those that only watched lines or causes have */
    const struct analysis_weights *weights; /* of bursts; NULL in full mode */
    size_t next;                            /* in weights */
    struct analysis_groups groups;
    struct shares *shares, *spread; /* spread: NULL in full mode */
    struct far_shares *far_shares;  /* NULL in full mode */
    struct far_share *far;          /* of each row */
    struct analysis_selection selection;
    double lines; /* of the cache */
    /* Part of a bin at distances of `lines` and more; of first touches, after so many lines. */
    double decided[OCTAVES_BINS], decided_first[OCTAVES_BINS];
    double scale;  /* of weights: what all bursts represent, by those with counts */
    int again;     /* counts are read again, for the spread */
    int exact;     /* the current row is of a part that was recorded completely */
    double weight; /* likewise */
    /* With objects, of the current row: all references; those of each site, which are known; and those of
     * each row of the table, which are estimated. */
    double references;
    struct site_references {
        double known, estimated;
    } * of_site; /* by id */
    uint32_t *sites;
    size_t nsites, sites_capacity;
    struct {
        uint32_t site, row;
        double references;
    } * estimates;
    size_t nestimates, estimates_capacity;
    struct causes_reading *causes; /* NULL: not asked for */
};

/* hotspots-counts.c */
/* Beside a part that was recorded completely, the bursts with counts represent those without, too. */
void hotspots_find_scale(struct reading *r);
/* Adds all counts of the selected bursts and processes to r->shares and r->far_shares; with r->again to
 * r->spread. 0, or negative with err. */
int hotspots_add_counts(struct reading *r, struct error *err);
void hotspots_clear_counts(struct reading *r);

/* hotspots-far.c; all return 0, or negative with err. */
/* With objects: rows of code that misses, but may not have been seen in any burst. */
int hotspots_add_missed(struct reading *r, struct error *err);
/* Creates r->far_shares and r->far, except in full mode; before counts are added. */
int hotspots_far_begin(struct reading *r, struct error *err);
/* When they were added: distributes the misses, and finds the spread, for which counts are added again. */
int hotspots_far_find(struct reading *r, struct error *err);

#endif
