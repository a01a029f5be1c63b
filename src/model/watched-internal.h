/* SPDX-License-Identifier: Apache-2.0 */
/* watched-internal.h - what the curves of watched bursts share. */
#ifndef CACHEGRAM_MODEL_WATCHED_INTERNAL_H
#define CACHEGRAM_MODEL_WATCHED_INTERNAL_H

#include "model/growth.h"
#include "model/internal.h"
#include "model/watched.h"

/* Draws of the bootstrap: it is for a standard deviation, which 100 know to 7%. */
#define WATCHED_RESAMPLES 100u
/*
 * Fewer watches than this that were followed at all tell nothing: the standard error of a share from ten is
 * up to 16 points.
 */
#define WATCHED_MIN 10u

/* Check all; *followed: whether there are both weights and watches. 0 or -EINVAL. */
int watched_check(const struct curve_burst *bursts, size_t n, int *followed, struct error *err);
/* What one reference of the burst counts; 0 if it has nothing to say. */
double watched_share(const struct curve_burst *burst);
/* Survivors that the watch stands for. */
double watched_weight(const struct curve_burst *burst, const struct curve_watch *watch);
/* Reuse distances of a burst, in references: of its own, and of its survivors. */
void watched_counts(const struct curve_burst *burst, struct growth_counts *counts);
/*
 * times[b]: how often burst b is in a sample of n drawn with replacement, and some of share[] is above 0
 * then; times what its weight may be off for that of its rate, the same for all bursts of a rate.
 */
struct random_state;
void watched_draw(struct random_state *random, const struct curve_burst *bursts, const double *share,
                  size_t n, double *times);
/* Puts the band around point->miss_ratio: sd is its standard deviation by the bootstrap. */
void watched_band(struct curve_point *point, double sd);

/* How many of equal weight would tell as much: Kish's effective sample size, 0 .. n. */
double watched_effective(const double *weight, size_t n);
/*
 * Wilson's 95% interval of a share that was found in n (E. B. Wilson, JASA 22, 1927), which has a width even
 * where all or none of the n have it; 0 .. 1 for n = 0.
 */
void watched_wilson(double share, double n, double *low, double *high);

/*
 * The LRU stack distances of all watches, in lines, bursts in order and each burst's watches in order.
 * Endless ones are infinite; of censored ones the distance is what it had grown to. 0 or -ENOMEM.
 */
int watched_distances(const struct curve_burst *bursts, size_t nbursts, double *distance, struct error *err);

#endif
