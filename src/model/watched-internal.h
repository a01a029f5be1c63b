/* SPDX-License-Identifier: Apache-2.0 */
/* watched-internal.h - shared by the models of bursts with watched lines. */
#ifndef CACHEGRAM_MODEL_WATCHED_INTERNAL_H
#define CACHEGRAM_MODEL_WATCHED_INTERNAL_H

#include "model/growth.h"
#include "model/internal.h"
#include "model/watched.h"

/* Resamples of the bootstrap: a standard deviation from 100 is known to 7%. From thousands of bursts, which
 * take long and have narrow intervals, 25 are enough: 14%. */
static inline unsigned watched_resamples(size_t nbursts)
{
    return nbursts <= 2000 ? 100 : nbursts < 8000 ? (unsigned)(200000 / nbursts) : 25;
}
/*
 * Fewest observed lines for an estimate: the standard error of a share from ten is up to 16 percentage
 * points.
 */
#define WATCHED_MIN 10u

/* A watched line, as estimates use it. */
struct watched_seen {
    double position, distance, weight;
    size_t number; /* of the watch, in the order of bursts and their watches */
    uint32_t burst;
    int censored;
};

/* Checks all bursts. *followed: whether there are both weights and watched lines. 0 or -EINVAL. */
int watched_check(const struct curve_burst *bursts, size_t n, int *followed, struct error *err);
/* Weight of one reference of the burst; 0 for a burst without references. */
double watched_share(const struct curve_burst *burst);
/* Survivors that the watched line represents. */
double watched_weight(const struct curve_burst *burst, const struct curve_watch *watch);
/* Fills seen[] with the watched lines of all bursts that have a weight, by distance, and returns their
 * number; at the same distance, reused before censored. distance: of watched_distances. */
size_t watched_list(const struct curve_burst *bursts, size_t n, const double *distance,
                    struct watched_seen *seen);
/* Reuse distances of a burst, in references: inside it, and of its survivors. */
void watched_counts(const struct curve_burst *burst, struct growth_counts *counts);
/*
 * One bootstrap sample of the bursts whose share[] is above 0, as many as there are, drawn with replacement.
 * times[b] is how often burst b is in it, times a random factor for the error of its rate, equal for bursts
 * of equal rate.
 */
struct random_state;
void watched_draw(struct random_state *random, const struct curve_burst *bursts, const double *share,
                  size_t n, double *times);
/* Factor for a standard deviation that the bootstrap finds: with few bursts it is too small. */
double watched_few(const struct curve_burst *bursts, size_t n);
/* Sets the interval around point->miss_ratio, whose bootstrap standard deviation is sd. */
void watched_band(struct curve_point *point, double sd);

/* Kish's effective sample size, 0 .. n: (sum of weights)^2 / sum of squares. */
double watched_effective(const double *weight, size_t n);
/*
 * Wilson's 95% interval of a share estimated from n (docs/methods.md, section 6). Its width is not 0 if the
 * share is 0 or 1; it is 0 .. 1 for n = 0.
 */
void watched_wilson(double share, double n, double *low, double *high);

/*
 * The LRU stack distances of all watched lines, in lines; in the order of bursts and of each burst's watches.
 * Infinite if never reused; of censored ones, the distance reached when observation ended. 0 or -ENOMEM.
 */
int watched_distances(const struct curve_burst *bursts, size_t nbursts, double *distance, struct error *err);

#endif
