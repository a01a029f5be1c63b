/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the models share among themselves. */
#ifndef CACHEGRAM_MODEL_INTERNAL_H
#define CACHEGRAM_MODEL_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hist.h"
#include "base/random.h"
#include "model/curve.h"

/*
 * Observations at risk below which a survival estimate is not used: its standard error is up to
 * 0.5 / sqrt(n), which is 7 percentage points for 50.
 */
#define MODEL_MIN_AT_RISK 50.0
/* Half a 95% confidence interval in standard errors: the 97.5% quantile of the normal distribution. */
#define MODEL_NORMAL_95 1.96

/* Lines in a cache of point.size_bytes: rounded down, but at least one. */
double model_lines(const struct curve_point *point, unsigned line_bytes);
/* The size of points[point], in lines. */
struct model_size {
    double lines;
    size_t point;
};
/* All of them, the smallest first: sizes[n]; and their lines alone: lines[n]. */
void model_rising_sizes(const struct curve_point *points, size_t n, unsigned line_bytes,
                        struct model_size *sizes, double *lines);
/* 0, or -EINVAL if a size is not above zero (or not finite), or line_bytes is 0. */
int model_check_points(const struct curve_point *points, size_t n, unsigned line_bytes, struct error *err);
/* Sets miss_ratio, low and high to one value. */
void model_set_point(struct curve_point *point, double miss_ratio);

/*
 * StatStack's expected stack distances (statstack.c), at the bins' lower edges, times the number N of
 * references. long double: N * ES of a long run goes beyond 2^53.
 */
struct model_expectation {
    long double sum[HIST_BINS + 1];   /* N * ES(edge) */
    long double reach[HIST_BINS + 1]; /* references with d >= edge, dangling ones included */
};
void model_expectation_fill(struct model_expectation *e, const struct hist *reuse, uint64_t dangling);
/*
 * References with N * ES(d) >= goal. *refs is the smallest whole r with N * ES(r) >= goal, or INFINITY: then
 * only the dangling ones are left.
 */
long double model_expectation_reach(const struct model_expectation *e, long double goal, long double *refs);

/* A distribution of reuse distances: share[i] of the references have distance[i] (ascending). */
struct model_spectrum {
    double *distance, *share;
    size_t n;
};
/* The middle of a histogram's bin. */
double model_bin_middle(uint32_t bin);
/* StatCache's equation for one size. endless: the share with no reuse. All shares add up to 1. */
double model_statcache_solve(const struct model_spectrum *spectrum, double endless, double lines);
/*
 * StatCache where the share `beyond` of the distances is known only to be at least `horizon`: low, if all of
 * them end there; high, if none ends; miss_ratio, the middle, or NaN if it is more likely than not that a
 * line as old as the horizon is still in the cache, so that the result depends on unknown distances. horizon
 * INFINITY: they are known to be endless. The arrays of `known` have space for one more.
 */
void model_statcache_bounds(const struct model_spectrum *known, double beyond, double horizon, double lines,
                            struct curve_point *point);

/*
 * Distances of many references, some of them censored (only a lower bound is known), summed over bursts. The
 * weighted arrays give the estimate; the unweighted counts decide where it is used.
 */
struct model_survival {
    double event[HIST_BINS], censored[HIST_BINS];
    uint64_t event_count[HIST_BINS], censored_count[HIST_BINS];
    /* Set by model_survival_estimate, at the bins' lower edges: */
    double at_least[HIST_BINS + 1]; /* share of distances >= hist_edge(bin) */
    uint32_t known_bins;            /* at_least[] is backed by data for bins 0 .. known_bins */
};
void model_survival_add(struct model_survival *s, const struct packed_hist *event,
                        const struct packed_hist *censored, double weight);
void model_survival_estimate(struct model_survival *s);
/* Share of distances >= value, linear within bins; NaN beyond what is known. */
double model_survival_at(const struct model_survival *s, double value);

/* 0, or -EINVAL if a weight is not 0 or more, or the references of a burst are not its reuses and first
 * touches. */
int model_check_bursts(const struct curve_burst *bursts, size_t nbursts, struct error *err);
int model_check_points_and_bursts(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                                  const struct curve_point *points, size_t n, struct error *err);

/* Of n bursts, those that are a sample: the first ones. The others are certain. */
size_t model_sampled(const struct curve_burst *bursts, size_t n);

/* Mean 0, variance 1: nearly normal. */
double model_random_normal(struct random_state *random);

#endif
