/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monotone.c - a miss-ratio curve never rises.
 *
 * A larger LRU cache contains what a smaller one contains, but estimates of two sizes have errors of their
 * own. The pool-adjacent-violators method (Ayer et al. 1955) gives the falling curve that is nearest to the
 * estimate in the sense of least squares: neighbours in the wrong order are replaced by their mean, until
 * none is left. Its squared distance from the true curve, which falls, is at most that of the estimate. The
 * order of estimate and bounds is kept.
 *
 * Example: 5 3 4 1 becomes 5 3.5 3.5 1.
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "model/curve.h"

struct pool {
    double sum;
    size_t n;
};

static double *value_of(struct curve_point *point, int which)
{
    return which == 0 ? &point->miss_ratio : which == 1 ? &point->low : &point->high;
}

static void make_monotone(struct curve_point *points, size_t n, int which, struct pool *pools)
{
    size_t npools = 0, at = 0;
    for (size_t i = 0; i < n; i++) {
        double value = *value_of(&points[i], which);
        if (isnan(value))
            continue;
        pools[npools++] = (struct pool){value, 1};
        while (npools > 1 && pools[npools - 1].sum * (double)pools[npools - 2].n >
                                 pools[npools - 2].sum * (double)pools[npools - 1].n) {
            pools[npools - 2].sum += pools[npools - 1].sum;
            pools[npools - 2].n += pools[npools - 1].n;
            npools--;
        }
    }
    for (size_t i = 0; i < n; i++) {
        double *value = value_of(&points[i], which);
        if (isnan(*value))
            continue;
        *value = pools[at].sum / (double)pools[at].n;
        /* The number of points that are still to get this pool's value. */
        pools[at].sum -= *value;
        at += --pools[at].n == 0;
    }
}

int curve_make_monotone(struct curve_point *points, size_t n)
{
    struct pool *pools = malloc((n + 1) * sizeof *pools);
    if (!pools)
        return -ENOMEM;
    for (int which = 0; which < 3; which++)
        make_monotone(points, n, which, pools);
    free(pools);
    return 0;
}
