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
 * distance is censored at d. In the tail that was recorded after a burst only the tail's first touches of
 * lines are known: such a touch is observed from the number of the tail's lines so far on, its entry, until
 * its distance if the burst touched the line, or else until the number of lines of both. Kaplan and Meier's
 * estimate gives the hazard h(b) of the distances in bin b, by group. Groups with few touches are shrunk
 * towards the hazard of all touches, as if PRIOR more touches with that hazard had been seen. So is this
 * hazard, towards 0: if the last few touches that tails reach are all reused, it would be 1, and no group
 * could miss. A first touch
 * at depth d is expected to miss with the probability prod (1 - h(b)) over the bins from d to L. This takes
 * into account that most first touches at the beginning of a burst are of lines that were in use, and those
 * in the middle of it are not. Beyond the largest d of any tail nothing is known of single groups, and all
 * get the same hazard: there the bias is. m_g: the group's share of the sum of these probabilities.
 *
 * (2) Watched lines. Each that missed when it was touched again is a sample of the misses in question, and
 * the instruction that touched it is known: f_g is the share of the group in their weights. This is unbiased,
 * but there are few of them: its variance is f_g (1 - f_g) / n, where n is the effective number of bursts.
 *
 * They are combined as by James and Stein: s = m + c (f - m), where c = 1 - V / D. It is 0 if the squared
 * difference D = sum (f_g - m_g)^2 is not larger than its expectation by chance, V = (1 - sum p_g^2) / (n -
 * 1), and tends to 1 as samples become many; no larger excess D - V is believed than the model's errors
 * allow. p is f with one more sample, which is distributed as m: two or three samples of one group would
 * have no variance otherwise, and decide everything. Lines that are never touched again have no such
 * instruction; their part of the misses, the first touches of lines in the run, is assumed to be distributed
 * as m.
 *
 * The standard error is that of f, by Wilson's interval for the share s, or that of the model if it is
 * smaller: the part rho of the misses is expected by the hazard of all groups, or is more than `far` allows.
 * There m is assumed
 * to vary by UNKNOWN_ERROR m (1 - m) rho / (1 - rho). Besides, m varies with the bursts: by the derivative of
 * m with respect to its counts (far_shares_value).
 *
 * Example: two groups with m = 0.5 each; 10 samples of equal weight, from 10 bursts, 9 of them in the first.
 * p = 9.5/11 and 1.5/11; V = (1 - 0.746 - 0.019) / 9 = 0.026; D = 0.16 + 0.16 = 0.32; c = 0.918; s = 0.867
 * and 0.133.
 */
#include "model/far-shares.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/internal.h"
#include "base/array.h"
#include "base/octaves.h"
#include "model/watched-internal.h"

/* Weight of the common hazard in that of a group, and in the common hazard of the assumption that nothing is
 * reused, in touches of a burst's mean weight. With 5 to 50, errors of sqlite3's shares were about the same;
 * with 1000, a tenth larger. */
#define PRIOR 20.
/* Misses without a known instruction are distributed as m, with the uncertainty of so many samples. */
#define UNKNOWN_SAMPLES 4.
/* Standard deviation over groups of the probability that follows from the common hazard, relative to its
 * mean, where half of the misses are beyond what is known. An even distribution between 0 and 1 has 0.58;
 * with that, intervals at 1 MB held the share of 9 in 10 rows of eight programs. */
#define UNKNOWN_ERROR 1.

struct hit {
    size_t group, sample;
    double weight;
};

/* What a touch contributes to its group's misses (far_shares_value). */
struct far_values {
    double reuse, first, entry, end;
};

struct far_shares {
    size_t n;
    double lines, touch; /* touch: mean weight of a touch */
    uint32_t nbins;      /* bins that are at least partly below `lines`; one more has all above */
    /* [group * (nbins + 1) + bin]; reuses and ends: of bursts and their tails; entries: of tails */
    double *reuses, *ends, *entries, *firsts;
    struct far_values *values; /* likewise; NULL before far_shares_find */
    struct hit *hits;
    size_t nhits, capacity;
};

struct far_shares *far_shares_new(size_t n, double lines, double touch)
{
    struct far_shares *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->n = n;
    f->lines = lines;
    f->touch = touch;
    f->nbins = octaves_bin_of(lines) + 1;
    f->reuses = calloc((n + 1) * (f->nbins + 1), sizeof *f->reuses);
    f->firsts = calloc((n + 1) * (f->nbins + 1), sizeof *f->firsts);
    f->ends = calloc((n + 1) * (f->nbins + 1), sizeof *f->ends);
    f->entries = calloc((n + 1) * (f->nbins + 1), sizeof *f->entries);
    if (f->reuses && f->firsts && f->ends && f->entries)
        return f;
    far_shares_free(f);
    return NULL;
}

void far_shares_free(struct far_shares *f)
{
    if (!f)
        return;
    free(f->reuses);
    free(f->firsts);
    free(f->ends);
    free(f->entries);
    free(f->values);
    free(f->hits);
    free(f);
}

static size_t place(const struct far_shares *f, size_t group, uint32_t bin)
{
    return group * (f->nbins + 1) + (bin < f->nbins ? bin : f->nbins);
}

void far_shares_add(struct far_shares *f, size_t group, enum far_touch what, uint32_t bin, double weight)
{
    size_t at = place(f, group, bin);
    if (what == FAR_FIRST)
        f->firsts[at] += weight;
    double *counts = what == FAR_TAIL_ENTRY                        ? f->entries
                     : what == FAR_REUSE || what == FAR_TAIL_REUSE ? f->reuses
                                                                   : f->ends;
    counts[at] += weight;
}

int far_shares_hit(struct far_shares *f, size_t group, size_t sample, double weight)
{
    if (ARRAY_GROW(f->hits, f->nhits, f->capacity) < 0)
        return -ENOMEM;
    f->hits[f->nhits++] = (struct hit){group, sample, weight};
    return 0;
}

double far_shares_part_above(uint32_t bin, double lines)
{
    double low = octaves_start(bin), high = octaves_start(bin + 1);
    if (lines <= low)
        return 1;
    if (lines >= high || low == 0)
        return 0;
    return isinf(high) ? 1 : log(high / lines) / log(high / low);
}

/* --- from bursts --- */

/* Touches by bin, of a group. */
struct touches {
    const double *reuses, *ends, *entries, *firsts;
};

/* What they say about distances: the hazard of each bin, and how many touches it was found from. */
struct hazards {
    double *hazard, *risk;
};

/* The hazard of each bin: the share of touches at distances of the bin and more that is in the bin. A touch
 * of a tail is observed from its entry on. before: expected hazards, with a weight of `prior` touches; NULL:
 * 0. */
static void find_hazards(const struct far_shares *f, const struct touches *t, const double *before,
                         double prior, const struct hazards *out)
{
    double risk = 0, all = 0;
    for (uint32_t bin = 0; bin <= f->nbins; bin++) {
        all += t->reuses[bin] + t->ends[bin];
        risk += t->reuses[bin] + t->ends[bin] - t->entries[bin];
    }
    double least = 1e-9 * all; /* less than this is a rounding error */
    for (uint32_t bin = 0; bin < f->nbins; bin++) {
        double at_risk = fmax(0, risk + (t->entries[bin] - t->ends[bin]) / 2), reused = t->reuses[bin];
        out->risk[bin] = at_risk += prior;
        if (before)
            reused += prior * before[bin];
        out->hazard[bin] = at_risk > least ? fmin(1, reused / at_risk) : 0;
        risk += t->entries[bin] - t->reuses[bin] - t->ends[bin];
    }
}

/*
 * Expected misses among a group's first touches that bursts do not decide. *known: as far as the group's own
 * touches say, the part of them that was not expected to be reused before by those of all groups. values:
 * what each touch contributes (far_values).
 */
static double expected_misses(const struct far_shares *f, const double *firsts, const struct hazards *h,
                              double prior, double *known, struct far_values *values)
{
    double further = 1, sum = 0; /* further: from the end of the current bin up to `lines` */
    double unknown = 1, all = 0; /* of the logarithm of `further`, the part that is of all groups */
    for (uint32_t bin = f->nbins; bin-- > 0;) {
        double below = 1 - far_shares_part_above(bin, f->lines), missed = 0;
        if (below == 0)
            continue;
        double rest = h->hazard[bin] > 0 ? pow(1 - h->hazard[bin], below / 2) : 1, half = further * rest;
        double others = h->risk[bin] > 0 ? prior / h->risk[bin] : 1;
        if (firsts[bin] > 0) {
            missed = firsts[bin] * below * half;
            sum += missed;
            all += missed / unknown;
        }
        values[bin].first = below * half;
        further = half * rest;
        unknown *= pow(rest * rest, others);
        unknown = fmax(unknown, 1e-6);
    }
    *known = all > 0 ? sum / all : 1;
    /* What a touch changes of the hazards, and so of the sum: if it is reused in a bin that first touches
     * have to pass, and if it passes it. */
    double passing = 0, passed = 0;
    for (uint32_t bin = 0; bin < f->nbins; bin++) {
        double below = 1 - far_shares_part_above(bin, f->lines);
        double missed = firsts[bin] * values[bin].first;
        double each = h->risk[bin] > 0 && h->hazard[bin] < 1
                          ? below * (passing + missed / 2) / (h->risk[bin] * (1 - h->hazard[bin]))
                          : 0;
        passing += missed;
        values[bin].entry = -(passed + h->hazard[bin] * each / 2);
        values[bin].end = -values[bin].entry;
        values[bin].first += values[bin].end;
        values[bin].reuse = passed + h->hazard[bin] * each - each;
        passed += h->hazard[bin] * each;
    }
    values[f->nbins] = (struct far_values){.entry = -passed, .end = passed, .reuse = passed, .first = passed};
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

/* m of each group, and how much of it is its own (expected_misses). */
struct model {
    double *share, *known;
    double misses; /* of all groups */
};

static int find_model(const struct far_shares *f, struct model *model)
{
    size_t n = f->n, width = f->nbins + 1;
    double *work = calloc(8 * width, sizeof *work);
    if (!work)
        return -ENOMEM;
    double *all[] = {work, work + width, work + 2 * width};
    const struct hazards common = {work + 3 * width, work + 4 * width},
                         own = {work + 5 * width, work + 6 * width};
    for (size_t i = 0; i < n * width; i++) {
        all[0][i % width] += f->reuses[i];
        all[1][i % width] += f->ends[i];
        all[2][i % width] += f->entries[i];
    }
    const struct touches of_all = {all[0], all[1], all[2], NULL};
    double prior = PRIOR * f->touch;
    find_hazards(f, &of_all, NULL, prior, &common);
    model->misses = 0;
    for (size_t g = 0; g < n; g++) {
        size_t at = g * width;
        const struct touches t = {f->reuses + at, f->ends + at, f->entries + at, f->firsts + at};
        find_hazards(f, &t, common.hazard, prior, &own);
        model->share[g] = expected_misses(f, t.firsts, &own, prior, &model->known[g], f->values + at);
        model->misses += model->share[g];
    }
    for (size_t g = 0; g < n && model->misses == 0; g++)
        for (uint32_t bin = 0; bin < f->nbins; bin++)
            model->share[g] += f->firsts[g * width + bin] * (1 - far_shares_part_above(bin, f->lines));
    free(work);
    normalise(model->share, n);
    return 0;
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
    double unknown; /* the part of their weights that is of no group */
    double *seen;   /* f of each group */
};

static void sum_hits(struct far_shares *f, struct sampled *s)
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
            s->seen[hit->group] += hit->weight;
        }
        if (i + 1 == f->nhits || hit[1].sample != hit->sample) {
            squares += of_burst * of_burst;
            of_burst = 0;
        }
    }
    s->number = squares > 0 ? known * known / squares : 0;
    s->unknown = all > 0 ? 1 - known / all : 0;
    normalise(s->seen, f->n);
}

/* c, from sums over groups: of squared differences between samples and model, of p^2, and of the errors that
 * the model may have. */
static double trust(double difference, double squares, double errors, double number)
{
    if (!(number > 2))
        return 0;
    double chance = (1 - squares) / (number - 1);
    double excess = fmin(fmax(difference - chance, 0), errors);
    return excess > 0 ? excess / (excess + chance) : 0;
}

/* The standard error of a share of which the model knows so much: survivors of the rest are some of the
 * others. */
static double model_error(double share, double known)
{
    return known > 0 ? share * (1 - share) * UNKNOWN_ERROR * (1 - known) / known : INFINITY;
}

/* Combines model and samples of n groups. Returns c. */
static double combine(const struct model *model, const struct sampled *s, size_t n, struct far_share *shares)
{
    double difference = 0, squares = 0, sum = 0, errors = 0;
    for (size_t g = 0; g < n; g++) {
        double error = model_error(model->share[g], model->known[g]);
        difference += (s->seen[g] - model->share[g]) * (s->seen[g] - model->share[g]);
        double p = (s->number * s->seen[g] + model->share[g]) / (s->number + 1);
        squares += p * p;
        errors += error * error;
        sum += model->share[g];
    }
    /* 0: no first touches in bursts */
    double c = sum > 0 ? trust(difference, squares, errors, s->number) : 1;
    for (size_t g = 0; g < n; g++)
        shares[g].share = (1 - s->unknown) * (model->share[g] + c * (s->seen[g] - model->share[g])) +
                          s->unknown * model->share[g];
    return c;
}

/* By the samples alone, or by the model with that part c of the samples, whichever is smaller. */
static void find_errors(const struct model *model, const struct sampled *s, double c, size_t n,
                        struct far_share *shares)
{
    for (size_t g = 0; g < n; g++) {
        double share = fmin(1, fmax(0, shares[g].share)), low, high;
        watched_wilson(share, s->number, &low, &high);
        double of_known = (1 - s->unknown) * fmax(high - share, share - low) / MODEL_NORMAL_95;
        double of_unknown = s->unknown * sqrt(model->share[g] * (1 - model->share[g]) / UNKNOWN_SAMPLES);
        double of_samples = hypot(of_known, of_unknown);
        double of_model = hypot(c * of_samples, model_error(share, model->known[g]));
        shares[g].by_model = of_model < of_samples;
        shares[g].error = fmin(of_model, of_samples);
    }
}

/* The first touches that bursts do not decide. */
static double sum_undecided(const struct far_shares *f)
{
    size_t width = f->nbins + 1;
    double sum = 0;
    for (size_t i = 0; i < f->n * width; i++)
        if (f->firsts[i] > 0)
            sum += f->firsts[i] * (1 - far_shares_part_above((uint32_t)(i % width), f->lines));
    return sum;
}

/* Where distances are beyond the reach of tails, the model expects too many misses. */
static void lessen_known(double expected, struct model *model, size_t n)
{
    double reached = isnan(expected) || !(model->misses > 0) ? 0 : fmin(1, expected / model->misses);
    for (size_t g = 0; g < n; g++)
        model->known[g] *= reached;
}

/* values: what a touch contributes to so many misses as are expected, instead of the model's. */
static void scale_values(const struct far_shares *f, double expected, const struct model *model,
                         const struct far_share *shares)
{
    for (size_t i = 0; i < f->n * (f->nbins + 1); i++) {
        size_t g = i / (f->nbins + 1);
        double misses = model->share[g] * model->misses, all = isnan(expected) ? model->misses : expected,
               scale = misses > 0 ? shares[g].share * all / misses : 0;
        struct far_values *v = &f->values[i];
        v->reuse *= scale;
        v->first *= scale;
        v->entry *= scale;
        v->end *= scale;
    }
}

int far_shares_find(struct far_shares *f, double far, struct far_share *shares, double *hits)
{
    size_t n = f->n;
    double *work = calloc(3 * n + 1, sizeof *work);
    free(f->values);
    f->values = calloc((n + 1) * (f->nbins + 1), sizeof *f->values);
    struct model model = {.share = work, .known = work + n};
    int code = work && f->values ? find_model(f, &model) : -ENOMEM;
    if (code == 0) {
        struct sampled s = {.seen = work + 2 * n};
        sum_hits(f, &s);
        double expected = far * sum_undecided(f);
        lessen_known(expected, &model, n);
        double c = combine(&model, &s, n, shares);
        scale_values(f, expected, &model, shares);
        find_errors(&model, &s, c, n, shares);
        *hits = s.number;
    }
    free(work);
    return code;
}

double far_shares_value(const struct far_shares *f, size_t group, enum far_touch what, uint32_t bin)
{
    const struct far_values *v = &f->values[place(f, group, bin)];
    switch (what) {
    case FAR_REUSE:
    case FAR_TAIL_REUSE:
        return v->reuse;
    case FAR_FIRST:
        return v->first;
    case FAR_TAIL_ENTRY:
        return v->entry;
    default:
        return v->end;
    }
}
