/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shrink.c - the mean of a few noisy values, drawn towards that of many similar ones.
 *
 * A member with n values of mean a, in a group whose values have the mean b, is estimated as
 *
 *     (n a + k b) / (n + k)
 *
 * which is the best linear estimate if the noise of a value has k times the variance of the members' true
 * values. k is RATIO.
 *
 * Example: one group, values 1, 1, 3, 3, each of another member: b = 2, and members are (1 + 3 * 2) / 4 =
 * 1.75 and 2.25.
 */
#include "model/shrink.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* With variances estimated for each run, errors of the miss ratio over time were up to 3% smaller
 * (docs/decisions/what-went.md). */
#define RATIO 3.0

struct mean {
    double weight, squares; /* sums of weights and of their squares */
    double *sum;            /* weighted; [sizes] */
};

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

static double mean_of(const struct mean *m, size_t k)
{
    return m->weight > 0 ? m->sum[k] / m->weight : NAN;
}

int shrink_values(const struct shrink_value *values, size_t n, size_t sizes, const uint32_t *group_of,
                  size_t members, size_t groups, double *of_member, double *of_group)
{
    struct mean *of_groups = calloc(groups + members + 1, sizeof *of_groups), *own = of_groups + groups;
    double *sums = calloc((groups + members) * sizes + 1, sizeof *sums);
    int code = of_groups && sums ? 0 : -ENOMEM;
    for (size_t i = 0; code == 0 && i < groups + members; i++)
        of_groups[i].sum = sums + i * sizes;
    for (size_t i = 0; code == 0 && i < n; i++) {
        const struct shrink_value *v = &values[i];
        if (!(v->weight > 0) || isnan(v->y[0]))
            continue;
        add(&of_groups[v->group], v, sizes);
        if (v->member < members)
            add(&own[v->member], v, sizes);
    }
    for (size_t i = 0; code == 0 && i < groups * sizes; i++)
        of_group[i] = mean_of(&of_groups[i / sizes], i % sizes);
    for (size_t i = 0; code == 0 && i < members * sizes; i++) {
        const struct mean *m = &own[i / sizes];
        double group = of_group[group_of[i / sizes] * sizes + i % sizes], count = effective(m);
        of_member[i] = count > 0 ? group + (mean_of(m, i % sizes) - group) * count / (count + RATIO) : group;
    }
    free(of_groups);
    free(sums);
    return code;
}
