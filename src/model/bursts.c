/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The LRU curve from bursts without watched lines (docs/methods.md, section 6).
 *
 * Problem. In a burst of W references the stack distance of each reuse inside it is known. Of a line's first
 * touch it is only known to be at least k, the number of distinct lines before it in the burst.
 *
 * Method. At L lines, a first touch with k >= L certainly misses; one with k < L is unknown.
 *
 *  - Bounds: all unknown ones hit (low), or miss (high); the mean over bursts, by their weights.
 *    (As MemSpy's mu = 0 and mu = 1, but with sure misses excluded from the unknown.)
 *  - Noise: the bursts are a sample of the run. They are drawn again, with replacement, RESAMPLES times;
 *    the 2.5% quantile of the lower bound and the 97.5% quantile of the upper one widen the bounds.
 *  - Centre: Kaplan-Meier (survival.c) over all bursts; a reference of burst b counts weight / W. It
 *    distributes the unknown touches as the known ones of larger k are distributed, so it stays within the
 *    bounds. There is no centre where too few references have such a large k.
 *
 * Example: one burst a b a c c, first touches with k = 0, 1, 2; distances a 1, c 0. At 2 lines: both
 * reuses hit, c (k = 2) certainly misses, a and b are unknown: low 1/5, high 3/5.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/random.h"
#include "model/internal.h"

#define RESAMPLES 200u

/* The q-quantile of sorted values, linear between them. */
static double quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t below = (size_t)at;

    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

/* Bounds at n sizes: bounds[2 * i] low, [2 * i + 1] high. */
struct work {
    struct model_survival survival;
    struct model_size *sizes; /* [n], ascending */
    double *lines;            /* [n]: theirs */
    double *found;            /* [n]: work space */
    double *burst;            /* [b * 2 n]: bounds of burst b times its weight */
    double *mean;             /* [2 n]: weighted mean of the sample, or of a resample */
    double *sorted;           /* [2 n][RESAMPLES] */
};

static void work_free(struct work *w)
{
    if (!w)
        return;
    free(w->sizes);
    free(w->lines);
    free(w->found);
    free(w->burst);
    free(w->mean);
    free(w->sorted);
    free(w);
}

static struct work *work_new(size_t n, size_t nbursts)
{
    struct work *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->sizes = calloc(n + 1, sizeof *w->sizes);
    w->lines = calloc(n + 1, sizeof *w->lines);
    w->found = calloc(n + 1, sizeof *w->found);
    w->burst = calloc(nbursts + 1, 2 * (n + 1) * sizeof *w->burst);
    w->mean = calloc(n + 1, 2 * sizeof *w->mean);
    w->sorted = calloc(n + 1, 2 * RESAMPLES * sizeof *w->sorted);
    if (w->sizes && w->lines && w->found && w->burst && w->mean && w->sorted)
        return w;
    work_free(w);
    return NULL;
}

/* bounds[2 * i] += share * values that reach size i. */
static void add_at_least(struct work *w, const struct packed_hist *h, size_t n, double share, double *bounds)
{
    packed_hist_at_least_each(h, w->lines, n, w->found);
    for (size_t i = 0; i < n; i++)
        bounds[2 * i] += share * w->found[i];
}

static void reduce(struct work *w, const struct curve_burst *bursts, size_t nbursts, size_t n)
{
    for (size_t b = 0; b < nbursts; b++) {
        const struct curve_burst *burst = &bursts[b];
        double *bounds = w->burst + b * 2 * n;
        if (burst->references == 0 || burst->weight <= 0)
            continue;
        double share = burst->weight / (double)burst->references;
        add_at_least(w, &burst->stack, n, share, bounds);
        for (size_t i = 0; i < n; i++)
            bounds[2 * i + 1] = bounds[2 * i] + share * (double)burst->first.total;
        add_at_least(w, &burst->first, n, share, bounds);
        model_survival_add(&w->survival, &burst->stack, &burst->first, share);
    }
}

/* 0 for a burst without references. */
static double weight_of(const struct curve_burst *burst)
{
    return burst->references > 0 ? burst->weight : 0;
}

static void resample(struct work *w, const struct curve_burst *bursts, size_t nbursts, size_t n,
                     uint64_t seed)
{
    struct random_state random;
    size_t sampled = model_sampled(bursts, nbursts);

    random_seed(&random, seed);
    for (size_t r = 0; r < RESAMPLES; r++) {
        double total = 0, normal = model_random_normal(&random);
        memset(w->mean, 0, 2 * n * sizeof *w->mean);
        while (total <= 0) /* again if all bursts drawn have weight 0 */
            for (size_t k = 0; k < nbursts; k++) {
                size_t b = k < sampled ? (size_t)random_below(&random, sampled) : k;
                const double *bounds = w->burst + b * 2 * n;
                double scale = bursts[b].scale_doubt > 0 ? exp(bursts[b].scale_doubt * normal) : 1;
                total += scale * weight_of(&bursts[b]);
                for (size_t i = 0; i < 2 * n; i++)
                    w->mean[i] += scale * bounds[i];
            }
        for (size_t i = 0; i < 2 * n; i++)
            w->sorted[i * RESAMPLES + r] = w->mean[i] / total;
    }
    for (size_t i = 0; i < 2 * n; i++)
        qsort(w->sorted + i * RESAMPLES, RESAMPLES, sizeof *w->sorted, array_compare_doubles);
}

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value; /* NaN stays NaN */
}

int curve_bursts(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes, uint64_t seed,
                 struct curve_point *points, size_t n, struct error *err)
{
    double total = 0;
    int code = model_check_points_and_bursts(bursts, nbursts, line_bytes, points, n, err);
    if (code < 0)
        return code;
    for (size_t b = 0; b < nbursts; b++)
        total += weight_of(&bursts[b]);
    if (total <= 0) {
        for (size_t i = 0; i < n; i++)
            model_set_point(&points[i], NAN);
        return 0;
    }
    struct work *w = work_new(n, nbursts);
    if (!w)
        return error_set(err, -ENOMEM, "out of memory for the curve of %zu bursts", nbursts);

    model_rising_sizes(points, n, line_bytes, w->sizes, w->lines);
    reduce(w, bursts, nbursts, n);
    model_survival_estimate(&w->survival);
    resample(w, bursts, nbursts, n, seed);
    memset(w->mean, 0, 2 * n * sizeof *w->mean);
    for (size_t b = 0; b < nbursts; b++)
        for (size_t i = 0; i < 2 * n; i++)
            w->mean[i] += w->burst[b * 2 * n + i] / total;

    for (size_t i = 0; i < n; i++) {
        struct curve_point *point = &points[w->sizes[i].point];
        double low = clamp(w->mean[2 * i], 0, 1), high = clamp(w->mean[2 * i + 1], 0, 1);
        double centre = model_survival_at(&w->survival, model_lines(point, line_bytes));
        point->miss_ratio = clamp(centre, low, high);
        point->low = clamp(quantile(w->sorted + 2 * i * RESAMPLES, RESAMPLES, 0.025), 0, low);
        point->high = clamp(quantile(w->sorted + (2 * i + 1) * RESAMPLES, RESAMPLES, 0.975), high, 1);
    }
    work_free(w);
    return 0;
}
