/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of misses from bursts.
 *
 * Problem. Each burst says how many references a group made in it, how many of these miss in the cache asked
 * about, and how many first touches it does not decide. What is the group's share of the run's misses, and
 * how far may it be off?
 *
 * Method. Undecided first touches miss with the run's chance `far` (watched.h). With the weights w of the
 * bursts, the sums M = sum w m and R = sum w r estimate the run's. Share q = M_g / M and ratio M_g / R_g are
 * quotients of sums over independent bursts; their variance is that of the residuals m_g - q m (Cochran,
 * Sampling Techniques, 6.3: ratio estimate of a cluster sample):
 *
 *     var q = n/(n-1) * sum w^2 (m_g - q m)^2 / M^2
 *
 * References of one burst are alike, and bursts are not: so the variance is taken over bursts. The error
 * of `far` is common to all bursts; q moves by (U_g - q U) / M for a unit of it, where U sums undecided
 * touches.
 *
 * Example: two bursts of equal weight, 10 misses each, of which the group has 4 and 6. q = 10/20; residuals
 * -1 and 1; var = 2 * 2 / 400 = 0.01, so the standard error is 10 percentage points.
 */
#include "model/shares.h"

#include <math.h>
#include <stdlib.h>

/* Half a 95% interval, in standard errors. */
#define ERRORS 1.96

struct sums {
    double r, m, u;    /* weighted references, misses, undecided */
    double rr, rm, mm; /* of products */
    double with_all;   /* m times the burst's own misses */
    double raw_misses;
    double raw_references;
};

struct part {
    double r, m, u;
};

struct shares {
    size_t n;
    double far, far_error; /* standard error */
    struct sums *groups;   /* n + 1: the last one is all of them */
    struct part *parts;    /* of the burst at hand, likewise */
    size_t *used;          /* groups with parts */
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
    s->far_error = (far_high - far_low) / (2 * ERRORS);
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

void shares_add(struct shares *s, size_t group, double references, double misses, double perhaps)
{
    struct part *part = &s->parts[group];
    if (part->r == 0 && part->m == 0 && part->u == 0 && (references > 0 || misses > 0 || perhaps > 0))
        s->used[s->nused++] = group;
    part->r += references;
    part->m += misses + s->far * perhaps;
    part->u += perhaps;
}

static void add_part(struct sums *g, const struct part *part, double weight, double all)
{
    double r = weight * part->r, m = weight * part->m;
    g->r += r;
    g->m += m;
    g->u += weight * part->u;
    g->rr += r * r;
    g->rm += r * m;
    g->mm += m * m;
    g->with_all += m * all;
    g->raw_misses += part->m;
    g->raw_references += part->r;
}

void shares_burst(struct shares *s, double weight)
{
    struct part all = {0};
    for (size_t i = 0; i < s->nused; i++) {
        const struct part *part = &s->parts[s->used[i]];
        all.r += part->r;
        all.m += part->m;
        all.u += part->u;
    }
    for (size_t i = 0; i < s->nused; i++) {
        add_part(&s->groups[s->used[i]], &s->parts[s->used[i]], weight, weight * all.m);
        s->parts[s->used[i]] = (struct part){0};
    }
    add_part(&s->groups[s->n], &all, weight, weight * all.m);
    s->nused = 0;
    s->bursts += weight > 0;
}

static void interval(double value, double variance, double *low, double *high)
{
    double half = ERRORS * sqrt(fmax(0, variance));
    *low = fmax(0, value - half);
    *high = fmin(1, value + half);
}

static void find(const struct shares *s, const struct sums *g, struct shares_result *result)
{
    const struct sums *all = &s->groups[s->n];
    double n = (double)s->bursts, small = n > 1 ? n / (n - 1) : 0;
    *result = (struct shares_result){.references = g->r, .misses = g->m};
    result->references_share = all->r > 0 ? g->r / all->r : 0;
    result->misses_share = all->m > 0 ? g->m / all->m : 0;
    result->miss_ratio = g->r > 0 ? g->m / g->r : 0;
    result->recorded = (uint64_t)(g->raw_references + 0.5);

    double q = result->misses_share, ratio = result->miss_ratio;
    double variance = 0, of_far = 0;
    if (all->m > 0) {
        variance = small * (g->mm - 2 * q * g->with_all + q * q * all->mm) / (all->m * all->m);
        of_far = (g->u - q * all->u) / all->m * s->far_error;
    }
    interval(q, variance + of_far * of_far, &result->share_low, &result->share_high);
    variance = of_far = 0;
    if (g->r > 0) {
        variance = small * (g->mm - 2 * ratio * g->rm + ratio * ratio * g->rr) / (g->r * g->r);
        of_far = g->u / g->r * s->far_error;
    }
    interval(ratio, variance + of_far * of_far, &result->ratio_low, &result->ratio_high);
    result->enough =
        g->mm > 0 && g->m * g->m / g->mm >= SHARES_MIN_BURSTS && g->raw_misses >= SHARES_MIN_MISSES;
}

void shares_result(const struct shares *s, size_t group, struct shares_result *result)
{
    find(s, &s->groups[group], result);
}

void shares_total(const struct shares *s, struct shares_result *result)
{
    find(s, &s->groups[s->n], result);
}
