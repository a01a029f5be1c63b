/* SPDX-License-Identifier: Apache-2.0 */
/* watched-common.c - checks, counts and intervals shared by the models of bursts with watched lines. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "model/watched-internal.h"

/*
 * The model's own error, which the bootstrap does not contain, as measured against exact curves
 * (docs/accuracy.md): 0.05 percentage points and a tenth of the miss ratio. Below 32 KB, where the distances
 * inside bursts are exact, a twentieth.
 */
#define SMALL_CACHE_BYTES 32768.0
#define SMALL_FLOOR_PART 0.05
#define FLOOR 0.0005
#define FLOOR_PART 0.1
/*
 * Rates measured without hardware counters have an error that is alike for all code of a kind: the ratio of
 * slow to fast code is over- or underestimated. In each resample rates are therefore raised to the power
 * 1 + a normal variable with this standard deviation. With it and the terms above, 92% of the intervals of
 * twelve programs hold the exact value at a budget of 5%.
 */
#define RATE_DOUBT 0.25

int watched_check(const struct curve_burst *bursts, size_t n, int *followed, struct error *err)
{
    double total = 0;
    size_t watches = 0;
    for (size_t b = 0; b < n; b++) {
        int code = model_check_bursts(&bursts[b], 1, err);
        if (code < 0)
            return code;
        if ((double)bursts[b].nwatches > (double)bursts[b].first.total)
            return error_set(err, -EINVAL, "burst number %zu has more watches than survivors", b + 1);
        for (size_t i = 0; i < bursts[b].nwatches; i++) {
            const struct curve_watch *watch = &bursts[b].watches[i];
            int endless = watch->outcome == CURVE_ENDLESS;
            if (!(watch->position >= 0 && watch->position < (double)bursts[b].first.total) ||
                !(watch->age >= watch->position && isfinite(watch->age)) ||
                !(endless || (watch->refs >= 0 && isfinite(watch->refs))))
                return error_set(err, -EINVAL,
                                 "a watch of burst number %zu is not valid: position %g, age %g, "
                                 "%g references",
                                 b + 1, watch->position, watch->age, watch->refs);
        }
        total += watched_share(&bursts[b]);
        watches += bursts[b].nwatches;
    }
    *followed = total > 0 && watches > 0;
    return 0;
}

int curve_check_watched(const struct curve_burst *bursts, size_t nbursts, struct error *err)
{
    int ignored;
    return watched_check(bursts, nbursts, &ignored, err);
}

double watched_share(const struct curve_burst *burst)
{
    return burst->references > 0 ? burst->weight / (double)burst->references : 0;
}

double watched_weight(const struct curve_burst *burst, const struct curve_watch *watch)
{
    return watch->weight > 0 ? watch->weight : (double)burst->first.total / (double)burst->nwatches;
}

static int compare_seen(const void *a, const void *b)
{
    const struct watched_seen *x = a, *y = b;

    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return x->censored - y->censored;
}

size_t watched_list(const struct curve_burst *bursts, size_t n, const double *distance,
                    struct watched_seen *seen)
{
    size_t number = 0, used = 0;
    for (size_t b = 0; b < n; b++) {
        double share = watched_share(&bursts[b]);
        for (size_t i = 0; i < bursts[b].nwatches; i++, number++) {
            const struct curve_watch *watch = &bursts[b].watches[i];
            if (share > 0)
                seen[used++] = (struct watched_seen){
                    .position = watch->position,
                    .distance = distance[number],
                    .weight = share * watched_weight(&bursts[b], watch),
                    .number = number,
                    .burst = (uint32_t)b,
                    .censored = watch->outcome == CURVE_CENSORED,
                };
        }
    }
    qsort(seen, used, sizeof *seen, compare_seen);
    return used;
}

void watched_counts(const struct curve_burst *burst, struct growth_counts *counts)
{
    growth_add_hist(counts, GROWTH_EVENT, &burst->reuse);
    if (burst->nwatches == 0)
        growth_add_hist(counts, GROWTH_CENSORED, &burst->age);
    for (size_t i = 0; i < burst->nwatches; i++) {
        const struct curve_watch *watch = &burst->watches[i];
        double each = watched_weight(burst, watch);
        if (watch->outcome == CURVE_ENDLESS)
            counts->endless += each;
        else if (watch->outcome == CURVE_CENSORED)
            counts->censored[growth_bin(watch->age + watch->refs)] += each;
        else
            counts->event[growth_bin(watch->age + watch->refs)] += each;
    }
}

/* Of the bursts that are a sample, those with a weight: of a phase's curve, the phase's own. */
static size_t weighted(const struct curve_burst *bursts, size_t n)
{
    size_t used = 0, sampled = model_sampled(bursts, n);
    for (size_t b = 0; b < sampled; b++)
        used += watched_share(&bursts[b]) > 0;
    return used;
}

void watched_draw(struct random_state *random, const struct curve_burst *bursts, const double *share,
                  size_t n, double *times)
{
    size_t sampled = model_sampled(bursts, n), used = weighted(bursts, n);

    memset(times, 0, n * sizeof *times);
    for (size_t k = 0, b; k < used; k++) {
        do
            b = (size_t)random_below(random, sampled);
        while (!(share[b] > 0));
        times[b]++;
    }
    for (size_t b = sampled; b < n; b++)
        times[b] = 1;
    double power = RATE_DOUBT * model_random_normal(random), normal = model_random_normal(random);
    for (size_t b = 0; b < n; b++)
        if (times[b] > 0 && bursts[b].log_rate != 0)
            times[b] *= exp(power * bursts[b].log_rate);
    for (size_t b = 0; b < n; b++)
        if (times[b] > 0 && bursts[b].scale_doubt > 0)
            times[b] *= exp(bursts[b].scale_doubt * normal);
}

double watched_few(const struct curve_burst *bursts, size_t n)
{
    /* 97.5% quantiles of Student's distribution, by degrees of freedom; they tend to the normal one. */
    static const double student[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23};
    size_t sampled = weighted(bursts, n), degrees = sampled - 1;
    if (sampled < 2)
        return 1;
    double quantile = degrees <= sizeof student / sizeof student[0] ? student[degrees - 1]
                                                                    : MODEL_NORMAL_95 + 2.7 / (double)degrees;
    return quantile / MODEL_NORMAL_95 * sqrt((double)sampled / (double)degrees);
}

void watched_band(struct curve_point *point, double sd)
{
    double ratio = point->miss_ratio;
    double part = point->size_bytes < SMALL_CACHE_BYTES ? SMALL_FLOOR_PART : FLOOR_PART;
    double floor = FLOOR + part * ratio;
    double half = sqrt(4 * sd * sd + floor * floor);

    point->low = fmax(0, ratio - half);
    point->high = fmin(1, ratio + half);
}

double watched_effective(const double *weight, size_t n)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        sum += weight[i];
        squares += weight[i] * weight[i];
    }
    return squares > 0 ? sum * sum / squares : 0;
}

/* The square of two standard errors. */
#define WILSON_Z2 4.0

void watched_wilson(double share, double n, double *low, double *high)
{
    double scale = n + WILSON_Z2, centre = n * share + WILSON_Z2 / 2;
    double half = sqrt(WILSON_Z2 * (n * share * (1 - share) + WILSON_Z2 / 4));

    *low = fmax(0, (centre - half) / scale);
    *high = fmin(1, (centre + half) / scale);
}

double curve_unseen_share(size_t nbursts)
{
    return nbursts > 3 ? 3 / (double)nbursts : 1;
}
