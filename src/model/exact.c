/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact curve of a fully associative LRU cache (Mattson et al. 1970).
 *
 * A cache of L lines holds the L lines touched last, so a reference hits if and only if fewer than L
 * distinct lines were touched since the last touch of its own. One histogram of stack distances gives
 * every size.
 *
 * Example: a b c a b c. Three cold misses, three references of stack distance 2: with 3 lines the miss
 * ratio is 3/6, with 2 lines 6/6.
 */
#include <math.h>

#include "model/internal.h"

int curve_exact(const struct hist *stack, uint64_t cold, unsigned line_bytes, struct curve_point *points,
                size_t n, struct error *err)
{
    int code = model_check_points(points, n, line_bytes, err);
    double total = (double)stack->total + (double)cold;

    if (code < 0)
        return code;
    for (size_t i = 0; i < n; i++) {
        double misses = hist_at_least(stack, model_lines(&points[i], line_bytes)) + (double)cold;
        model_set_point(&points[i], total > 0 ? misses / total : NAN);
    }
    return 0;
}
