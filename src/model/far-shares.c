/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who makes the misses that bursts do not decide.
 *
 * Problem. A first touch of a line in a burst, after d other lines, has a stack distance of d or more.
 * Whether it misses in a cache of L > d lines the burst does not tell. The run's share of such touches that
 * miss is known from watched lines (watched.h). Which functions make them?
 *
 * Method. Two sources, one with a bias and one with noise.
 *
 *  1. The bursts. Each touch of a group is either a reuse, whose distance is known, or a first touch, whose
 *     distance is censored at d. Kaplan and Meier's estimate gives the hazard h(b) of the distances in bin b,
 * by group; groups with few touches borrow from the hazard of all (as if PRIOR more touches had been seen
 * that follow it). A first touch at depth d is expected to miss with the probability prod (1 - h(b)) over the
 *     bins from d to L. This takes into account that most first touches at the beginning of a burst are of
 *     lines that were in use, and those in the middle of it are not. Beyond the largest d of any burst
 * nothing is known of single groups, and all are treated alike: there the bias is. m_g: the group's share of
 * the sum of these probabilities.
 *  2. Watched lines. Each that missed when it was touched again is a sample of the misses in question, and
 * the instruction that touched it is known: f_g is the share of the group in their weights. This is unbiased,
 *     but there are few: its variance is f_g (1 - f_g) / n, where n is the effective number of bursts.
 *
 * They are combined as James and Stein do: s = m + c (f - m), where c = 1 - V / D is 0 if the squared
 * difference D = sum (f_g - m_g)^2 is no larger than its expectation by chance, V = (1 - sum f_g^2) / (n -
 * 1), and tends to 1 as samples become many. Lines that are never touched again have no such instruction;
 * their part of the misses, the first touches of lines in the run, is taken to be distributed as m.
 *
 * Small groups (lines of source) have few samples each. Therefore their parents (functions) get their shares
 * first; a parent's share is divided among its groups in proportion to m_g, and the samples correct that.
 *
 * The standard error is that of f, by Wilson's interval for the share s, also where m had the larger part in
 * s: how far m is off is not known.
 *
 * Example: two groups with m = 0.5 each; 10 samples of equal weight, from 10 bursts, 9 of them in the first.
 * V = (1 - 0.81 - 0.01) / 9 = 0.02; D = 0.16 + 0.16 = 0.32; c = 0.9375; s = 0.875 and 0.125.
 */
#include "model/far-shares.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/octaves.h"
#include "model/watched-internal.h"

/* Touches that the hazard of all counts for, of the mean weight of a burst's. With 5 to 50, errors of
 * sqlite3's shares were about the same; with 1000, a tenth larger. */
#define PRIOR 20.
/* Misses whose instructions are not known are distributed as m with the uncertainty of so many samples. */
#define NOBODY_SAMPLES 4.
/* Half a 95% interval, in standard errors. */
#define ERRORS 1.96

struct hit {
    size_t group, sample;
    double weight;
};

struct far_shares {
    size_t n, nparents;
    double lines, touch;     /* touch: weight of one, in the mean */
    uint32_t nbins;          /* that are below `lines`, at least in part; one more has all above */
    uint32_t *parents;       /* NULL: none */
    double *reuses, *firsts; /* [group * (nbins + 1) + bin] */
    struct hit *hits;
    size_t nhits, capacity;
};

struct far_shares *far_shares_new(size_t n, double lines, double touch, const uint32_t *parents,
                                  size_t nparents)
{
    struct far_shares *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->n = n;
    f->nparents = nparents;
    f->lines = lines;
    f->touch = touch;
    f->nbins = lines < 0x1p40 ? octaves_bin((uint64_t)lines) + 1 : OCTAVES_BINS;
    f->reuses = calloc((n + 1) * (f->nbins + 1), sizeof *f->reuses);
    f->firsts = calloc((n + 1) * (f->nbins + 1), sizeof *f->firsts);
    f->parents = parents ? malloc((n + 1) * sizeof *f->parents) : NULL;
    if (!f->reuses || !f->firsts || (parents && !f->parents)) {
        far_shares_free(f);
        return NULL;
    }
    if (parents)
        memcpy(f->parents, parents, n * sizeof *parents);
    return f;
}

void far_shares_free(struct far_shares *f)
{
    if (!f)
        return;
    free(f->parents);
    free(f->reuses);
    free(f->firsts);
    free(f->hits);
    free(f);
}

static size_t place(const struct far_shares *f, size_t group, uint32_t bin)
{
    return group * (f->nbins + 1) + (bin < f->nbins ? bin : f->nbins);
}

void far_shares_reuses(struct far_shares *f, size_t group, uint32_t bin, double weight)
{
    f->reuses[place(f, group, bin)] += weight;
}

void far_shares_firsts(struct far_shares *f, size_t group, uint32_t bin, double weight)
{
    f->firsts[place(f, group, bin)] += weight;
}

int far_shares_hit(struct far_shares *f, size_t group, size_t sample, double weight)
{
    if (f->nhits == f->capacity) {
        size_t capacity = 2 * f->capacity + 64;
        struct hit *grown = reallocarray(f->hits, capacity, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        f->hits = grown;
        f->capacity = capacity;
    }
    f->hits[f->nhits++] = (struct hit){group, sample, weight};
    return 0;
}

double far_shares_part_above(uint32_t bin, double lines)
{
    double low = (double)octaves_edge(bin),
           high = bin + 1 < OCTAVES_BINS ? (double)octaves_edge(bin + 1) : INFINITY;
    if (lines <= low)
        return 1;
    if (lines >= high || low == 0)
        return 0;
    return isinf(high) ? 1 : log(high / lines) / log(high / low);
}

/* --- from bursts --- */

/* The share of touches at distances of bin and more that is in the bin, of each bin. before: NULL, or the
 * hazards that are expected, as strong as `prior` touches. */
static void find_hazards(const struct far_shares *f, const double *reuses, const double *firsts,
                         const double *before, double prior, double *hazard)
{
    double risk = 0;
    for (uint32_t bin = 0; bin <= f->nbins; bin++)
        risk += reuses[bin] + firsts[bin];
    double least = 1e-9 * risk; /* below it, what is left is a rounding error */
    for (uint32_t bin = 0; bin < f->nbins; bin++) {
        double at_risk = risk - firsts[bin] / 2, reused = reuses[bin];
        if (before) {
            at_risk = fmax(0, at_risk) + prior;
            reused += prior * before[bin];
        }
        hazard[bin] = at_risk > least ? fmin(1, reused / at_risk) : 0;
        risk -= reuses[bin] + firsts[bin];
    }
}

/* Expected misses among a group's first touches that bursts do not decide. */
static double expected_misses(const struct far_shares *f, const double *firsts, const double *hazard)
{
    double further = 1, sum = 0; /* further: from the end of the bin at hand up to `lines` */
    for (uint32_t bin = f->nbins; bin-- > 0;) {
        double below = 1 - far_shares_part_above(bin, f->lines);
        sum += firsts[bin] * below * further * pow(1 - hazard[bin], below / 2);
        further *= pow(1 - hazard[bin], below);
    }
    return sum;
}

/* Makes them add up to 1, if they can. */
static void normalise(double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    for (size_t i = 0; i < n; i++)
        values[i] = sum > 0 ? values[i] / sum : 0;
}

/* m of each group. */
static int find_model(const struct far_shares *f, double *model)
{
    size_t width = f->nbins + 1;
    double *all = calloc(4 * width, sizeof *all), *reuses = all, *firsts, *common, *own;
    if (!all)
        return -ENOMEM;
    firsts = all + width;
    common = all + 2 * width;
    own = all + 3 * width;
    for (size_t i = 0; i < f->n * width; i++) {
        reuses[i % width] += f->reuses[i];
        firsts[i % width] += f->firsts[i];
    }
    find_hazards(f, reuses, firsts, NULL, 0, common);
    double sum = 0;
    for (size_t g = 0; g < f->n; g++) {
        const double *touched = f->firsts + g * width;
        find_hazards(f, f->reuses + g * width, touched, common, PRIOR * f->touch, own);
        model[g] = expected_misses(f, touched, own);
        sum += model[g];
    }
    for (size_t g = 0; g < f->n && sum == 0; g++)
        for (uint32_t bin = 0; bin < f->nbins; bin++)
            model[g] += f->firsts[g * width + bin] * (1 - far_shares_part_above(bin, f->lines));
    free(all);
    normalise(model, f->n);
    return 0;
}

/* --- from watched lines --- */

static int compare_samples(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Sums the weights of samples by group; how many bursts they count for, and the part of all weights that is
 * nobody's. */
static void sum_hits(struct far_shares *f, double *seen, double *number, double *nobody)
{
    double all = 0, known = 0, of_burst = 0, squares = 0;
    if (f->nhits > 0)
        qsort(f->hits, f->nhits, sizeof *f->hits, compare_samples);
    for (size_t i = 0; i < f->nhits; i++) {
        const struct hit *hit = &f->hits[i];
        all += hit->weight;
        if (hit->group < f->n) {
            known += hit->weight;
            of_burst += hit->weight;
            seen[hit->group] += hit->weight;
        }
        if (i + 1 == f->nhits || hit[1].sample != hit->sample) {
            squares += of_burst * of_burst;
            of_burst = 0;
        }
    }
    *number = squares > 0 ? known * known / squares : 0;
    *nobody = all > 0 ? 1 - known / all : 0;
    normalise(seen, f->n);
}

/* c: how much of the difference between samples and model is more than chance. */
static double trust(const double *seen, const double *model, size_t n, double number)
{
    double difference = 0, squares = 0;
    if (!(number > 2))
        return 0;
    for (size_t g = 0; g < n; g++) {
        difference += (seen[g] - model[g]) * (seen[g] - model[g]);
        squares += seen[g] * seen[g];
    }
    double chance = (1 - squares) / (number - 1);
    return difference > chance ? 1 - chance / difference : 0;
}

/* model and seen become the combination of both: model[]. */
static void combine(double *model, const double *seen, size_t n, double number)
{
    double c = trust(seen, model, n, number), sum = 0;
    for (size_t g = 0; g < n; g++)
        sum += model[g];
    if (sum == 0)
        c = 1; /* no first touches at all in bursts */
    for (size_t g = 0; g < n; g++)
        model[g] += c * (seen[g] - model[g]);
}

/* Shares of the parents, divided among their groups in proportion to the model. */
static int use_parents(const struct far_shares *f, double *model, const double *seen, double number)
{
    double *of_model = calloc(2 * f->nparents + 1, sizeof *of_model), *combined;
    double *of_seen = calloc(f->nparents + 1, sizeof *of_seen);
    if (!of_model || !of_seen) {
        free(of_model);
        free(of_seen);
        return -ENOMEM;
    }
    combined = of_model + f->nparents;
    for (size_t g = 0; g < f->n; g++) {
        of_model[f->parents[g]] += model[g];
        of_seen[f->parents[g]] += seen[g];
    }
    memcpy(combined, of_model, f->nparents * sizeof *combined);
    combine(combined, of_seen, f->nparents, number);
    for (size_t g = 0; g < f->n; g++) {
        uint32_t p = f->parents[g];
        if (of_model[p] > 0)
            model[g] *= combined[p] / of_model[p];
        else
            model[g] = of_seen[p] > 0 ? seen[g] * combined[p] / of_seen[p] : 0;
    }
    free(of_model);
    free(of_seen);
    return 0;
}

static double standard_error(double share, double number)
{
    double low, high;
    watched_wilson(share, number, &low, &high);
    return fmax(high - share, share - low) / ERRORS;
}

int far_shares_find(struct far_shares *f, struct far_share *shares, double *hits)
{
    double *model = calloc(3 * f->n + 1, sizeof *model), *combined, *seen, nobody;
    if (!model)
        return -ENOMEM;
    combined = model + f->n;
    seen = model + 2 * f->n;
    int code = find_model(f, model);
    sum_hits(f, seen, hits, &nobody);
    memcpy(combined, model, f->n * sizeof *combined);
    if (code == 0 && f->parents)
        code = use_parents(f, combined, seen, *hits);
    if (code == 0)
        combine(combined, seen, f->n, *hits);
    for (size_t g = 0; g < f->n && code == 0; g++) {
        double of_known = (1 - nobody) * standard_error(fmin(1, fmax(0, combined[g])), *hits);
        double of_nobody = nobody * sqrt(model[g] * (1 - model[g]) / NOBODY_SAMPLES);
        shares[g] = (struct far_share){(1 - nobody) * combined[g] + nobody * model[g],
                                       sqrt(of_known * of_known + of_nobody * of_nobody)};
    }
    free(model);
    return code;
}
