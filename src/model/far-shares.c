/* SPDX-License-Identifier: Apache-2.0 */
/*
 * far-shares.c - which groups make the misses that bursts do not decide.
 *
 * Problem. A first touch of a line in a burst, after d other lines, has a stack distance of d or more.
 * Whether it misses in a cache of L > d lines is not known from the burst. The run's share of such touches
 * that miss is known from watched lines (watched.h). Which functions make them?
 *
 * Method. Two sources are combined: one is biased, the other is noisy.
 *
 * (1) The bursts. Each touch of a group is either a reuse, whose distance is known, or a first touch, whose
 * distance is censored at d. Kaplan and Meier's estimate gives the hazard h(b) of the distances in bin b, by
 * group. Groups with few touches are shrunk towards the hazard of all touches, as if PRIOR more touches with
 * that hazard had been seen. A first touch at depth d is expected to miss with the probability prod (1 -
 * h(b)) over the bins from d to L. This takes into account that most first touches at the beginning of a
 * burst are of lines that were in use, and those in the middle of it are not. Beyond the largest d of any
 * burst nothing is known of single groups, and all get the same hazard: there the bias is. m_g: the group's
 * share of the sum of these probabilities.
 *
 * (2) Watched lines. Each that missed when it was touched again is a sample of the misses in question, and
 * the instruction that touched it is known: f_g is the share of the group in their weights. This is unbiased,
 * but there are few of them: its variance is f_g (1 - f_g) / n, where n is the effective number of bursts.
 *
 * They are combined as by James and Stein: s = m + c (f - m), where c = 1 - V / D. It is 0 if the squared
 * difference D = sum (f_g - m_g)^2 is not larger than its expectation by chance, V = (1 - sum f_g^2) / (n -
 * 1), and tends to 1 as samples become many. Lines that are never touched again have no such instruction;
 * their part of the misses, the first touches of lines in the run, is assumed to be distributed as m.
 *
 * Small groups (source lines) have few samples each. Therefore their parents (functions) get their shares
 * first, as if there were no smaller groups. Then each parent's share is divided among its groups in the same
 * way: in proportion to m_g, corrected by the samples of this parent.
 *
 * The standard error is that of f, by Wilson's interval for the share s, even where m dominates s: the error
 * of m is unknown.
 *
 * Example: two groups with m = 0.5 each; 10 samples of equal weight, from 10 bursts, 9 of them in the first.
 * V = (1 - 0.81 - 0.01) / 9 = 0.02; D = 0.16 + 0.16 = 0.32; c = 0.9375; s = 0.875 and 0.125.
 */
#include "model/far-shares.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"
#include "base/array.h"
#include "base/octaves.h"
#include "model/watched-internal.h"

/* Weight of the common hazard, in touches of a burst's mean weight. With 5 to 50, errors of sqlite3's shares
 * were about the same; with 1000, a tenth larger. */
#define PRIOR 20.
/* Misses without a known instruction are distributed as m, with the uncertainty of so many samples. */
#define UNKNOWN_SAMPLES 4.

struct hit {
    size_t group, parent, sample;
    double weight;
};

struct far_shares {
    size_t n, nparents;
    double lines, touch;     /* touch: mean weight of a touch */
    uint32_t nbins;          /* bins that are at least partly below `lines`; one more has all above */
    unsigned char *used;     /* of each parent: whether it has groups */
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
    f->used = calloc(nparents + 1, 1);
    if (!f->reuses || !f->firsts || !f->used || (parents && !f->parents)) {
        far_shares_free(f);
        return NULL;
    }
    if (parents)
        memcpy(f->parents, parents, n * sizeof *parents);
    for (size_t g = 0; g < n && parents; g++)
        f->used[parents[g]] = 1;
    return f;
}

void far_shares_free(struct far_shares *f)
{
    if (!f)
        return;
    free(f->parents);
    free(f->used);
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

int far_shares_hit(struct far_shares *f, size_t group, size_t parent, size_t sample, double weight)
{
    if (ARRAY_GROW(f->hits, f->nhits, f->capacity) < 0)
        return -ENOMEM;
    size_t whole = group < f->n && f->parents ? f->parents[group] : parent;
    if (whole < f->nparents && !f->used[whole])
        whole = FAR_SHARES_UNKNOWN;
    f->hits[f->nhits++] = (struct hit){group, whole, sample, weight};
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

/* The hazard of each bin: the share of touches at distances of the bin and more that is in the bin. before:
 * NULL, or expected hazards, with a weight of `prior` touches. */
static void find_hazards(const struct far_shares *f, const double *reuses, const double *firsts,
                         const double *before, double prior, double *hazard)
{
    double risk = 0;
    for (uint32_t bin = 0; bin <= f->nbins; bin++)
        risk += reuses[bin] + firsts[bin];
    double least = 1e-9 * risk; /* less than this is a rounding error */
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
    double further = 1, sum = 0; /* further: from the end of the current bin up to `lines` */
    for (uint32_t bin = f->nbins; bin-- > 0;) {
        double below = 1 - far_shares_part_above(bin, f->lines);
        if (below == 0)
            continue;
        if (firsts[bin] > 0) /* most have none: pow takes long */
            sum += firsts[bin] * below * further * pow(1 - hazard[bin], below / 2);
        further *= below < 1 ? pow(1 - hazard[bin], below) : 1 - hazard[bin];
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

/* m of each of n groups with those counts. */
static int find_model(const struct far_shares *f, size_t n, const double *reuses, const double *firsts,
                      double *model)
{
    size_t width = f->nbins + 1;
    double *all = calloc(4 * width, sizeof *all), sum = 0;
    if (!all)
        return -ENOMEM;
    double *all_firsts = all + width, *common = all + 2 * width, *own = all + 3 * width;
    for (size_t i = 0; i < n * width; i++) {
        all[i % width] += reuses[i];
        all_firsts[i % width] += firsts[i];
    }
    find_hazards(f, all, all_firsts, NULL, 0, common);
    for (size_t g = 0; g < n; g++) {
        find_hazards(f, reuses + g * width, firsts + g * width, common, PRIOR * f->touch, own);
        model[g] = expected_misses(f, firsts + g * width, own);
        sum += model[g];
    }
    for (size_t g = 0; g < n && sum == 0; g++)
        for (uint32_t bin = 0; bin < f->nbins; bin++)
            model[g] += firsts[g * width + bin] * (1 - far_shares_part_above(bin, f->lines));
    free(all);
    normalise(model, n);
    return 0;
}

/* The same for the parents. */
static int find_parents_model(const struct far_shares *f, double *model)
{
    size_t width = f->nbins + 1;
    double *reuses = calloc(2 * f->nparents * width + 1, sizeof *reuses);
    if (!reuses)
        return -ENOMEM;
    double *firsts = reuses + f->nparents * width;
    for (size_t g = 0; g < f->n; g++)
        for (size_t bin = 0; bin < width; bin++) {
            reuses[f->parents[g] * width + bin] += f->reuses[g * width + bin];
            firsts[f->parents[g] * width + bin] += f->firsts[g * width + bin];
        }
    int code = find_model(f, f->nparents, reuses, firsts, model);
    free(reuses);
    return code;
}

/* --- from watched lines --- */

static int compare_samples(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Summary of the samples. */
struct sampled {
    double number;  /* effective number of bursts */
    double unknown; /* the part of their weights that is of no group, or no parent if there are parents */
    double *seen;   /* f of each group, or parent */
};

static void sum_hits(struct far_shares *f, struct sampled *s)
{
    double all = 0, known = 0, of_burst = 0, squares = 0;
    size_t n = f->parents ? f->nparents : f->n;
    if (f->nhits > 0)
        qsort(f->hits, f->nhits, sizeof *f->hits, compare_samples);
    for (size_t i = 0; i < f->nhits; i++) {
        const struct hit *hit = &f->hits[i];
        size_t group = f->parents ? hit->parent : hit->group;
        all += hit->weight;
        if (group < n) {
            known += hit->weight;
            of_burst += hit->weight;
            s->seen[group] += hit->weight;
        }
        if (i + 1 == f->nhits || hit[1].sample != hit->sample) {
            squares += of_burst * of_burst;
            of_burst = 0;
        }
    }
    s->number = squares > 0 ? known * known / squares : 0;
    s->unknown = all > 0 ? 1 - known / all : 0;
    normalise(s->seen, n);
}

/* c, from sums over groups: of squared differences between samples and model, and of squares of samples. */
static double trust(double difference, double squares, double number)
{
    if (!(number > 2))
        return 0;
    double chance = (1 - squares) / (number - 1);
    return difference > chance ? 1 - chance / difference : 0;
}

/* Combines model and samples of n groups without parents. */
static void combine(const double *model, const struct sampled *s, size_t n, struct far_share *shares)
{
    double difference = 0, squares = 0, sum = 0;
    for (size_t g = 0; g < n; g++) {
        difference += (s->seen[g] - model[g]) * (s->seen[g] - model[g]);
        squares += s->seen[g] * s->seen[g];
        sum += model[g];
    }
    /* 0: no first touches in bursts */
    double c = sum > 0 ? trust(difference, squares, s->number) : 1;
    for (size_t g = 0; g < n; g++)
        shares[g].share = (1 - s->unknown) * (model[g] + c * (s->seen[g] - model[g])) + s->unknown * model[g];
}

/* Sums over the groups of a parent. */
struct inside {
    double model, seen, difference, squares, weight;
};

/* Divides the shares of parents among their groups. model: of the groups. */
static int divide(const struct far_shares *f, const double *model, const struct sampled *s,
                  const struct far_share *of_parents, struct far_share *shares)
{
    struct inside *inside = calloc(f->nparents + 1, sizeof *inside);
    double *seen = calloc(f->n + 1, sizeof *seen);
    if (!inside || !seen) {
        free(inside);
        free(seen);
        return -ENOMEM;
    }
    for (size_t i = 0; i < f->nhits; i++)
        if (f->hits[i].group < f->n)
            seen[f->hits[i].group] += f->hits[i].weight;
    for (size_t g = 0; g < f->n; g++) {
        inside[f->parents[g]].model += model[g];
        inside[f->parents[g]].seen += seen[g];
        inside[f->parents[g]].weight++;
    }
    for (size_t g = 0; g < f->n; g++) {
        struct inside *p = &inside[f->parents[g]];
        seen[g] = p->seen > 0 ? seen[g] / p->seen : 0;
        /* a parent without first touches: by samples, or equal shares if these do not name a group */
        shares[g].share = p->model > 0 ? model[g] / p->model : p->seen > 0 ? seen[g] : 1 / p->weight;
        p->difference += (seen[g] - shares[g].share) * (seen[g] - shares[g].share);
        p->squares += seen[g] * seen[g];
    }
    for (size_t g = 0; g < f->n; g++) {
        const struct inside *p = &inside[f->parents[g]];
        double number = p->seen > 0 ? s->number * s->seen[f->parents[g]] : 0;
        double c = trust(p->difference, p->squares, number);
        shares[g].share += c * (seen[g] - shares[g].share);
        shares[g].share *= of_parents[f->parents[g]].share;
    }
    free(inside);
    free(seen);
    return 0;
}

static void find_errors(const double *model, const struct sampled *s, size_t n, struct far_share *shares)
{
    for (size_t g = 0; g < n; g++) {
        double share = fmin(1, fmax(0, shares[g].share)), low, high;
        watched_wilson(share, s->number, &low, &high);
        double of_known = (1 - s->unknown) * fmax(high - share, share - low) / MODEL_NORMAL_95;
        double of_unknown = s->unknown * sqrt(model[g] * (1 - model[g]) / UNKNOWN_SAMPLES);
        shares[g].error = sqrt(of_known * of_known + of_unknown * of_unknown);
    }
}

int far_shares_find(struct far_shares *f, struct far_share *shares, double *hits)
{
    size_t n = f->n, nparents = f->parents ? f->nparents : 0;
    double *model = calloc(2 * (n + nparents) + 1, sizeof *model);
    struct far_share *of_parents = calloc(nparents + 1, sizeof *of_parents);
    int code = -ENOMEM;
    if (model && of_parents)
        code = find_model(f, n, f->reuses, f->firsts, model);
    if (code == 0) {
        struct sampled s = {.seen = model + n + nparents};
        sum_hits(f, &s);
        if (!f->parents) {
            combine(model, &s, n, shares);
        } else if ((code = find_parents_model(f, model + n)) == 0) {
            combine(model + n, &s, nparents, of_parents);
            code = divide(f, model, &s, of_parents, shares);
        }
        find_errors(model, &s, n, shares);
        *hits = s.number;
    }
    free(model);
    free(of_parents);
    return code;
}
