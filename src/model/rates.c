/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rates.c - bounds for single weights.
 *
 * The rate that weights a burst (near_per_ns) comes from a few microseconds, and its errors have long tails.
 * One burst of python3 had 44% of the total weight, because a string instruction preceded it. Such weights
 * are unbiased over many runs and useless in one. They are bounded at MOST_OF_STRETCH times the rate of the
 * burst's own counting stretch and at MOST_OF_MEDIAN times the median rate, by references (by bursts, the
 * median of a program that is slow most of the time would be the rate of its slow code). 11 programs, 72 runs
 * of 50 to 320 bursts at a budget of 5%: mean error over 32 KB to 8 MB 0.239 percentage points against 0.276
 * without bounds, over 1-16 KB 0.427 against 0.541. Bounds between 2 and 4 make little difference.
 *
 * Before some bursts nothing could be timed. Their neighbours in time may execute quite different code: what
 * fills new pages makes few references per ns, and was given the high rate of its neighbours. With one of 19
 * bursts of python3 it gave 18% at 1 MB, where 2% are exact. So such a burst takes the rate of the one that
 * is most like it. (18 recordings of seven programs that have such bursts: mean error over 32 KB to 8 MB 0.29
 * instead of 1.29 points. Two of python3 make the difference; the others' mean is 0.28 and 0.27.)
 */
#include "model/rates.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"

/* Bounds of a weight; see above. */
#define MOST_OF_STRETCH 3.
#define MOST_OF_MEDIAN 2.5

static double bounded(const struct rates_pair *b)
{
    return b->refs_per_ns > 0 ? fmin(b->near_per_ns, MOST_OF_STRETCH * b->refs_per_ns) : b->near_per_ns;
}

int rates_bound(struct rates_pair *pairs, size_t n)
{
    double *rate = malloc((n + 1) * sizeof *rate), sum = 0, below = 0;
    size_t used = 0, median = 0;
    if (!rate)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (pairs[i].near_per_ns > 0)
            sum += rate[used++] = bounded(&pairs[i]);
    /* Bursts come at equal steps of time, so a burst represents references in proportion to its rate. */
    qsort(rate, used, sizeof *rate, array_compare_doubles);
    sum -= used ? rate[used - 1] : 0; /* the largest, which may exceed the sum of all others */
    while (median + 1 < used && (below += rate[median]) < sum / 2)
        median++;
    for (size_t i = 0; i < n; i++)
        if (pairs[i].near_per_ns > 0)
            pairs[i].near_per_ns = fmin(bounded(&pairs[i]), MOST_OF_MEDIAN * rate[median]);
    free(rate);
    return 0;
}

static double rate_of(const struct rates_pair *b)
{
    return isnan(b->near_per_ns) ? b->refs_per_ns : b->near_per_ns;
}

/* A burst whose rate was measured. */
struct measured {
    double lines, rate; /* lines: logarithm of lines_each */
};

static int compare_lines(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;
    return (x->lines > y->lines) - (x->lines < y->lines);
}

/* The one that is most like a burst with that logarithm; list[n], n above 0, in rising order. */
static const struct measured *most_like(const struct measured *list, size_t n, double lines)
{
    size_t low = 0, high = n; /* the first one above */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].lines <= lines)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == n || (low > 0 && lines - list[low - 1].lines <= list[low].lines - lines))
        low--;
    return &list[low];
}

int rates_fill(struct rates_pair *pairs, size_t n)
{
    struct measured *list = malloc((n + 1) * sizeof *list);
    size_t used = 0;
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (pairs[i].lines_each > 0 && rate_of(&pairs[i]) > 0)
            list[used++] = (struct measured){log(pairs[i].lines_each), rate_of(&pairs[i])};
    qsort(list, used, sizeof *list, compare_lines);
    for (size_t i = 0; i < n && used > 0; i++)
        if (pairs[i].lines_each > 0 && isnan(rate_of(&pairs[i])))
            pairs[i].refs_per_ns = most_like(list, used, log(pairs[i].lines_each))->rate;
    free(list);
    return 0;
}
