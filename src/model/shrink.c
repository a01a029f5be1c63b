/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shrink.c - empirical Bayes estimates of two levels.
 *
 * A value is the mean of all, plus its group's deviation from that, plus its member's deviation from the
 * group, plus noise: y = m + g + d + e, with the variances G, D and E. The best linear estimate for a member
 * with n values of mean a, in a group with N values of mean b, is between a and what the group suggests:
 *
 *     group  = (N b + K m) / (N + K),    K = (D + E) / G
 *     member = (n a + k group) / (n + k),    k = E / D
 *
 * Variances are estimated from the values, summed over sizes, so that each size does not need to have enough
 * of them: D + E within groups; G between the groups' means, less what D + E make of that; E from pairs of
 * values of a group that follow each other, in most cases in the same member or one close by.
 *
 * Example: one group, values 1, 1, 3, 3, each of another member. D + E = 4/3. One of three pairs differs, by
 * 2: E = 2^2 / 2 / 3 = 2/3, D = 2/3, k = 1, and each member is half way between its value and the mean, 2.
 */
#include "model/shrink.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Upper bounds of K and k: the only value of a group, or of a member, counts at least a third as much as what
 * it is compared with, since ratios that are estimated from few values are often far too high.
 */
#define MOST_GROUP_RATIO 3.0
#define MOST_MEMBER_RATIO 3.0

struct mean {
    double weight, squares; /* sums of weights and of their squares */
    double *sum;            /* weighted; [sizes] */
};

struct work {
    size_t sizes, members, groups;
    struct mean *means; /* of groups, then of members, then of all */
    double *sums;
    double *count, *plain; /* of groups: values, and their unweighted means [sizes] */
    size_t *last;          /* of groups: their last value, + 1 */
};

static int is_used(const struct shrink_value *v)
{
    return v->weight > 0 && !isnan(v->y[0]);
}

static void add(struct mean *m, const struct shrink_value *v, size_t sizes)
{
    m->weight += v->weight;
    m->squares += v->weight * v->weight;
    for (size_t k = 0; k < sizes; k++)
        m->sum[k] += v->weight * v->y[k];
}

/* Values of equal weight that would be as good. */
static double effective(const struct mean *m)
{
    return m->squares > 0 ? m->weight * m->weight / m->squares : 0;
}

static double square_of_difference(const double *a, const double *b, size_t sizes)
{
    double sum = 0;
    for (size_t k = 0; k < sizes; k++)
        sum += (a[k] - b[k]) * (a[k] - b[k]);
    return sum;
}

static int work_new(struct work *w, size_t sizes, size_t members, size_t groups)
{
    size_t n = groups + members + 1;
    *w = (struct work){sizes, members, groups, NULL, NULL, NULL, NULL, NULL};
    w->means = calloc(n, sizeof *w->means);
    w->sums = calloc(n * sizes + 1, sizeof *w->sums);
    w->count = calloc(groups + 1, sizeof *w->count);
    w->plain = calloc((groups + 1) * sizes + 1, sizeof *w->plain);
    w->last = calloc(groups + 1, sizeof *w->last);
    for (size_t i = 0; w->means && w->sums && i < n; i++)
        w->means[i].sum = w->sums + i * sizes;
    return w->means && w->sums && w->count && w->plain && w->last ? 0 : -ENOMEM;
}

static void work_clear(struct work *w)
{
    free(w->means);
    free(w->sums);
    free(w->count);
    free(w->plain);
    free(w->last);
}

static void add_all(struct work *w, const struct shrink_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct shrink_value *v = &values[i];
        if (!is_used(v))
            continue;
        add(&w->means[v->group], v, w->sizes);
        if (v->member < w->members)
            add(&w->means[w->groups + v->member], v, w->sizes);
        add(&w->means[w->groups + w->members], v, w->sizes);
        double *plain = w->plain + v->group * w->sizes, *all = w->plain + w->groups * w->sizes;
        w->count[v->group]++;
        w->count[w->groups]++;
        for (size_t k = 0; k < w->sizes; k++) {
            plain[k] += (v->y[k] - plain[k]) / w->count[v->group];
            all[k] += (v->y[k] - all[k]) / w->count[w->groups];
        }
    }
}

/* *group_ratio: K; *member_ratio: k. INFINITY: there is no difference; 0: no noise can be seen. */
static void find_ratios(struct work *w, const struct shrink_value *values, size_t n, double *group_ratio,
                        double *member_ratio)
{
    double within = 0, pairs = 0, noise = 0, used = 0, squares = 0, between = 0, all = w->count[w->groups];
    for (size_t i = 0; i < n; i++) {
        const struct shrink_value *v = &values[i];
        if (!is_used(v))
            continue;
        within += square_of_difference(v->y, w->plain + v->group * w->sizes, w->sizes);
        if (w->last[v->group] != 0) {
            noise += square_of_difference(v->y, values[w->last[v->group] - 1].y, w->sizes) / 2;
            pairs++;
        }
        w->last[v->group] = i + 1;
    }
    for (size_t g = 0; g < w->groups; g++) {
        used += w->count[g] > 0;
        squares += w->count[g] * w->count[g];
        between += w->count[g] *
                   square_of_difference(w->plain + g * w->sizes, w->plain + w->groups * w->sizes, w->sizes);
    }
    *group_ratio = *member_ratio = 0;
    if (!(all > used)) /* nothing is known about noise */
        return;
    within /= all - used;
    noise = pairs > 0 ? fmin(noise / pairs, within) : within;
    *member_ratio = within > noise ? noise / (within - noise) : within > 0 ? INFINITY : 0;
    if (used > 1) {
        double each = (all - squares / all) / (used - 1), excess = between / (used - 1) - within;
        *group_ratio = excess > 0 ? within * each / excess : within > 0 ? INFINITY : 0;
    }
}

/* (n a + k b) / (n + k) */
static double mixed(double n, double a, double k, double b)
{
    return n <= 0 || isinf(k) ? b : a + (b - a) * (k / (n + k));
}

int shrink_values(const struct shrink_value *values, size_t n, size_t sizes, const uint32_t *group_of,
                  size_t members, size_t groups, double *of_member, double *of_group)
{
    struct work w;
    double group_ratio, member_ratio;
    if (work_new(&w, sizes, members, groups) < 0) {
        work_clear(&w);
        return -ENOMEM;
    }
    add_all(&w, values, n);
    find_ratios(&w, values, n, &group_ratio, &member_ratio);
    group_ratio = fmin(group_ratio, MOST_GROUP_RATIO);
    member_ratio = fmin(member_ratio, MOST_MEMBER_RATIO);
    const struct mean *all = &w.means[groups + members];
    for (size_t g = 0; g < groups; g++)
        for (size_t k = 0; k < sizes; k++)
            of_group[g * sizes + k] = w.means[g].weight > 0 ? w.means[g].sum[k] / w.means[g].weight : NAN;
    for (size_t i = 0; i < members; i++) {
        const struct mean *own = &w.means[groups + i], *group = &w.means[group_of[i]];
        for (size_t k = 0; k < sizes; k++) {
            double *estimate = &of_member[i * sizes + k];
            *estimate = NAN;
            if (!(group->weight > 0))
                continue;
            double base = mixed(effective(group), group->sum[k] / group->weight, group_ratio,
                                all->sum[k] / all->weight);
            *estimate =
                mixed(effective(own), own->weight > 0 ? own->sum[k] / own->weight : 0, member_ratio, base);
        }
    }
    work_clear(&w);
    return 0;
}
