/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StatCache: miss ratios of a cache with random replacement (docs/methods.md, section 2).
 *
 * Problem. With random replacement there is no fixed depth at which a line is evicted.
 *
 * Method. Of L lines each miss throws out one at random, so a line survives n misses with probability
 * (1 - 1/L)^n. At miss ratio M there are M d misses in a reuse distance d. Over all references:
 *
 *     M = sum_i share_i [1 - (1 - 1/L)^(M d_i)] + endless
 *
 * The right side minus M is concave in M, not below zero at 0 and not above zero at 1. Newton's method
 * from M = 1 converges to the largest root from above: a concave function lies below its tangents. Without
 * endless references M = 0 is a root as well; it is the answer only if the slope there is not positive
 * (everything fits).
 *
 * Example: L = 1, distances 0, 0, 1, 1. No line survives a miss: M = (2/4) [1 - 0^M] = 1/2.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/internal.h"

double model_statcache_solve(const struct model_spectrum *spectrum, double endless, double lines)
{
    double decay = lines > 1 ? log1p(-1 / lines) : -INFINITY; /* per miss */
    double ratio = 1;

    if (endless <= 0) {
        double slope = -1;
        for (size_t i = 0; i < spectrum->n; i++)
            if (spectrum->distance[i] > 0)
                slope -= spectrum->share[i] * spectrum->distance[i] * decay;
        if (slope <= 0)
            return 0;
    }
    for (int step = 0; step < 100; step++) {
        double value = endless - ratio, slope = -1;
        for (size_t i = 0; i < spectrum->n; i++) {
            double distance = spectrum->distance[i];
            if (distance <= 0)
                continue;
            double gone = -expm1(ratio * distance * decay);
            value += spectrum->share[i] * gone;
            if (gone < 1)
                slope -= spectrum->share[i] * distance * decay * (1 - gone);
        }
        if (value >= 0 || slope >= 0) /* converged, within rounding */
            break;
        double next = ratio - value / slope;
        if (next <= 0)
            return 0;
        if (ratio - next < 1e-12 * ratio)
            return next;
        ratio = next;
    }
    return ratio;
}

double model_bin_middle(uint32_t bin)
{
    return ((double)hist_edge(bin) + (double)(hist_edge(bin + 1) - 1)) / 2;
}

void model_statcache_bounds(const struct model_spectrum *known, double beyond, double horizon, double lines,
                            struct curve_point *point)
{
    model_set_point(point, model_statcache_solve(known, beyond, lines));
    if (!(beyond > 0) || isinf(horizon))
        return;
    struct model_spectrum early = *known;
    early.distance[early.n] = horizon;
    early.share[early.n++] = beyond;
    point->low = model_statcache_solve(&early, 0, lines);
    double kept = lines > 1 ? exp(point->high * horizon * log1p(-1 / lines)) : 0;
    point->miss_ratio = kept > 0.5 ? NAN : (point->low + point->high) / 2;
}

int curve_statcache(const struct hist *reuse, uint64_t dangling, unsigned line_bytes,
                    struct curve_point *points, size_t n, struct error *err)
{
    int code = model_check_points(points, n, line_bytes, err);
    double total = (double)reuse->total + (double)dangling;
    struct model_spectrum spectrum = {0};

    if (code < 0)
        return code;
    spectrum.distance = malloc(HIST_BINS * sizeof *spectrum.distance);
    spectrum.share = malloc(HIST_BINS * sizeof *spectrum.share);
    if (!spectrum.distance || !spectrum.share) {
        code = error_set(err, -ENOMEM, "out of memory for the StatCache model");
        goto out;
    }
    for (uint32_t bin = 0; bin < HIST_BINS; bin++) {
        if (!reuse->count[bin])
            continue;
        spectrum.distance[spectrum.n] = model_bin_middle(bin);
        spectrum.share[spectrum.n++] = (double)reuse->count[bin] / total;
    }
    for (size_t i = 0; i < n; i++) {
        double lines = model_lines(&points[i], line_bytes);
        double endless = (double)dangling / total;
        model_set_point(&points[i], total > 0 ? model_statcache_solve(&spectrum, endless, lines) : NAN);
    }
out:
    free(spectrum.distance);
    free(spectrum.share);
    return code;
}
