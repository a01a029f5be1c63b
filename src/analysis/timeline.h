/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - miss ratio over time: of each window of each thread, and of each phase, at several cache
 * sizes. Windows recorded in full mode are exact. A phase has the weighted mean of all bursts in its sampled
 * windows. A sampled window has an estimate from its own bursts, those of its phase, and all others
 * (model/shrink.h); nothing is known of it if no burst fell into its phase.
 */
#ifndef CACHEGRAM_ANALYSIS_TIMELINE_H
#define CACHEGRAM_ANALYSIS_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/selection.h"
#include "base/error.h"
#include "model/curve.h"
#include "model/variation.h"
#include "profile/profile.h"

struct analysis_time_window {
    uint64_t id, process;
    uint32_t tid;
    int exact;
    uint64_t start_ns, end_ns; /* since the run's start */
    double start_refs;         /* references of the thread before it; estimated unless all before are exact */
    double refs;               /* estimated if it is sampled */
    double cpu_ns;             /* native CPU time, estimated if it is exact; NaN: not known */
    uint64_t spent_ns;         /* CPU time; if it is exact, in translated code, which is slower */
    uint32_t phase;            /* from 1; 0: not known */
    size_t bursts;             /* its own */
};

struct analysis_phase {
    uint32_t phase; /* from 1; 0: windows whose phase is not known */
    size_t windows;
    double refs;
    double cpu_ns;              /* native; NaN: not known */
    size_t bursts;              /* in its sampled windows */
    struct variation variation; /* all 0 until analysis_phase_variations (analysis/phase-variation.h) */
    size_t variation_size;      /* at which of the sizes */
};

struct analysis_timeline {
    const char *profile;                        /* file name */
    const struct analysis_selection *selection; /* only windows of these threads; NULL: all */
    int separate; /* each thread has a cache of its own; else all of a process share one */
    unsigned line_bytes;
    double *sizes; /* bytes */
    size_t nsizes;
    struct analysis_time_window *windows; /* in order of their beginning, at least within each thread */
    size_t n;
    size_t *by_thread;  /* positions in windows[], by process, thread and time */
    double *miss_ratio; /* [window * nsizes + size]; NaN: no burst of its phase */
    struct analysis_phase *phases;
    size_t nphases;
    double *of_phase;     /* [phase * nsizes + size], by position in phases[] */
    size_t bursts, exact; /* of them: bursts, exact windows */
    int incomplete;       /* the recording is still running, or was killed */
    double covered; /* share of the run's CPU time that windows contain; NaN: not known, or a selection */
};

/*
 * The timeline at the sizes of points[n]. timeline->profile, ->selection and ->separate are set by the
 * caller; everything else is set here. Of a selection, windows and phases have the values that they have
 * among all; sums are of the selected windows. -ENODATA with err if the profile has no windows, or none that
 * is selected.
 */
int analysis_timeline_compute(struct profile *p, const struct curve_point *points, size_t n,
                              struct analysis_timeline *timeline, struct error *err);
void analysis_timeline_clear(struct analysis_timeline *timeline);

enum analysis_axis { ANALYSIS_AXIS_REFS, ANALYSIS_AXIS_TIME };

/*
 * The timeline of all its threads together, divided into `columns` parts of about equal work, or of equal
 * elapsed time: a grid for a picture. A window that belongs to several parts is divided in proportion to
 * time.
 */
struct analysis_grid {
    enum analysis_axis axis;
    size_t columns, nsizes;
    double *miss_ratio;  /* [column * nsizes + size]; NaN: not known */
    uint32_t *phase;     /* of each column: the one with most of its references, or CPU time; 0: not known */
    unsigned char *idle; /* of each column: hardly any CPU time was used in it */
    double *exact;       /* of each column: share of its references in exact windows */
    double *end_ns;      /* where each column ends, since the run's start */
    double refs;         /* of the run */
};
int analysis_grid_compute(const struct analysis_timeline *timeline, enum analysis_axis axis, size_t columns,
                          struct analysis_grid *grid, struct error *err);
void analysis_grid_clear(struct analysis_grid *grid);

/*
 * The error of a timeline's distribution of miss ratios at one size against that of `exact`: for both, how
 * much of the run's references, in windows of 1/parts of them, have at most a given miss ratio; the mean
 * absolute difference of these two functions over all miss ratios from 0 to 1 (Sembrant et al. 2012, 5.1).
 * NaN if either is not known. *at_time: the mean absolute difference of the miss ratios at the same share of
 * the run.
 */
double analysis_cdf_error(const struct analysis_grid *estimate, const struct analysis_grid *exact,
                          size_t size, double *at_time);

#endif
