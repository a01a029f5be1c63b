/* SPDX-License-Identifier: Apache-2.0 */
/* extent.h - how much of the run a profile of full mode contains, and whether it may be called exact. */
#ifndef CACHEGRAM_ANALYSIS_EXTENT_H
#define CACHEGRAM_ANALYSIS_EXTENT_H

#include "profile/profile.h"

/* Percentage of missing references above which a profile of full mode is not called exact; and above which
 * the report mentions them. */
#define ANALYSIS_EXACT_PERCENT 1.
#define ANALYSIS_MISSED_PERCENT 0.1

enum analysis_extent {
    EXTENT_ALL,      /* every reference of the run: the curve is exact */
    EXTENT_PROFILED, /* every reference of the profiled programs; others of the run could not be profiled */
    EXTENT_GAPS,     /* more than ANALYSIS_EXACT_PERCENT of the references are missing */
    EXTENT_BEGINNING /* the references until the recording ended early or was killed, or until now */
};

/* Of a profile of full mode. What cannot be read counts as absent. */
enum analysis_extent analysis_extent(struct profile *p);

/* 1: of programs that could not be profiled, and why, in a sentence without a full stop; 0: none is known. */
int analysis_unprofiled(struct profile *p, char *text, size_t size);

/* If a profile holds no references because of such programs, or since agents turned themselves off: -ENODATA
 * with that in err. Else 0. */
int analysis_refuse_unprofiled(struct profile *p, const char *name, struct error *err);

/* Percentage of the references that a profile of full mode lacks; 0: none, or unknown (older profiles). */
double analysis_missed_percent(struct profile *p);

/* For a profile in which every reference was recorded, or every one of a first part of the run and no burst
 * after it. first: "", or words that limit "every reference". Both return -EINVAL with err. */
int analysis_refuse_thread(const char *name, const char *first, struct error *err);
int analysis_refuse_ways(const char *name, unsigned ways, struct error *err);

#endif
