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

int curve_bursts_statcache(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                           struct curve_point *points, size_t n, struct error *err)
{
    double total = 0;
    int code = model_check_points_and_bursts(bursts, nbursts, line_bytes, points, n, err);
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
        w->distance[spectrum.n] = model_bin_middle(bin);
        w->share[spectrum.n++] = at_least[bin] - at_least[bin + 1];
    }
    for (size_t i = 0; i < n; i++) {
        if (total > 0)
            model_statcache_bounds(&spectrum, at_least[known], (double)hist_edge(known),
                                   model_lines(&points[i], line_bytes), &points[i]);
        else
            model_set_point(&points[i], NAN);
    }
    free(w);
    return 0;
}
