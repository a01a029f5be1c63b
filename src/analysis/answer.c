/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/answer.h"

#include <math.h>

/* Of the sizes on a curve, those that caches have. */
static int is_power_of_two(double size_bytes)
{
    int exponent;
    return frexp(size_bytes, &exponent) == 0.5;
}

/* The largest gain of a step, with the smallest cache that has most of it. */
static void find_step(const struct curve_point *from, const struct curve_point *points, size_t n,
                      struct analysis_answer *answer)
{
    double best = 0;
    for (size_t i = 0; i < n; i++) {
        const struct curve_point *to = &points[i];
        if (to->size_bytes <= from->size_bytes || to->size_bytes > ANSWER_STEP * from->size_bytes ||
            !is_power_of_two(to->size_bytes) || !(from->low > to->high))
            continue;
        double gain = from->miss_ratio - to->miss_ratio;
        /* Each larger one must gain more by a tenth. A ratio that is not known gains nothing. */
        if (!(gain >= ANSWER_LEAST_GAIN && gain > 1.1 * best))
            continue;
        best = gain;
        /* A later start that gains as much, or nearly so, says more exactly where the gain is. */
        if (gain > 1.1 * answer->gain || (from->size_bytes == answer->from_bytes && gain > answer->gain) ||
            (to->size_bytes == answer->to_bytes && gain >= 0.95 * answer->gain)) {
            answer->gain = gain;
            answer->gain_low = from->low - to->high;
            answer->gain_high = from->high - to->low;
            answer->from_bytes = from->size_bytes;
            answer->to_bytes = to->size_bytes;
        }
    }
}

void analysis_answer_find(const struct curve_point *first, const struct curve_point *points, size_t n,
                          struct analysis_answer *answer)
{
    *answer = (struct analysis_answer){.first_bytes = first->size_bytes,
                                       .hit_ratio = 1 - first->miss_ratio,
                                       .hit_low = 1 - first->high,
                                       .hit_high = 1 - first->low,
                                       .most_gain = n > 0 ? first->high - points[n - 1].low : NAN};
    /* Caches of 48K exist, too: the gain may lie between the first-level cache and the next power of two. */
    if (!is_power_of_two(first->size_bytes))
        find_step(first, points, n, answer);
    for (size_t i = 0; i < n; i++)
        if (points[i].size_bytes >= first->size_bytes && is_power_of_two(points[i].size_bytes))
            find_step(&points[i], points, n, answer);
    answer->flat = answer->most_gain < ANSWER_LEAST_GAIN;
}
