/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StatStack: LRU miss ratios from reuse distances alone (docs/methods.md, section 3).
 *
 * Problem. A reuse distance counts references between two touches of a line; whether an LRU cache hits
 * depends on the number of distinct lines. Many of the references may be to one line.
 *
 * Method. Of the references between the two touches, count for each line only the last. The reference
 * that is j steps before the closing one (j = 1 .. r, r the reuse distance) is the last of its line there
 * if and only if its own next touch comes after the closing reference: a step of more than j, which is a
 * forward distance d >= j. (A step of j exactly, d = j - 1, would be the closing reference itself.) With
 * F(j) the share of references with d >= j, dangling ones included, the expected stack distance is
 *
 *     ES(r) = F(1) + ... + F(r)
 *
 * and the miss ratio at L lines the share of references with ES(d) >= L, plus the dangling share. ES
 * grows with r, so those are the references with d >= r', r' the smallest r with ES(r) >= L.
 *
 * Sums are kept in counts, N * ES, so that whole numbers stay exact; the comparison is with N * L.
 * Within a bin of width w holding c, spread evenly, the count with d >= edge + k is A - c k / w, and
 *     N ES(edge + k) = N ES(edge) + k A - c k (k + 1) / (2 w).
 *
 * Example: a b c a b c a b c. Six reuses of distance 2, three dangling. F(1) = F(2) = 1, F(3) = 3/9.
 * ES(2) = 2: six hits with 3 lines, miss ratio 3/9; none with 2 lines.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/internal.h"

static long double bin_width(uint32_t bin)
{
    return (long double)(hist_edge(bin + 1) - hist_edge(bin));
}

static long double sum_within(const struct model_expectation *e, uint32_t bin, long double k)
{
    long double count = e->reach[bin] - e->reach[bin + 1];

    return e->sum[bin] + k * e->reach[bin] - count * k * (k + 1) / (2 * bin_width(bin));
}

void model_expectation_fill(struct model_expectation *e, const struct hist *reuse, uint64_t dangling)
{
    e->reach[HIST_BINS] = (long double)dangling;
    for (uint32_t bin = HIST_BINS; bin-- > 0;)
        e->reach[bin] = e->reach[bin + 1] + (long double)reuse->count[bin];
    e->sum[0] = 0;
    for (uint32_t bin = 0; bin < HIST_BINS; bin++)
        e->sum[bin + 1] = sum_within(e, bin, bin_width(bin));
}

long double model_expectation_reach(const struct model_expectation *e, long double goal, long double *refs)
{
    uint32_t low = 0, high = HIST_BINS; /* the first edge that reaches the goal is in (low, high] */

    if (e->sum[HIST_BINS] < goal) {
        *refs = INFINITY;
        return e->reach[HIST_BINS];
    }
    if (goal <= 0) {
        *refs = 0;
        return e->reach[0];
    }
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (e->sum[middle] >= goal)
            high = middle;
        else
            low = middle;
    }
    long double width = bin_width(low), below = 0, reached = width;
    while (reached - below > 1) {
        long double k = floorl((below + reached) / 2);
        if (sum_within(e, low, k) >= goal)
            reached = k;
        else
            below = k;
    }
    *refs = (long double)hist_edge(low) + reached;
    return e->reach[low] - (e->reach[low] - e->reach[low + 1]) * reached / width;
}

int curve_statstack(const struct hist *reuse, uint64_t dangling, unsigned line_bytes,
                    struct curve_point *points, size_t n, struct error *err)
{
    int code = model_check_points(points, n, line_bytes, err);
    long double total = (long double)reuse->total + (long double)dangling;
    struct model_expectation *e;

    if (code < 0)
        return code;
    e = malloc(sizeof *e);
    if (!e)
        return error_set(err, -ENOMEM, "out of memory for the StatStack model");
    model_expectation_fill(e, reuse, dangling);
    for (size_t i = 0; i < n; i++) {
        long double refs, goal = (long double)model_lines(&points[i], line_bytes) * total;
        long double misses = model_expectation_reach(e, goal, &refs);
        model_set_point(&points[i], total > 0 ? (double)(misses / total) : NAN);
    }
    free(e);
    return 0;
}

void curve_statstack_window(const struct hist *reuse, uint64_t dangling, struct hist *expected)
{
    double total = (double)reuse->total + (double)dangling, reach = total;
    double sum = 0, at = 0; /* N * ES(at) */

    /* Called for every window of a run: nearly all bins are empty and must cost nothing. */
    for (uint32_t bin = 0; bin < HIST_BINS; bin++) {
        if (reuse->count[bin] == 0)
            continue;
        double edge = (double)hist_edge(bin), width = (double)hist_edge(bin + 1) - edge;
        double count = (double)reuse->count[bin], middle = (width - 1) / 2;
        sum += (edge - at) * reach;
        double here = sum + middle * reach - count * middle * (middle + 1) / (2 * width);
        hist_add(expected, (uint64_t)(here / total), reuse->count[bin]);
        sum += width * reach - count * (width + 1) / 2;
        at = edge + width;
        reach -= count;
    }
}
