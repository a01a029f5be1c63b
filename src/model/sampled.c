/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The LRU curve from the stack distances of a sample of lines (SHARDS; Waldspurger, Park, Garthwaite, Ahmad
 * 2015).
 *
 * Of the distinct lines between two touches of a line the sample sees the share `rate`; a distance of d in
 * the sample stands for d / rate. So a cache of L lines is, to the sample, one of rate * L lines. Of N
 * touches rate * N are expected in the sample; what is missing or too much is mostly the touches of a few hot
 * lines, which are hits at all sizes that matter, so the misses are divided by the expected number
 * (section 3.2 there).
 *
 * Error: the sample consists of eight smaller ones, each with a curve of its own. If the standard deviation
 * of their miss ratios is sd, that of their mean is sd / sqrt(8), and the whole sample, whose
 * distances are finer, is no worse. Student's t with 7 degrees of freedom makes a 95% band of it.
 *
 * Example: rate 1/2, 100 touches, 40 of them in the sample, 5 cold ones and 10 with distances of 16 and more.
 * A cache of 32 lines is one of 16 to the sample: (10 + 5) / 50 = 30% misses.
 */
#include <math.h>

#include "model/internal.h"

/* 97.5% quantile of Student's t, 7 degrees of freedom. */
#define STUDENT_T 2.365
/* Below one line a group sees nothing but its hits. */
#define LINES_MIN ((double)CURVE_SAMPLE_GROUPS)

static double ratio(const struct hist *stack, uint64_t cold, double lines, double touches)
{
    double misses = hist_at_least(stack, lines) + (double)cold;
    return fmin(misses / touches, 1);
}

static void set_point(const struct curve_sample *s, double lines, struct curve_point *point)
{
    double touches = s->rate * (double)s->touches, groups = CURVE_SAMPLE_GROUPS;
    double sum = 0, squares = 0;
    for (unsigned g = 0; g < CURVE_SAMPLE_GROUPS; g++) {
        double m = ratio(s->group_stack[g], s->group_cold[g], lines / groups, touches / groups);
        sum += m;
        squares += m * m;
    }
    double variance = fmax(squares - sum * sum / groups, 0) / (groups - 1);
    double half = STUDENT_T * sqrt(variance / groups);
    point->miss_ratio = ratio(s->stack, s->cold, lines, touches);
    point->low = fmax(point->miss_ratio - half, 0);
    point->high = fmin(point->miss_ratio + half, 1);
}

int curve_sampled(const struct curve_sample *sample, unsigned line_bytes, struct curve_point *points,
                  size_t n, struct error *err)
{
    int code = model_check_points(points, n, line_bytes, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < n; i++) {
        double lines = sample->rate * model_lines(&points[i], line_bytes);
        if (sample->touches == 0 || lines < LINES_MIN)
            model_set_point(&points[i], NAN);
        else
            set_point(sample, lines, &points[i]);
    }
    return 0;
}
