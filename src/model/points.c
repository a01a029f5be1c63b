/* SPDX-License-Identifier: Apache-2.0 */
/* points.c - checks of the callers' arguments, shared by all curves; the memory of a burst. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/internal.h"

double model_lines(const struct curve_point *point, unsigned line_bytes)
{
    double lines = floor(point->size_bytes / line_bytes);

    return lines < 1 ? 1 : lines;
}

static int compare_sizes(const void *a, const void *b)
{
    const struct model_size *x = a, *y = b;

    if (x->lines != y->lines)
        return x->lines < y->lines ? -1 : 1;
    return (x->point > y->point) - (x->point < y->point);
}

void model_rising_sizes(const struct curve_point *points, size_t n, unsigned line_bytes,
                        struct model_size *sizes, double *lines)
{
    for (size_t i = 0; i < n; i++)
        sizes[i] = (struct model_size){model_lines(&points[i], line_bytes), i};
    qsort(sizes, n, sizeof *sizes, compare_sizes);
    for (size_t i = 0; i < n; i++)
        lines[i] = sizes[i].lines;
}

int model_check_points(const struct curve_point *points, size_t n, unsigned line_bytes, struct error *err)
{
    if (line_bytes == 0)
        return error_set(err, -EINVAL, "the line size is 0 bytes: it must be at least 1");
    for (size_t i = 0; i < n; i++)
        if (!isfinite(points[i].size_bytes) || points[i].size_bytes <= 0)
            return error_set(err, -EINVAL, "cache size number %zu is %g bytes: it must be above 0", i + 1,
                             points[i].size_bytes);
    return 0;
}

void model_set_point(struct curve_point *point, double miss_ratio)
{
    point->miss_ratio = point->low = point->high = miss_ratio;
}

int model_check_bursts(const struct curve_burst *bursts, size_t nbursts, struct error *err)
{
    for (size_t b = 0; b < nbursts; b++) {
        if (!isfinite(bursts[b].weight) || bursts[b].weight < 0)
            return error_set(err, -EINVAL, "burst number %zu has weight %g: it must be 0 or more", b + 1,
                             bursts[b].weight);
        if (bursts[b].references != bursts[b].stack.total + bursts[b].first.total)
            return error_set(
                err, -EINVAL, "burst number %zu has %llu references, but %llu reuses and %llu first touches",
                b + 1, (unsigned long long)bursts[b].references, (unsigned long long)bursts[b].stack.total,
                (unsigned long long)bursts[b].first.total);
    }
    return 0;
}

int model_check_points_and_bursts(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                                  const struct curve_point *points, size_t n, struct error *err)
{
    int code = model_check_points(points, n, line_bytes, err);
    return code == 0 ? model_check_bursts(bursts, nbursts, err) : code;
}

size_t model_sampled(const struct curve_burst *bursts, size_t n)
{
    while (n > 0 && bursts[n - 1].certain)
        n--;
    return n;
}

double model_random_normal(struct random_state *random)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += random_unit(random);
    return sum;
}

void curve_burst_clear(struct curve_burst *b)
{
    packed_hist_clear(&b->stack);
    packed_hist_clear(&b->reuse);
    packed_hist_clear(&b->first);
    packed_hist_clear(&b->age);
}
