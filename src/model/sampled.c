/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The LRU curve from the stack distances of a sample of lines (SHARDS; docs/methods.md, section 5).
 *
 * The sample contains the share `rate` of the distinct lines between two touches of a line; a distance of d
 * in the sample estimates d / rate. So a cache of L lines corresponds to one of rate * L lines of the sample.
 * Of N touches rate * N are expected in the sample. The actual number differs mostly by the touches of a few
 * hot lines, which hit at all sizes of interest, so misses are divided by the expected number.
 *
 * There are two errors. (1) The choice of lines: if the miss ratios of eight equal parts of the sample have
 * the standard deviation sd, their mean has sd / sqrt(8), times sqrt(1 - rate), the correction for a finite
 * population. Student's t with 7 degrees of freedom makes a 95% interval of it. (2) The length of distances:
 * L lines have rate * L lines in the sample in the mean, with variance rate * L * (1 - rate). The square root
 * of such a number has the same variance everywhere, (1 - rate) / 4, so the range of sizes is three standard
 * deviations around the root. 95% of the number would not do: where a program walks again and again over so
 * many lines as the cache holds, each walk has its own number of lines in the sample, and 2.5% of all misses
 * would be beyond that end.
 *
 * The interval extends from the low end of (1) at the larger size to the high end at the smaller. The errors
 * are not independent, so their squares do not add up: a sample with too many lines of a walk has both too
 * many misses and distances that are too long.
 *
 * Measured (docs/accuracy-models.md): the intervals of 100 samples hold the exact value in 92 to 98% of
 * cases.
 *
 * Example: rate 1/2, 100 touches, 40 of them in the sample, 5 cold ones and 10 with distances of 16 and more.
 * A cache of 32 lines is one of 16 to the sample: (10 + 5) / 50 = 30% misses.
 */
#include <math.h>

#include "model/internal.h"

/* 97.5% quantile of Student's t, 7 degrees of freedom. */
#define STUDENT_T 2.365
/* Of the number of lines: 0.13% of walks are beyond each end. */
#define LENGTH_DEVIATIONS 3.0
/* Lines of the sample below which there is no answer. At 8, the range of a size is a fifth of it to more
 * than twice. */
#define LINES_MIN 8

static double ratio(const struct hist *stack, uint64_t cold, double lines, double touches)
{
    double misses = hist_at_least(stack, lines) + (double)cold;
    return fmin(misses / touches, 1);
}

/* Half of the interval for the choice of lines. */
static double choice_error(const struct curve_sample *s, double lines, double touches)
{
    double groups = CURVE_SAMPLE_GROUPS, sum = 0, squares = 0;
    for (unsigned g = 0; g < CURVE_SAMPLE_GROUPS; g++) {
        double m = ratio(s->group_stack[g], s->group_cold[g], lines, touches / groups);
        sum += m;
        squares += m * m;
    }
    double variance = fmax(squares - sum * sum / groups, 0) / (groups - 1) * (1 - s->rate);
    return STUDENT_T * sqrt(variance / groups);
}

static void set_point(const struct curve_sample *s, double lines, struct curve_point *point)
{
    double touches = s->rate * (double)s->touches;
    double shift = LENGTH_DEVIATIONS * sqrt(1 - s->rate) / 2;
    double fewer = pow(fmax(sqrt(lines) - shift, 0), 2), more = pow(sqrt(lines) + shift, 2);
    point->miss_ratio = ratio(s->stack, s->cold, lines, touches);
    point->low = fmax(ratio(s->stack, s->cold, more, touches) - choice_error(s, more, touches), 0);
    point->high = fmin(ratio(s->stack, s->cold, fewer, touches) + choice_error(s, fewer, touches), 1);
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
