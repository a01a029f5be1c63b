/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots-causes.h - why the rows of a table of hotspots miss: on lines that were never touched before, or
 * on lines that others replaced. Used by hotspots.c only.
 *
 *     read --> add_rows (with objects) --> begin --> touches, touches, ... --> cold, evictions
 */
#ifndef CACHEGRAM_ANALYSIS_HOTSPOTS_CAUSES_H
#define CACHEGRAM_ANALYSIS_HOTSPOTS_CAUSES_H

#include "analysis/burst-weights.h"
#include "analysis/hotspots-groups.h"

struct causes_reading;

/* Reads what the profile has; lines: size of the cache. NULL with err. */
struct causes_reading *analysis_causes_read(struct profile *p, double lines, struct error *err);
void analysis_causes_free(struct causes_reading *c); /* NULL is allowed */
/* Makes the rows of pairs that only causes have. 0, or -ENOMEM with err. */
int analysis_causes_add_rows(struct causes_reading *c, struct analysis_hotspots *h,
                             struct analysis_groups *groups, struct error *err);
/* All rows have been made. missed: watched lines that missed. 0, or -ENOMEM with err. */
int analysis_causes_begin(struct causes_reading *c, struct analysis_hotspots *h,
                          const struct analysis_groups *groups, const struct analysis_missed *missed,
                          size_t nmissed, struct error *err);
/* A row's touches of an object (id), weighted: reuses, or first touches in their burst; certain: those of the
 * reuses that miss, or of the first touches that are cold. */
void analysis_causes_touches(struct causes_reading *c, uint32_t row, uint32_t object, double touches,
                             double certain, int first);
/* The part of the row's misses (weighted, all of them) that were cold; *known: that certainly were;
 * *guessed: of how many that is estimated by the watched lines. */
double analysis_causes_cold(const struct causes_reading *c, size_t row, double misses, double *known,
                            double *guessed);
/* Fills h->evictions, when the rows are sorted. 0 or -ENOMEM. */
int analysis_causes_evictions(const struct causes_reading *c, struct analysis_hotspots *h);

#endif
