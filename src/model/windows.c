/* SPDX-License-Identifier: Apache-2.0 */
#include "model/windows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"

struct sums { /* of a point: weights w and miss ratios m of windows */
    double wm, wwmm, wwm;
};

/* One window's curve. */
static int model_window(const struct curve_window *window, enum curve_window_model model, unsigned line_bytes,
                        struct hist *h, struct curve_point *points, size_t n, struct error *err)
{
    memset(h, 0, sizeof *h);
    for (size_t i = 0; i < window->n; i++)
        hist_add(h, window->distances[i], 1);
    if (model == CURVE_WINDOWS_STATSTACK)
        return curve_statstack(h, window->dangling, line_bytes, points, n, err);
    return curve_statcache(h, window->dangling, line_bytes, points, n, err);
}

/* The mean, and twice its standard error as a ratio's: sum of w m over sum of w. */
static void set_point(struct curve_point *point, const struct sums *sum, double w, double ww, double used)
{
    double mean = sum->wm / w;
    double spread = sum->wwmm - 2 * mean * sum->wwm + mean * mean * ww;
    double error = used > 1 ? 2 * sqrt((spread > 0 ? spread : 0) * used / (used - 1)) / w : NAN;
    point->miss_ratio = used > 0 ? mean : NAN;
    point->low = mean - error < 0 ? 0 : mean - error;
    point->high = mean + error > 1 ? 1 : mean + error;
}

int curve_windows(const struct curve_window *windows, size_t nwindows, enum curve_window_model model,
                  unsigned line_bytes, struct curve_point *points, size_t n, struct error *err)
{
    struct hist *h = malloc(sizeof *h);
    struct curve_point *own = calloc(n ? n : 1, sizeof *own);
    struct sums *sums = calloc(n ? n : 1, sizeof *sums);
    double w = 0, ww = 0, used = 0;
    int code = h && own && sums ? 0 : error_set(err, -ENOMEM, "out of memory for the windows' curves");
    if (code == 0)
        memcpy(own, points, n * sizeof *own);
    for (size_t i = 0; i < nwindows && code == 0; i++) {
        const struct curve_window *window = &windows[i];
        if (!(window->weight >= 0) || !isfinite(window->weight)) {
            code = error_set(err, -EINVAL, "a window has weight %g: it must be 0 or more", window->weight);
            break;
        }
        if (window->n + window->dangling == 0 || window->weight == 0)
            continue;
        code = model_window(window, model, line_bytes, h, own, n, err);
        for (size_t k = 0; k < n && code == 0; k++) {
            sums[k].wm += window->weight * own[k].miss_ratio;
            sums[k].wwm += window->weight * window->weight * own[k].miss_ratio;
            sums[k].wwmm += window->weight * window->weight * own[k].miss_ratio * own[k].miss_ratio;
        }
        w += window->weight;
        ww += window->weight * window->weight;
        used++;
    }
    for (size_t k = 0; k < n && code == 0; k++)
        set_point(&points[k], &sums[k], w, ww, used);
    free(h);
    free(own);
    free(sums);
    return code;
}
