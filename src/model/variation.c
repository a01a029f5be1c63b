/* SPDX-License-Identifier: Apache-2.0 */
#include "model/variation.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/random.h"

/* A difference is significant if at most MOST_ALIKE of so many random orders of the values have as large a
 * one. */
#define SHUFFLES 300u
#define MOST_ALIKE 1u
/* Smaller differences are not reported, significant or not. */
#define LEAST_POINTS 0.001 /* differences of miss ratios */
#define LEAST_FIRST 0.2    /* of the others' mean */
#define LEAST_INSTANCE 0.1 /* of the phase's mean */
#define LEAST_PERIODIC 0.4 /* of the variance */
/* Fewest windows and instances. */
#define LEAST_WINDOWS 12u
#define LEAST_INSTANCES 4u
#define PERIODS 4u /* in all windows */
#define LONGEST_PERIOD 64u

struct series {
    const uint32_t *instance;
    size_t n;
    size_t ninstances, nfirst; /* instances; those with several windows, whose first one counts */
};

static double mean(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return sum / (double)n;
}

static int is_first(const struct series *s, size_t i)
{
    return i == 0 || s->instance[i] != s->instance[i - 1];
}

/* A window that follows another one of its instance. */
static int is_inside(const struct series *s, size_t i)
{
    return !is_first(s, i);
}

/* The first windows of instances that have several, against the others. */
static double first_difference(const struct series *s, const double *values, double *first, double *others)
{
    double sums[2] = {0, 0}, counts[2] = {0, 0};
    for (size_t i = 0; i < s->n; i++) {
        int begins = is_first(s, i);
        if (begins && (i + 1 == s->n || is_first(s, i + 1)))
            continue;
        sums[begins] += values[i];
        counts[begins]++;
    }
    *first = counts[1] > 0 ? sums[1] / counts[1] : 0;
    *others = counts[0] > 0 ? sums[0] / counts[0] : 0;
    return fabs(*first - *others);
}

/* Standard deviation of the means of instances, weighted by their windows. */
static double instance_deviation(const struct series *s, const double *values)
{
    double all = mean(values, s->n), sum = 0;
    for (size_t i = 0, end; i < s->n; i = end) {
        for (end = i + 1; end < s->n && is_inside(s, end); end++)
            ;
        double difference = mean(values + i, end - i) - all;
        sum += difference * difference * (double)(end - i);
    }
    return sqrt(sum / (double)s->n);
}

/* Correlation of windows that are so many apart within an instance; NaN: too few. */
static double correlation(const struct series *s, const double *values, double all, size_t lag)
{
    double sum = 0, squares = 0;
    size_t n = 0;
    for (size_t i = 0; i + lag < s->n; i++) {
        if (s->instance[i] != s->instance[i + lag])
            continue;
        double x = values[i] - all, y = values[i + lag] - all;
        sum += x * y;
        squares += (x * x + y * y) / 2;
        n++;
    }
    return n >= LEAST_WINDOWS && squares > 0 ? sum / squares : NAN;
}

/* By how much more windows a period apart are alike than those half a period apart, at the period where that
 * is most. */
static double periodicity(const struct series *s, const double *values, size_t *period)
{
    double all = mean(values, s->n), most = 0, at[LONGEST_PERIOD + 1];
    size_t longest = s->n / PERIODS < LONGEST_PERIOD ? s->n / PERIODS : LONGEST_PERIOD;
    *period = 0;
    for (size_t lag = 1; lag <= longest; lag++) {
        at[lag] = correlation(s, values, all, lag);
        double gain = lag >= 2 ? at[lag] - at[(lag + 1) / 2] : NAN;
        /* A multiple of a period is one, too: the shortest counts. */
        if (gain > most + 0.05) {
            most = gain;
            *period = lag;
        }
    }
    return most;
}

static void shuffle(double *values, size_t n, struct random_state *random)
{
    for (size_t i = n; i > 1; i--) {
        size_t k = random_below(random, i);
        double value = values[k];
        values[k] = values[i - 1];
        values[i - 1] = value;
    }
}

int variation_find(const double *values, const uint32_t *instance, size_t n, struct variation *v)
{
    struct series s = {.instance = instance, .n = n};
    size_t period = 0, ignored_period;
    double first = 0, others = 0, ignored[2];
    *v = (struct variation){0};
    for (size_t i = 0; i < n; i++) {
        s.ninstances += (unsigned)is_first(&s, i);
        s.nfirst += is_first(&s, i) && i + 1 < n && is_inside(&s, i + 1);
    }
    if (n < LEAST_WINDOWS)
        return 0;
    double *shuffled = malloc(n * sizeof *shuffled);
    if (shuffled == NULL)
        return -ENOMEM;
    memcpy(shuffled, values, n * sizeof *shuffled);
    double all = mean(values, n), transition = first_difference(&s, values, &first, &others),
           deviation = instance_deviation(&s, values), periodic = periodicity(&s, values, &period);
    unsigned alike[3] = {0};
    struct random_state random;
    random_seed(&random, 1);
    for (unsigned i = 0; i < SHUFFLES; i++) {
        shuffle(shuffled, n, &random);
        alike[0] += first_difference(&s, shuffled, &ignored[0], &ignored[1]) >= transition;
        alike[1] += instance_deviation(&s, shuffled) >= deviation;
        alike[2] += periodicity(&s, shuffled, &ignored_period) >= periodic;
    }
    free(shuffled);
    v->first = v->others = all;
    if (s.nfirst >= LEAST_INSTANCES && alike[0] <= MOST_ALIKE && transition >= LEAST_POINTS &&
        transition >= LEAST_FIRST * others) {
        v->first = first;
        v->others = others;
    }
    if (s.ninstances >= LEAST_INSTANCES && alike[1] <= MOST_ALIKE && deviation >= LEAST_POINTS &&
        deviation >= LEAST_INSTANCE * all)
        v->instance = deviation / all;
    if (periodic >= LEAST_PERIODIC && alike[2] <= MOST_ALIKE)
        v->period = period;
    return 0;
}
