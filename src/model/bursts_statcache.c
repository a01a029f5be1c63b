/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The curve under random replacement from bursts without watched lines (docs/methods.md, sections 2 and 6).
 *
 * Problem. StatCache needs the distribution of reuse distances. In a burst it is known for the reuses inside;
 * of a line's last touch it is only known that the reuse comes after the burst's end, its age.
 *
 * Method. Every reference of a burst is the origin of a forward reuse distance: a reuse inside the burst,
 * or a survivor, censored at its age. Kaplan-Meier (survival.c) over all bursts gives the distribution up
 * to a horizon, the longest distance with enough references at risk, and the share that goes beyond.
 * That share may be reused right after the horizon (low) or never (high). The centre is the middle if, at
 * the ratio `high`, a line as old as the horizon has more likely than not been replaced. Otherwise the result
 * depends on distances beyond the horizon, which are not known, and there is no centre.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/internal.h"

struct work {
    struct model_survival survival;
    double distance[HIST_BINS + 1], share[HIST_BINS + 1];
};

static double mean_of_bin(uint32_t bin)
{
    return ((double)hist_edge(bin) + (double)(hist_edge(bin + 1) - 1)) / 2;
}

int curve_bursts_statcache(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                           struct curve_point *points, size_t n, struct error *err)
{
    int code = model_check_points(points, n, line_bytes, err);
    double total = 0;

    if (code == 0)
        code = model_check_bursts(bursts, nbursts, err);
    if (code < 0)
        return code;
    struct work *w = calloc(1, sizeof *w);
    if (!w)
        return error_set(err, -ENOMEM, "out of memory for the StatCache curve of %zu bursts", nbursts);

    for (size_t b = 0; b < nbursts; b++) {
        if (bursts[b].references == 0 || bursts[b].weight <= 0)
            continue;
        total += bursts[b].weight;
        model_survival_add(&w->survival, &bursts[b].reuse, &bursts[b].age,
                           bursts[b].weight / (double)bursts[b].references);
    }
    model_survival_estimate(&w->survival);

    struct model_spectrum spectrum = {.distance = w->distance, .share = w->share};
    const double *at_least = w->survival.at_least;
    uint32_t known = w->survival.known_bins;
    for (uint32_t bin = 0; bin < known; bin++) {
        if (at_least[bin] <= at_least[bin + 1])
            continue;
        w->distance[spectrum.n] = mean_of_bin(bin);
        w->share[spectrum.n++] = at_least[bin] - at_least[bin + 1];
    }
    double horizon = (double)hist_edge(known), beyond = at_least[known];
    struct model_spectrum early = spectrum;
    w->distance[early.n] = horizon;
    w->share[early.n++] = beyond;

    for (size_t i = 0; i < n; i++) {
        double lines = model_lines(&points[i], line_bytes);
        if (total <= 0) {
            model_set_point(&points[i], NAN);
            continue;
        }
        points[i].high = model_statcache_solve(&spectrum, beyond, lines);
        points[i].low = model_statcache_solve(&early, 0, lines);
        double kept = lines > 1 ? exp(points[i].high * horizon * log1p(-1 / lines)) : 0;
        points[i].miss_ratio = beyond > 0 && kept > 0.5 ? NAN : (points[i].low + points[i].high) / 2;
    }
    free(w);
    return 0;
}
