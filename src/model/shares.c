/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of misses from bursts.
 *
 * Problem. Each burst says how many references a group made in it, how many of these miss in the cache asked
 * about, and how many first touches it does not decide. What is the group's share of the run's misses, and
 * how far may it be off?
 *
 * Method. Of all undecided first touches, weighted sum U, a share `far` misses (watched.h), and s_g of these
 * misses are the group's (far-shares.h). With the weights w of the bursts and misses a that bursts decide,
 *
 *     M_g = sum w a_g + far U s_g,     M = sum w a + far U,     R = sum w r
 *
 * estimate the run's misses and references. Share q = M_g / M and ratio M_g / R_g are quotients of sums over
 * independent bursts; their variance is that of the residuals (Cochran, Sampling Techniques, 6.3: ratio
 * estimate of a cluster sample):
 *
 *     var q = n/(n-1) * sum w^2 (m_g - q m)^2 / M^2,     m_g = a_g + far u s_g,     m = a + far u
 *
 * A part of the run that was recorded completely adds to M_g, M and R_g, and not to their variances; then the
 * residuals of the bursts do not add up to 0, and their variance is taken around their mean.
 *
 * References of one burst are correlated. What is counted is bursts, so that the variance is not
 * underestimated. The errors of `far` and s_g are common to all bursts; q moves by U (s_g - q) / M for a unit
 * of the one, and by far U / M for a unit of the other.
 *
 * Bursts are weighted by rates of references, which are wrong by other factors for other code. This is taken
 * for a relative error e of the group's misses, independent of the others', which moves q by q (1 - q) e; the
 * part of the misses that was recorded completely has none.
 *
 * Code that ran only between bursts is in none of them. One burst represents 1/n of the sampled references,
 * n being the effective number of bursts. Up to as much of the misses may be of code that no burst shows, the
 * group's own or of others: the interval is extended by this.
 *
 * Example: two bursts of equal weight, 10 misses each, of which the group has 4 and 6. q = 10/20; residuals
 * -1 and 1; var = 2 * 2 / 400 = 0.01, so the standard error is 10 percentage points.
 */
#include "model/shares.h"

#include <math.h>
#include <stdlib.h>

#include "model/internal.h"
#include "model/watched-internal.h"

/* Weighted sums over bursts: r references, a decided misses, u undecided first touches. */
struct sums {
    double r, a, u;
    double rr, ra, aa;     /* of products of the group's own */
    double ru, au, aa_all; /* of its own and all groups' in the burst; aa_all: of decided misses */
    double raw_misses, raw_references;
    double exact_r, exact_a, exact_u; /* of r, a and u, the part that is not a sample */
};

struct part {
    double r, a, u;
    int used;
};

struct shares {
    size_t n;
    double far, far_error;           /* standard error */
    const struct far_share *of_each; /* NULL: not known */
    double samples;
    const struct shares *spread; /* NULL: none */
    double rate_error;
    struct sums *groups; /* n + 1: the last one is all of them */
    double uu;           /* of all groups */
    struct part *parts;  /* of the current burst, likewise */
    size_t *used;        /* groups with parts */
    size_t nused;
    size_t bursts;
};

struct shares *shares_new(size_t n, double far, double far_low, double far_high)
{
    struct shares *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->n = n;
    s->far = far;
    s->far_error = (far_high - far_low) / (2 * MODEL_NORMAL_95);
    s->groups = calloc(n + 1, sizeof *s->groups);
    s->parts = calloc(n + 1, sizeof *s->parts);
    s->used = calloc(n + 1, sizeof *s->used);
    if (s->groups && s->parts && s->used)
        return s;
    shares_free(s);
    return NULL;
}

void shares_free(struct shares *s)
{
    if (!s)
        return;
    free(s->groups);
    free(s->parts);
    free(s->used);
    free(s);
}

void shares_add(struct shares *s, size_t group, double references, double misses, double undecided)
{
    struct part *part = &s->parts[group];
    if (!part->used)
        s->used[s->nused++] = group;
    part->used = 1;
    part->r += references;
    part->a += misses;
    part->u += undecided;
}

static void add_part(struct sums *g, const struct part *part, double weight, const struct part *all)
{
    double r = weight * part->r, a = weight * part->a, all_a = weight * all->a, all_u = weight * all->u;
    g->r += r;
    g->a += a;
    g->u += weight * part->u;
    g->rr += r * r;
    g->ra += r * a;
    g->aa += a * a;
    g->ru += r * all_u;
    g->au += a * all_u;
    g->aa_all += a * all_a;
    g->raw_misses += part->a;
    g->raw_references += part->r;
}

void shares_burst(struct shares *s, double weight)
{
    struct part all = {0};
    for (size_t i = 0; i < s->nused; i++) {
        const struct part *part = &s->parts[s->used[i]];
        all.r += part->r;
        all.a += part->a;
        all.u += part->u;
    }
    for (size_t i = 0; i < s->nused; i++) {
        add_part(&s->groups[s->used[i]], &s->parts[s->used[i]], weight, &all);
        s->parts[s->used[i]] = (struct part){0};
    }
    add_part(&s->groups[s->n], &all, weight, &all);
    s->uu += weight * all.u * weight * all.u;
    s->nused = 0;
    s->bursts += weight > 0;
}

double shares_exact(struct shares *s)
{
    struct sums *all = &s->groups[s->n];
    double references = 0;
    for (size_t i = 0; i < s->nused; i++) {
        struct part *part = &s->parts[s->used[i]];
        struct sums *const of[] = {&s->groups[s->used[i]], all};
        for (size_t k = 0; k < 2; k++) {
            of[k]->r += part->r;
            of[k]->a += part->a;
            of[k]->u += part->u;
            of[k]->exact_r += part->r;
            of[k]->exact_a += part->a;
            of[k]->exact_u += part->u;
            of[k]->raw_misses += part->a;
            of[k]->raw_references += part->r;
        }
        references += part->r;
        *part = (struct part){0};
    }
    s->nused = 0;
    return references;
}

void shares_set_far(struct shares *s, const struct far_share *far, double samples)
{
    s->of_each = far;
    s->samples = samples;
}

void shares_set_spread(struct shares *s, const struct shares *spread)
{
    s->spread = spread;
}

void shares_set_rate_error(struct shares *s, double error)
{
    s->rate_error = error;
}

static void interval(double value, double variance, double *low, double *high)
{
    double half = MODEL_NORMAL_95 * sqrt(fmax(0, variance));
    *low = fmax(0, value - half);
    *high = fmin(1, value + half);
}

/*
 * A quotient q of two sums over bursts. The numerator is a group's misses, decided ones and `part` of all
 * undecided ones that miss; q times the undecided ones in the denominator is subtracted in `part`. The rest
 * of the denominator: all decided misses, or the group's references.
 */
struct quotient {
    double q, part, denominator;
    int of_references;
};

/* The variance of the numerator's residuals, by the bursts. */
static double variance_of_bursts(const struct shares *s, const struct sums *g, const struct quotient *f)
{
    const struct sums *all = &s->groups[s->n];
    double n = (double)s->bursts, q = f->q, undecided = s->far * f->part;
    /* Sums over the bursts: of that rest x, x^2, and its products with a of the group and u of all. */
    double x = f->of_references ? g->r - g->exact_r : all->a - all->exact_a;
    double xx = f->of_references ? g->rr : all->aa, ax = f->of_references ? g->ra : g->aa_all;
    double ux = f->of_references ? g->ru : all->au;
    double squares = g->aa + undecided * undecided * s->uu + q * q * xx + 2 * undecided * g->au - 2 * q * ax -
                     2 * q * undecided * ux;
    /* The sum of the bursts' residuals is not 0 beside a part that is not a sample. */
    double sum = g->a - g->exact_a + undecided * (all->u - all->exact_u) - q * x;
    squares -= n > 0 ? sum * sum / n : 0;
    return n > 1 ? n / (n - 1) * fmax(0, squares) : 0;
}

static const struct sums *spread_of(const struct shares *s, const struct sums *g, struct far_share far)
{
    return s->spread && far.by_model ? &s->spread->groups[g - s->groups] : NULL;
}

static double variance(const struct shares *s, const struct sums *g, struct far_share far,
                       const struct quotient *f)
{
    const struct sums *all = &s->groups[s->n], *spread = spread_of(s, g, far);
    double of_far = all->u * f->part * s->far_error, of_part = s->far * all->u * far.error;
    double of_bursts = spread ? variance_of_bursts(s->spread, spread, f) : variance_of_bursts(s, g, f);
    return (of_bursts + of_far * of_far + of_part * of_part) / (f->denominator * f->denominator);
}

/* Of the share q in these misses. */
static double variance_of_rates(const struct shares *s, double q, double misses)
{
    double error = s->rate_error * q * (1 - q) * (1 - s->groups[s->n].exact_a / misses);
    return s->bursts > 0 ? error * error : 0;
}

/* By how much Student's t makes a variance larger that was found from few bursts (Cornish and Fisher). */
static double few_bursts(const struct sums *g)
{
    double sampled = g->a - g->exact_a, bursts = g->aa > 0 ? sampled * sampled / g->aa : 0;
    double factor = 1 + (MODEL_NORMAL_95 * MODEL_NORMAL_95 + 1) / (4 * fmax(1, bursts - 1));
    return factor * factor;
}

/* Effective number of bursts, by their weighted references (Kish). */
static double effective_bursts(const struct shares *s)
{
    const struct sums *all = &s->groups[s->n];
    double sampled = all->r - all->exact_r;
    return all->rr > 0 ? sampled * sampled / all->rr : 0;
}

/* Extends the interval of a group's share by what no burst may have shown. */
static void extend(const struct shares *s, double misses, struct shares_result *result)
{
    const struct sums *all = &s->groups[s->n];
    double exact = all->exact_a + s->far * all->exact_u;
    double unseen = fmax(0, 1 - exact / misses) / fmax(1, effective_bursts(s));
    result->share_low *= 1 - unseen;
    result->share_high += (1 - result->share_high) * unseen;
}

static int is_enough(const struct shares *s, const struct sums *g, struct far_share far, double undecided)
{
    const struct sums *seen = spread_of(s, g, far), *all = &s->groups[s->n];
    if (effective_bursts(s) < SHARES_MIN_BURSTS && all->exact_r < 2 * (all->r - all->exact_r))
        return 0;
    if (!seen && undecided > g->a && undecided > 0)
        return s->samples >= SHARES_MIN_SAMPLES;
    seen = seen ? seen : g;
    double sampled = seen->a - seen->exact_a; /* the rest has no error */
    if (seen == g && seen->exact_a >= 2 * (sampled + undecided))
        return seen->raw_misses >= SHARES_MIN_MISSES;
    /* Beside what no burst may have shown (the rule of three). */
    const struct sums *all_seen = seen == g ? NULL : &s->spread->groups[s->n];
    if (all_seen &&
        seen->exact_a >= 2 * (sampled + 3 / (double)s->bursts * (all_seen->a - all_seen->exact_a)))
        return seen->raw_misses >= SHARES_MIN_MISSES;
    return seen->aa > 0 && sampled > 0 && sampled * sampled / seen->aa >= SHARES_MIN_BURSTS &&
           seen->raw_misses >= SHARES_MIN_MISSES;
}

static void find(const struct shares *s, const struct sums *g, struct far_share far,
                 struct shares_result *result)
{
    const struct sums *all = &s->groups[s->n];
    double undecided = s->far * all->u * far.share, misses = all->a + s->far * all->u;
    *result = (struct shares_result){.references = g->r, .misses = g->a + undecided};
    result->references_share = all->r > 0 ? g->r / all->r : 0;
    result->misses_share = misses > 0 ? result->misses / misses : 0;
    result->miss_ratio = g->r > 0 ? fmin(1, result->misses / g->r) : result->misses > 0 ? NAN : 0;
    result->recorded = (uint64_t)(g->raw_references + 0.5);
    const struct quotient share = {result->misses_share, far.share - result->misses_share, misses, 0};
    const struct quotient ratio = {result->miss_ratio, far.share, g->r, 1};
    double of_share = misses > 0 ? variance(s, g, far, &share) + variance_of_rates(s, share.q, misses) : 0;
    interval(share.q, of_share, &result->share_low, &result->share_high);
    const struct sums *spread = spread_of(s, g, far);
    if (spread && of_share > 0) { /* as a sample of so many independent misses has it */
        of_share *= few_bursts(spread);
        watched_wilson(share.q, share.q * (1 - share.q) / of_share, &result->share_low, &result->share_high);
    }
    if (s->bursts > 0 && misses > 0 && g != all)
        extend(s, misses, result);
    result->ratio_low = result->ratio_high = ratio.q;
    if (g->r > 0)
        interval(ratio.q, variance(s, g, far, &ratio), &result->ratio_low, &result->ratio_high);
    result->enough = s->bursts > 0 && is_enough(s, g, far, undecided);
    if (s->bursts == 0) { /* of what was not recorded completely nothing is known */
        result->share_low = result->ratio_low = 0;
        result->share_high = result->ratio_high = 1;
    }
}

void shares_result(const struct shares *s, size_t group, struct shares_result *result)
{
    const struct sums *g = &s->groups[group], *all = &s->groups[s->n];
    struct far_share far = {.share = all->u > 0 ? g->u / all->u : 0};
    find(s, g, s->of_each ? s->of_each[group] : far, result);
}

void shares_total(const struct shares *s, struct shares_result *result)
{
    find(s, &s->groups[s->n], (struct far_share){.share = 1}, result);
}
