/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What StatCC needs to know about a program: how its miss ratio falls with the size of its share, and how
 * fast it fills a share.
 *
 * Both follow from the same function. In a stretch of r references a program touches, as StatStack
 * expects, ES(r) distinct lines, and the next reference adds a line with the chance that its own has not been
 * touched for r references, which is the miss ratio of a cache that holds just those ES(r) lines:
 *
 *     d ES(r) / d r = miss(ES(r)),     so     r(c) = integral from 0 to c of dx / miss(x)
 *
 * So any miss-ratio curve gives refs[] (statcc_curve_points; Xiang et al., ASPLOS 2013, have the same
 * identity for footprints). Where reuse distances are known, ES comes from them directly.
 *
 * Example: a stream of new lines misses always: r(c) = c. A loop over K lines misses always in
 * less than K lines, and never in more: r(c) = c up to K, infinite beyond.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/internal.h"
#include "model/statcc.h"

int statcc_curve_statstack(const struct hist *reuse, uint64_t dangling, struct statcc_curve *curve,
                           struct error *err)
{
    if (reuse->total == 0 && dangling == 0)
        return error_set(err, -ENODATA, "no reuse distances to model");
    struct model_expectation *e = malloc(sizeof *e);
    if (!e)
        return error_set(err, -ENOMEM, "out of memory for the StatStack model");
    model_expectation_fill(e, reuse, dangling);
    long double total = (long double)reuse->total + (long double)dangling;
    for (uint32_t b = 0; b <= HIST_BINS; b++) {
        long double refs;
        long double misses = model_expectation_reach(e, (long double)hist_edge(b) * total, &refs);
        curve->miss[b] = b ? (double)(misses / total) : 1;
        curve->refs[b] = (double)refs;
    }
    curve->known_lines = INFINITY;
    free(e);
    return 0;
}

int statcc_curve_exact(const struct hist *stack, const struct hist *reuse, uint64_t cold,
                       struct statcc_curve *curve, struct error *err)
{
    int code = statcc_curve_statstack(reuse, cold, curve, err);
    if (code != 0)
        return code;
    /* The sums that hist_at_least would calculate for each size, from the end. */
    double total = (double)stack->total + (double)cold, misses = (double)cold;
    curve->miss[HIST_BINS] = misses / total;
    for (uint32_t b = HIST_BINS; b-- > 0;) {
        misses += (double)stack->count[b];
        curve->miss[b] = misses / total;
    }
    curve->miss[0] = 1;
    return 0;
}

/* Miss ratio at so many lines on the straight line between two points, of which the left may be no lines. */
static double between(double lines, double left, double left_miss, double right, double right_miss)
{
    if (lines == right)
        return right_miss; /* exactly */
    return left_miss + (right_miss - left_miss) * (lines - left) / (right - left);
}

static int check_points(const struct curve_point *points, size_t n, unsigned line_bytes, size_t *known,
                        struct error *err)
{
    int code = model_check_points(points, n, line_bytes, err);
    *known = 0;
    for (size_t i = 0; code == 0 && i < n; i++) {
        if (i > 0 && !(points[i].size_bytes > points[i - 1].size_bytes))
            return error_set(err, -EINVAL, "the sizes of a miss-ratio curve must be in ascending order");
        if (isnan(points[i].miss_ratio))
            break;
        if (!(points[i].miss_ratio >= 0 && points[i].miss_ratio <= 1))
            return error_set(err, -EINVAL, "a miss ratio of %g is not between 0 and 1", points[i].miss_ratio);
        *known = i + 1;
    }
    if (code == 0 && *known == 0)
        return error_set(err, -EINVAL, "the miss-ratio curve has no points");
    return code;
}

int statcc_curve_points(const struct curve_point *points, size_t n, unsigned line_bytes,
                        struct statcc_curve *curve, struct error *err)
{
    size_t known, i = 0;
    int code = check_points(points, n, line_bytes, &known, err);
    if (code != 0)
        return code;
    double left = 0, left_miss = 1, right = points[0].size_bytes / line_bytes;
    double right_miss = points[0].miss_ratio;
    for (uint32_t b = 0; b <= HIST_BINS; b++) {
        double lines = (double)hist_edge(b);
        while (lines > right && i + 1 < known) {
            left = right;
            left_miss = right_miss;
            right = points[++i].size_bytes / line_bytes;
            right_miss = fmin(left_miss, points[i].miss_ratio);
        }
        curve->miss[b] = lines > right ? right_miss : between(lines, left, left_miss, right, right_miss);
    }
    curve->known_lines = known < n ? right : INFINITY;
    curve->refs[0] = 0;
    for (uint32_t b = 0; b < HIST_BINS; b++) {
        double from = curve->miss[b], to = curve->miss[b + 1];
        double width = (double)(hist_edge(b + 1) - hist_edge(b));
        /* The integral of 1 / (a straight line), which is 1 / from where it is level. */
        double mean = from - to > 1e-9 * from ? log(from / to) / (from - to) : 1 / from;
        curve->refs[b + 1] = to > 0 ? curve->refs[b] + width * mean : INFINITY;
    }
    return 0;
}

double statcc_curve_miss(const struct statcc_curve *curve, double lines)
{
    if (!(lines > 0))
        return curve->miss[0];
    if (lines >= (double)hist_edge(HIST_BINS))
        return curve->miss[HIST_BINS];
    uint32_t b = hist_bin((uint64_t)lines);
    double from = (double)hist_edge(b);
    if (lines == from)
        return curve->miss[b];
    return between(lines, from, curve->miss[b], (double)hist_edge(b + 1), curve->miss[b + 1]);
}

double statcc_curve_lines(const struct statcc_curve *curve, double refs)
{
    uint32_t low = 0, high = HIST_BINS; /* refs[low] <= refs < refs[high] */
    if (!(refs > 0))
        return 0;
    if (refs >= curve->refs[HIST_BINS])
        return (double)hist_edge(HIST_BINS);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (curve->refs[middle] <= refs)
            low = middle;
        else
            high = middle;
    }
    if (isinf(curve->refs[high])) {
        /* The miss ratio falls linearly to 0: the remaining lines decay exponentially. */
        double width = (double)(hist_edge(high) - hist_edge(low));
        return (double)hist_edge(low) + width * -expm1(-(refs - curve->refs[low]) * curve->miss[low] / width);
    }
    return between(refs, curve->refs[low], (double)hist_edge(low), curve->refs[high],
                   (double)hist_edge(high));
}
