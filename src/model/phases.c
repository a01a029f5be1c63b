/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phases.c - leader-follower clustering of windows (Sembrant, Eklov, Hagersten 2011 and 2012).
 *
 * A window has a vector with two parts: shares of the places of code that were executed in it, and miss
 * ratios at twelve cache sizes. The first separates different code, the second the same code on different
 * data. The distance between two windows is the sum of the Manhattan distances of both parts. A window joins
 * the nearest phase within THRESHOLD, whose vector is the mean of its windows; if there is none, it founds a
 * new phase.
 *
 * Noise. A window of few samples has a distance from its own phase: two estimates of a share p, from n and N
 * samples, differ by sqrt(2 v / pi) in the mean, with a variance of (1 - 2 / pi) v, where v = p (1 - p) (1/n
 * + 1/N). The sum of that over all places, and twice its standard deviation, is the noise of a distance. Miss
 * ratios that come from single bursts differ, too: the median distance of consecutive windows of a thread
 * says by how much. Errors that are independent add up in quadrature, so noise is removed from a distance d
 * as sqrt(d^2 - noise^2).
 *
 * A window without data of its own may fit several phases of the same code. It is in the same one as the
 * nearest window of its thread that has data, if that is one of them.
 *
 * Few samples cannot distinguish similar code. So windows of a thread that follow each other are joined first
 * if they are alike (phases-chains.c).
 *
 * Afterwards, phases that are closer to each other than THRESHOLD are merged, since the first windows of a
 * phase say little about its mean; each window is assigned to the nearest phase; the windows of phases
 * shorter than LEAST_SHARE of the run are assigned to others; and a single window between two phases that is
 * a mixture of them becomes part of the one that makes up most of it.
 *
 * Example: places A and B. Windows (1, 0), (1, 0), (0.4, 0.6), (0, 1): the first two are phase 1, the last is
 * phase 2 at a distance of 2. The third is 1.2 from phase 1 and 0.8 from phase 2, but no distance from a
 * mixture of 40% and 60%, so it is in phase 2.
 */
#include "model/phases-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Distances range from 0 to 2 for code, to 12 for data. Half of the code, or a miss ratio that differs by 6
 * points at eight of the twelve sizes, makes another phase. */
#define THRESHOLD 0.5
/* Most phases; further windows join the nearest one. */
#define MOST_PHASES 256u
/* Least part of the run that is a phase of its own. */
#define LEAST_SHARE 0.005
#define MIX_STEPS 20
#define PI 3.14159265358979
/* Distances of single bursts from the mean are up to so many times their median, or this. Regular code has
 * the same data in all of its bursts; a difference of chance must be possible, and a larger one another
 * phase. */
#define DATA_NOISE_TIMES 2
#define DATA_NOISE_LEAST (THRESHOLD / 5)
/* Phases whose distances differ by less fit equally well. */
#define AS_WELL 0.2

static double in_quadrature(double distance, double noise)
{
    double rest = distance * distance - noise * noise;
    return rest > 0 ? sqrt(rest) : 0;
}

/* Four sums, since each addition waits for the one before it. */
static double share_distance(const double *a, const double *b)
{
    double sum[4] = {0};
    for (unsigned i = 0; i < PHASES_CODE; i += 4)
        for (unsigned k = 0; k < 4; k++)
            sum[k] += fabs(a[i + k] - b[i + k]);
    return sum[0] + sum[1] + sum[2] + sum[3];
}

/* Of shares a and b of places of code, estimated from na and nb samples. */
static double code_distance(const double *a, double na, const double *b, double nb)
{
    double sum = share_distance(a, b), mean = 0, variance = 0;
    double part = isinf(na) ? 1 : isinf(nb) ? 0 : na / (na + nb);
    if ((isinf(na) && isinf(nb)) || sum == 0)
        return sum;
    for (unsigned i = 0; i < PHASES_CODE; i++) {
        double p = part * a[i] + (1 - part) * b[i], of_one = p * fmax(0, 1 - p);
        mean += sqrt(of_one);
        variance += of_one;
    }
    double of_difference = mean * sqrt(2 / PI) + 2 * sqrt((1 - 2 / PI) * variance);
    return in_quadrature(sum, of_difference * sqrt(1 / na + 1 / nb));
}

static double window_noise(const struct phases_work *work, const struct phases_window *w)
{
    return work->noise[w->kind] / (w->kind == PHASES_SAMPLED ? sqrt(fmax(1, w->bursts)) : 1);
}

static double distance(const struct phases_work *work, const struct phases_window *w,
                       const struct phases_centre *c)
{
    double d = code_distance(w->code, w->samples, c->code, c->samples);
    if (w->kind != PHASES_NO_DATA && c->data_weight[w->kind] > 0)
        d += in_quadrature(phases_data_distance(w->data, c->data[w->kind]), window_noise(work, w));
    return d;
}

static void join(struct phases_centre *c, const struct phases_window *w)
{
    if (!(w->weight > 0))
        return;
    phases_add_to_mean(c->code, w->code, PHASES_CODE, c->weight, w->weight);
    c->weight += w->weight;
    c->samples += w->samples;
    if (w->kind == PHASES_NO_DATA)
        return;
    phases_add_to_mean(c->data[w->kind], w->data, PHASES_DATA, c->data_weight[w->kind], w->weight);
    c->data_weight[w->kind] += w->weight;
}

/* A phase of which no data of the window's kind are known fits by its code alone: one whose data are known to
 * fit about as well comes first. */
static size_t nearest(const struct phases_work *work, const struct phases_window *w, double *least)
{
    size_t best = 0;
    double least_order = INFINITY;
    *least = INFINITY;
    for (size_t c = 0; c < work->ncentres; c++) {
        const struct phases_centre *centre = &work->centres[c];
        double d = centre->weight > 0 ? distance(work, w, centre) : INFINITY;
        int unknown = w->kind != PHASES_NO_DATA && !(centre->data_weight[w->kind] > 0);
        double order = d + (unknown ? AS_WELL : 0);
        if (order < least_order) {
            least_order = order;
            *least = d;
            best = c;
        }
    }
    return best;
}

/* Makes shares of the counts. Windows without any code are ignored. */
static void normalise(struct phases_window *w)
{
    double sum = 0;
    for (unsigned i = 0; i < PHASES_CODE; i++)
        sum += w->code[i];
    w->phase = sum > 0 && w->samples > 0;
    for (unsigned i = 0; i < PHASES_CODE && w->phase; i++)
        w->code[i] /= sum;
}

/* The noise of one burst: a difference of two windows has that of both. Exact windows have none. */
static int find_noise(struct phases_work *work)
{
    double *seen = malloc((work->n + 1) * sizeof *seen);
    size_t n = 0;
    if (!seen)
        return -ENOMEM;
    for (size_t i = 0; i < work->n; i++) {
        const struct phases_window *w = &work->w[i];
        size_t k = phases_is_used(w) && w->kind == PHASES_SAMPLED ? phases_before(work, i, 1) : work->n;
        if (k < work->n)
            seen[n++] = phases_data_distance(w->data, work->w[k].data) /
                        sqrt(1 / fmax(1, w->bursts) + 1 / fmax(1, work->w[k].bursts));
    }
    qsort(seen, n, sizeof *seen, array_compare_doubles);
    work->noise[PHASES_SAMPLED] = n > 0 ? fmax(DATA_NOISE_TIMES * seen[n / 2], DATA_NOISE_LEAST) : 0;
    free(seen);
    return 0;
}

static void lead_and_follow(struct phases_work *work)
{
    for (size_t i = 0; i < work->n; i++) {
        struct phases_window *w = &work->w[i];
        double least;
        if (!phases_is_used(w))
            continue;
        size_t c = nearest(work, w, &least);
        if (least > THRESHOLD && work->ncentres < MOST_PHASES) {
            c = work->ncentres++;
            work->centres[c] = (struct phases_centre){0};
        }
        join(&work->centres[c], w);
        w->phase = (uint32_t)c + 1;
    }
}

static double between(const struct phases_centre *a, const struct phases_centre *b)
{
    double d = code_distance(a->code, a->samples, b->code, b->samples), data = 0;
    for (int kind = PHASES_EXACT; kind < PHASES_KINDS; kind++)
        if (a->data_weight[kind] > 0 && b->data_weight[kind] > 0)
            data = fmax(data, phases_data_distance(a->data[kind], b->data[kind]));
    return d + data;
}

static void merge(struct phases_centre *into, struct phases_centre *from)
{
    phases_add_to_mean(into->code, from->code, PHASES_CODE, into->weight, from->weight);
    into->weight += from->weight;
    into->samples += from->samples;
    for (int kind = PHASES_EXACT; kind < PHASES_KINDS; kind++) {
        if (from->data_weight[kind] > 0)
            phases_add_to_mean(into->data[kind], from->data[kind], PHASES_DATA, into->data_weight[kind],
                               from->data_weight[kind]);
        into->data_weight[kind] += from->data_weight[kind];
    }
    from->weight = 0;
}

/* Distances between all phases are kept, so that a merger changes only those of one phase. */
static int merge_close(struct phases_work *work)
{
    size_t n = work->ncentres;
    double *distances = malloc((n * n + 1) * sizeof *distances);
    if (!distances)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            distances[i * n + k] = between(&work->centres[i], &work->centres[k]);
    for (;;) {
        size_t a = 0, b = 0;
        double least = THRESHOLD;
        for (size_t i = 0; i < n; i++)
            for (size_t k = i + 1; k < n; k++)
                if (distances[i * n + k] < least) {
                    least = distances[i * n + k];
                    a = i;
                    b = k;
                }
        if (b == 0)
            break;
        merge(&work->centres[a], &work->centres[b]);
        for (size_t i = 0; i < n; i++) {
            if (i != b)
                distances[i < b ? i * n + b : b * n + i] = INFINITY;
            if (i != a && work->centres[i].weight > 0)
                distances[i < a ? i * n + a : a * n + i] = between(&work->centres[i], &work->centres[a]);
        }
    }
    free(distances);
    return 0;
}

static void assign(struct phases_work *work)
{
    double least;
    for (size_t i = 0; i < work->n; i++)
        if (phases_is_used(&work->w[i]))
            work->w[i].phase = (uint32_t)nearest(work, &work->w[i], &least) + 1;
}

/* What is too short to be a phase becomes part of the nearest one. */
static void dissolve_short(struct phases_work *work)
{
    double weights[MOST_PHASES + 1] = {0}, all = 0, most = 0, least;
    for (size_t i = 0; i < work->n; i++)
        if (phases_is_used(&work->w[i])) {
            weights[work->w[i].phase] += work->w[i].weight;
            all += work->w[i].weight;
        }
    for (size_t c = 0; c < work->ncentres; c++)
        most = fmax(most, weights[c + 1]);
    for (size_t c = 0; c < work->ncentres; c++)
        if (weights[c + 1] < fmin(LEAST_SHARE * all, most))
            work->centres[c].weight = 0;
    for (size_t i = 0; i < work->n; i++)
        if (phases_is_used(&work->w[i]) && !(work->centres[work->w[i].phase - 1].weight > 0))
            work->w[i].phase = (uint32_t)nearest(work, &work->w[i], &least) + 1;
}

static int fits_as_well(const struct phases_work *work, size_t i, uint32_t phase)
{
    const struct phases_window *w = &work->w[i];
    const struct phases_centre *other = &work->centres[phase - 1], *own = &work->centres[w->phase - 1];
    return code_distance(w->code, w->samples, other->code, other->samples) <=
           code_distance(w->code, w->samples, own->code, own->samples) + AS_WELL;
}

static void assign_without_data(struct phases_work *work)
{
    for (size_t i = 0; i < work->n; i++) {
        struct phases_window *w = &work->w[i];
        size_t earlier = i, later = i;
        if (!phases_is_used(w) || w->kind != PHASES_NO_DATA)
            continue;
        do
            earlier = phases_before(work, earlier, 0);
        while (earlier < work->n && work->w[earlier].kind == PHASES_NO_DATA);
        do
            later = phases_after(work, later);
        while (later < work->n && work->w[later].kind == PHASES_NO_DATA);
        int early = earlier < work->n && fits_as_well(work, i, work->w[earlier].phase);
        int late = later < work->n && fits_as_well(work, i, work->w[later].phase);
        if (early && (!late || i - earlier <= later - i))
            w->phase = work->w[earlier].phase;
        else if (late)
            w->phase = work->w[later].phase;
    }
}

/* The distance of a window's data from those of a mixture of two phases with so much of `a`. */
static double mixed_data_distance(const struct phases_work *work, const struct phases_window *w,
                                  const struct phases_centre *a, const struct phases_centre *b, double share)
{
    double mixed[PHASES_DATA];
    if (w->kind == PHASES_NO_DATA || !(a->data_weight[w->kind] > 0) || !(b->data_weight[w->kind] > 0))
        return 0;
    memcpy(mixed, a->data[w->kind], sizeof mixed);
    phases_add_to_mean(mixed, b->data[w->kind], PHASES_DATA, share, 1 - share);
    return in_quadrature(phases_data_distance(w->data, mixed), window_noise(work, w));
}

/* The best share of phase a in window w, if the rest is of phase b; -1 if it is not a mixture of them. The
 * few bursts of a window may all be in one of the two, whatever the window's code is. */
static double mixture(const struct phases_work *work, const struct phases_window *w, size_t a, size_t b)
{
    const struct phases_centre *one = &work->centres[a], *other = &work->centres[b];
    double least = THRESHOLD, first = -1, last = -1, of_bursts = INFINITY;
    for (int step = 0; step <= MIX_STEPS; step++)
        of_bursts = fmin(of_bursts, mixed_data_distance(work, w, one, other, (double)step / MIX_STEPS));
    for (int step = 0; step <= MIX_STEPS; step++) {
        double share = (double)step / MIX_STEPS, mixed[PHASES_CODE];
        memcpy(mixed, one->code, sizeof mixed);
        phases_add_to_mean(mixed, other->code, PHASES_CODE, share, 1 - share);
        double d = code_distance(w->code, w->samples, mixed, one->samples) +
                   (w->kind == PHASES_SAMPLED ? of_bursts : mixed_data_distance(work, w, one, other, share));
        if (d < least)
            first = share;
        if (d <= least) {
            least = d;
            last = share;
        }
    }
    return first < 0 ? -1 : (first + last) / 2; /* within noise, several fit equally well */
}

/* Windows that were joined are not a transition, however well a mixture of their neighbours fits. */
static void resolve_transitions(struct phases_work *work)
{
    for (size_t i = 0; i < work->n; i++) {
        struct phases_window *w = &work->w[i];
        size_t earlier = phases_is_used(w) ? phases_before(work, i, 0) : work->n,
               later = phases_is_used(w) ? phases_after(work, i) : work->n;
        if (w->weight > work->longest || earlier == work->n || later == work->n ||
            work->w[earlier].phase == w->phase || work->w[later].phase == w->phase ||
            work->w[earlier].phase == work->w[later].phase)
            continue;
        double share = mixture(work, w, work->w[earlier].phase - 1, work->w[later].phase - 1);
        if (share >= 0)
            w->phase = share >= 0.5 ? work->w[earlier].phase : work->w[later].phase;
    }
}

/* Numbers phases from 1, in order of first appearance. Returns their number. */
static int renumber(struct phases_work *work)
{
    uint32_t next = 0;
    memset(work->number, 0, (work->ncentres + 1) * sizeof *work->number);
    for (size_t i = 0; i < work->n; i++) {
        struct phases_window *w = &work->w[i];
        if (!phases_is_used(w))
            continue;
        if (work->number[w->phase] == 0)
            work->number[w->phase] = ++next;
        w->phase = work->number[w->phase];
    }
    return (int)next;
}

static int find(struct phases_work *work)
{
    lead_and_follow(work);
    if (merge_close(work) < 0)
        return -ENOMEM;
    assign(work);
    dissolve_short(work);
    assign_without_data(work);
    resolve_transitions(work);
    dissolve_short(work); /* phases of transitions */
    return renumber(work);
}

int phases_find(struct phases_window *windows, size_t n)
{
    struct phases_work work = {.w = windows, .n = n};
    struct phases_window *more = malloc((n + 1) * sizeof *more);
    size_t *into = malloc((n + 1) * sizeof *into);
    int result = -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        normalise(&windows[i]);
        work.longest = fmax(work.longest, windows[i].weight);
    }
    work.centres = calloc(MOST_PHASES + 1, sizeof *work.centres);
    work.number = calloc(MOST_PHASES + 2, sizeof *work.number);
    if (more && into && work.centres && work.number && find_noise(&work) == 0 &&
        phases_join_neighbours(&work, more, into) == 0)
        result = find(&work);
    for (size_t i = 0; i < n && result >= 0; i++)
        windows[i].phase = more[into[i]].phase;
    free(more);
    free(into);
    free(work.centres);
    free(work.number);
    return result;
}
