/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rates.c - medians over similar bursts, and bounds for what single ones are weighed with.
 *
 * Problem. A rate comes from some 50 us of counting beside a burst. What else the machine does in these, and
 * that the counted code is not quite the burst's, make it wrong by half at times; bursts are weighed with it.
 *
 * Method. Bursts of the same code have the same traits: lines touched, and blocks, instructions and stores a
 * reference. The rate of a burst is the median over the NEIGHBOURS bursts nearest in these. A median, since
 * errors have long tails. Measured on five programs, two runs of 200 to 370 bursts each, mean error of the
 * curves over 1-128 KB: .215 points against .293 with the rates as they are (docs/accuracy.md).
 *
 * What a burst is weighed with has longer tails still: it is told by parts of a few microseconds. One burst
 * of python3's stood for 44% of the run, since a string instruction's references had come before it, 172 a
 * nanosecond. Such weights are right in the mean over many runs, and ruin one. So they are bounded: by so
 * many times the rate of the burst's own stretch, and by so many times that rate from which on half of the
 * references are (of the references, not of the bursts: of a program that is slow most of the time, the
 * median is that of its slow code). Of 11 programs, 72 runs of 50 to 320 bursts at 5%: mean error over 32 KB
 * to 8 MB .239 points against .276 without bounds, over 1-16 KB .427 against .541; the bounds may be 2 to 4
 * times without much of a difference.
 *
 * Where a program is the same for long, the rate right before a burst is that of the .1 ms before it: were
 * their logarithms' correlation to fall by exp(-t / T) with the references t in between, T would be
 * t / (1 - correlation), nearly. bzip2 has correlations of .67 to .86, bunzip2, which is in phases, of .98.
 */
#include "model/rates.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEIGHBOURS 9u
/* Of fewer bursts so small a part is taken, so that different code is not mixed. */
#define PART 10u
/* More bursts than these are compared with their like in a sample only. */
#define COMPARED 4000u
/* Times the rate of the burst's own stretch, and the median rate of references. */
#define MOST_OF_STRETCH 3.
#define MOST_OF_MEDIAN 2.5
/*
 * What is in between, and bounds of what is made of it. Mean errors over 512 KB to 8 MB of thirteen programs,
 * seven recordings of 15 to 60 seconds: .070, .070, .069, .070, .073 points with 1, 2, 3, 5, 8 times 10,000,
 * .077 with the same persistence for all (8e5, the best).
 */
#define BETWEEN 25000.
#define PERSISTS_LEAST 1e5
#define PERSISTS_MOST 1e7
/* Fewer bursts tell a correlation of .8 no better than to .07. */
#define PERSISTENCE_BURSTS 30u
/* A variance of the rates' logarithms that is rounding. */
#define NO_DIFFERENCE 1e-9

void rates_traits(struct rates_burst *b, double references, double lines, double blocks, double instructions,
                  double stores)
{
    double each = references > 0 ? 1 / references : 0;
    b->trait[0] = log(lines + 1);
    b->trait[1] = 4 * blocks * each;
    b->trait[2] = 2 * instructions * each;
    b->trait[3] = 6 * stores * each;
}

struct near {
    double distance, rate;
};

static int compare(const void *a, const void *b)
{
    const struct near *x = a, *y = b;
    return (x->rate > y->rate) - (x->rate < y->rate);
}

static double distance(const struct rates_burst *a, const struct rates_burst *b)
{
    double sum = 0;
    for (size_t i = 0; i < RATES_TRAITS; i++)
        sum += (a->trait[i] - b->trait[i]) * (a->trait[i] - b->trait[i]);
    return sum;
}

/* Keeps the k nearest, in no order but that the farthest is first. */
static void take(struct near *nearest, size_t *n, size_t k, struct near candidate)
{
    if (*n == k && candidate.distance >= nearest[0].distance)
        return;
    size_t at = *n < k ? (*n)++ : 0;
    nearest[at] = candidate;
    for (size_t i = 1; i < *n; i++)
        if (nearest[i].distance > nearest[0].distance) {
            struct near swap = nearest[i];
            nearest[i] = nearest[0];
            nearest[0] = swap;
        }
}

static double median_near(const struct rates_burst *bursts, size_t n, size_t i, size_t k)
{
    struct near nearest[NEIGHBOURS];
    size_t used = 0, step = n > COMPARED ? n / COMPARED : 1;
    if (bursts[i].refs_per_ns > 0)
        take(nearest, &used, k, (struct near){0, bursts[i].refs_per_ns});
    for (size_t j = i % step; j < n; j += step)
        if (j != i && bursts[j].refs_per_ns > 0)
            take(nearest, &used, k, (struct near){distance(&bursts[i], &bursts[j]), bursts[j].refs_per_ns});
    if (used == 0)
        return NAN;
    qsort(nearest, used, sizeof nearest[0], compare);
    return (nearest[(used - 1) / 2].rate + nearest[used / 2].rate) / 2;
}

int rates_smooth(struct rates_burst *bursts, size_t n)
{
    size_t k = n / PART < 1 ? 1 : n / PART > NEIGHBOURS ? NEIGHBOURS : n / PART;
    double *rate = malloc((n + 1) * sizeof *rate);
    if (!rate)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        rate[i] = median_near(bursts, n, i, k);
    for (size_t i = 0; i < n; i++)
        bursts[i].refs_per_ns = rate[i];
    free(rate);
    return 0;
}

double rates_persistence(const struct rates_near *near, size_t n)
{
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0, used = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(near[i].near_per_ns > 0) || !(near[i].refs_per_ns > 0))
            continue;
        double right_before = log(near[i].near_per_ns), around = log(near[i].refs_per_ns);
        used++;
        x += right_before;
        y += around;
        xx += right_before * right_before;
        yy += around * around;
        xy += right_before * around;
    }
    if (used < PERSISTENCE_BURSTS)
        return NAN;
    double both = sqrt(fmax(0, xx - x * x / used) * fmax(0, yy - y * y / used)),
           differs = both > NO_DIFFERENCE * used ? 1 - (xy - x * y / used) / both : 1;
    return fmax(PERSISTS_LEAST, fmin(PERSISTS_MOST, BETWEEN / fmax(differs, BETWEEN / PERSISTS_MOST)));
}

static int compare_rates(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double bounded(const struct rates_near *b)
{
    return b->refs_per_ns > 0 ? fmin(b->near_per_ns, MOST_OF_STRETCH * b->refs_per_ns) : b->near_per_ns;
}

int rates_bound(struct rates_near *near, size_t n)
{
    double *rate = malloc((n + 1) * sizeof *rate), sum = 0, below = 0;
    size_t used = 0, median = 0;
    if (!rate)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (near[i].near_per_ns > 0)
            sum += rate[used++] = bounded(&near[i]);
    /* Bursts come at equal steps of time, in which references come as the rate is. */
    qsort(rate, used, sizeof *rate, compare_rates);
    sum -= used ? rate[used - 1] : 0; /* which may be more than all others */
    while (median + 1 < used && (below += rate[median]) < sum / 2)
        median++;
    for (size_t i = 0; i < n; i++)
        if (near[i].near_per_ns > 0)
            near[i].near_per_ns = fmin(bounded(&near[i]), MOST_OF_MEDIAN * rate[median]);
    free(rate);
    return 0;
}
