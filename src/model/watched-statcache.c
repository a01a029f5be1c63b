/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The curve under random replacement from bursts with watched lines (docs/methods.md, sections 2 and 6).
 *
 * StatCache (statcache.c) needs the distribution of reuse distances, in references. Every reference of a
 * burst is an origin: a reuse inside it is exact; of its survivors, the watched lines represent all.
 * Kaplan-Meier over all of them (growth.c) gives the distribution; lines never touched again always miss.
 *
 * If all watched lines were censored before some distance, the distribution beyond is not known: reuse right
 * there and no reuse at all give bounds. There is no centre unless a line that old has more likely than not
 * been replaced (as in bursts-statcache.c).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "model/watched-internal.h"

/* Fewest bursts in a window: fewer have too few reuses for a distribution. */
#define WINDOW_BURSTS 10u
#define LEAST_WINDOWS 4u /* fewest for an estimate of the variance between windows */
#define MOST_WINDOWS 32u

struct work {
    struct growth_counts *burst; /* of each, times its share */
    struct growth_counts sum;
    struct growth growth;
    struct growth tail; /* of all bursts: used beyond what a window's bursts cover */
    uint32_t tail_known;
    double *share;
    double *times;
    double distance[GROWTH_BINS + 1], part[GROWTH_BINS + 1];
};

static void work_free(struct work *w)
{
    if (!w)
        return;
    free(w->burst);
    free(w->share);
    free(w->times);
    free(w);
}

static struct work *work_new(const struct curve_burst *bursts, size_t nbursts)
{
    struct work *w = calloc(1, sizeof *w);
    struct growth_counts *counts = malloc(sizeof *counts);

    if (w && counts) {
        w->burst = calloc(nbursts + 1, sizeof *w->burst);
        w->share = calloc(nbursts + 1, sizeof *w->share);
        w->times = calloc(nbursts + 1, sizeof *w->times);
    }
    if (!w || !counts || !w->burst || !w->share || !w->times) {
        free(counts);
        work_free(w);
        return NULL;
    }
    for (size_t b = 0; b < nbursts; b++) {
        w->share[b] = watched_share(&bursts[b]);
        w->times[b] = 1;
        *counts = (struct growth_counts){.endless = 0};
        watched_counts(&bursts[b], counts);
        growth_add_counts(&w->burst[b], counts, w->share[b]);
    }
    free(counts);
    return w;
}

/* The distribution from the bursts, each counted w->times times. */
struct distribution {
    struct model_spectrum spectrum;
    uint32_t known; /* bins; nothing is known beyond them: */
    double horizon; /* INFINITY: the rest is known to have no end */
    double beyond;  /* share of the distances beyond it */
};

static struct distribution find_distribution(struct work *w, size_t nbursts)
{
    w->sum = (struct growth_counts){.endless = 0};
    for (size_t b = 0; b < nbursts; b++)
        if (w->times[b] > 0)
            growth_add_counts(&w->sum, &w->burst[b], w->times[b]);
    uint32_t known = growth_estimate(&w->sum, 0, &w->growth);
    if (known < w->tail_known) {
        growth_splice(&w->growth, &w->tail, known);
        known = w->tail_known;
    }
    struct distribution d = {.spectrum = {.distance = w->distance, .share = w->part}};
    for (uint32_t bin = 0; bin < known; bin++) {
        double part = w->growth.share[bin] - w->growth.share[bin + 1];
        if (part <= 0)
            continue;
        w->distance[d.spectrum.n] = (growth_edge(bin) + growth_edge(bin + 1) - 1) / 2;
        w->part[d.spectrum.n++] = part;
    }
    d.beyond = w->growth.share[known];
    d.known = known;
    d.horizon = known < GROWTH_BINS ? growth_edge(known) : INFINITY;
    return d;
}

/* Fills the points; low..high are bounds without sampling noise. Returns the number of known bins. */
static uint32_t estimate(struct work *w, size_t nbursts, unsigned line_bytes, struct curve_point *points,
                         size_t n)
{
    struct distribution d = find_distribution(w, nbursts);
    for (size_t i = 0; i < n; i++)
        model_statcache_bounds(&d.spectrum, d.beyond, d.horizon, model_lines(&points[i], line_bytes),
                               &points[i]);
    return d.known;
}

/* Adds sampling noise and model error to the bounds low..high. */
static void widen(struct curve_point *point, double sd)
{
    struct curve_point low = *point, high = *point;

    low.miss_ratio = point->low;
    high.miss_ratio = point->high;
    watched_band(&low, sd);
    watched_band(&high, sd);
    point->low = low.low;
    point->high = high.high;
}

static int find_bands(struct work *w, const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                      uint64_t seed, struct curve_point *points, size_t n)
{
    double *sum = calloc(2 * n + 1, sizeof *sum);
    struct random_state random;
    unsigned resamples = watched_resamples(nbursts);

    if (!sum)
        return -ENOMEM;
    random_seed(&random, seed);
    for (unsigned r = 0; r < resamples; r++) {
        watched_draw(&random, bursts, w->share, nbursts, w->times);
        struct distribution d = find_distribution(w, nbursts);
        for (size_t i = 0; i < n; i++) {
            double lines = model_lines(&points[i], line_bytes);
            double difference = model_statcache_solve(&d.spectrum, d.beyond, lines) - points[i].high;
            sum[2 * i] += difference;
            sum[2 * i + 1] += difference * difference;
        }
    }
    for (size_t i = 0; i < n; i++) {
        double mean = sum[2 * i] / resamples;
        widen(&points[i],
              watched_few(bursts, nbursts) * sqrt(fmax(0, sum[2 * i + 1] / resamples - mean * mean)));
    }
    free(sum);
    return 0;
}

/* The mean of n windows, each solved by itself; intervals from the differences between them. */
static int estimate_windows(struct work *w, const struct curve_burst *bursts, size_t nbursts,
                            unsigned line_bytes, size_t nwindows, struct curve_point *points, size_t n)
{
    struct curve_point *part = malloc((nwindows * n + 1) * sizeof *part);
    double *weight = calloc(nwindows, sizeof *weight), total = 0;

    if (!part || !weight) {
        free(part);
        free(weight);
        return -ENOMEM;
    }
    for (size_t k = 0; k < nwindows; k++) {
        memset(w->times, 0, nbursts * sizeof *w->times);
        for (size_t b = nbursts * k / nwindows; b < nbursts * (k + 1) / nwindows; b++) {
            w->times[b] = 1;
            weight[k] += w->share[b] * (double)bursts[b].references;
        }
        total += weight[k];
        memcpy(part + k * n, points, n * sizeof *part);
        estimate(w, nbursts, line_bytes, part + k * n, n);
    }
    for (size_t i = 0; i < n; i++) {
        double squares = 0;
        points[i].miss_ratio = points[i].low = points[i].high = 0;
        for (size_t k = 0; k < nwindows; k++) {
            const struct curve_point *p = &part[k * n + i];
            if (weight[k] <= 0)
                continue;
            points[i].miss_ratio += weight[k] / total * p->miss_ratio; /* NaN if one window has no answer */
            points[i].low += weight[k] / total * p->low;
            points[i].high += weight[k] / total * p->high;
        }
        for (size_t k = 0; k < nwindows; k++) {
            double difference = weight[k] / total * (part[k * n + i].high - points[i].high);
            squares += weight[k] > 0 ? difference * difference : 0;
        }
        widen(&points[i], sqrt(squares * (double)nwindows / (double)(nwindows - 1)));
    }
    free(part);
    free(weight);
    return 0;
}

/*
 * Raises `high` to the result with as many never-reused survivors as Wilson's interval allows when none was
 * observed. (The bootstrap cannot contain them: see watched.c.)
 */
static void allow_unobserved(struct work *w, const struct curve_burst *bursts, size_t nbursts,
                             unsigned line_bytes, struct curve_point *points, size_t n)
{
    double survivors = 0, total = 0, low, unseen;

    for (size_t b = 0; b < nbursts; b++) {
        const struct curve_burst *burst = &bursts[b];
        survivors += w->share[b] * (double)burst->first.total;
        total += w->share[b] * (double)burst->references;
        w->times[b] = 0; /* scratch: the weight of its watches with an end */
        for (size_t i = 0; i < burst->nwatches; i++)
            if (burst->watches[i].outcome != CURVE_CENSORED)
                w->times[b] += w->share[b] * watched_weight(burst, &burst->watches[i]);
    }
    watched_wilson(0, watched_effective(w->times, nbursts), &low, &unseen);
    for (size_t b = 0; b < nbursts; b++)
        w->times[b] = 1;
    struct distribution d = find_distribution(w, nbursts);
    double beyond = fmin(1, d.beyond + unseen * survivors / total);
    for (size_t i = 0; i < n; i++) {
        double most = model_statcache_solve(&d.spectrum, beyond, model_lines(&points[i], line_bytes));
        points[i].high = fmax(points[i].high, fmin(1, most));
    }
}

int curve_watched_statcache(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                            uint64_t seed, struct curve_point *points, size_t n, struct error *err)
{
    int code = model_check_points(points, n, line_bytes, err);
    int followed = 0;

    if (code == 0)
        code = watched_check(bursts, nbursts, &followed, err);
    if (code < 0)
        return code;
    if (!followed)
        return curve_bursts_statcache(bursts, nbursts, line_bytes, points, n, err);
    struct work *w = work_new(bursts, nbursts);
    code = -ENOMEM;
    if (w) {
        size_t nwindows = nbursts / WINDOW_BURSTS < MOST_WINDOWS ? nbursts / WINDOW_BURSTS : MOST_WINDOWS;
        uint32_t known = estimate(w, nbursts, line_bytes, points, n);
        w->tail = w->growth;
        w->tail_known = known;
        code = nwindows < LEAST_WINDOWS
                   ? find_bands(w, bursts, nbursts, line_bytes, seed, points, n)
                   : estimate_windows(w, bursts, nbursts, line_bytes, nwindows, points, n);
        allow_unobserved(w, bursts, nbursts, line_bytes, points, n);
    }
    work_free(w);
    return code < 0 ? error_set(err, code, "out of memory for the StatCache model of %zu bursts", nbursts)
                    : 0;
}
