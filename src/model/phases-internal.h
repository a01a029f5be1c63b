/* SPDX-License-Identifier: Apache-2.0 */
/* phases-internal.h - what phases.c and phases-chains.c share. */
#ifndef CACHEGRAM_PHASES_INTERNAL_H
#define CACHEGRAM_PHASES_INTERNAL_H

#include <math.h>

#include "model/phases.h"

struct phases_centre {
    double weight, samples, code[PHASES_CODE];
    double data_weight[PHASES_KINDS], data[PHASES_KINDS][PHASES_DATA]; /* means */
};

struct phases_work {
    struct phases_window *w;
    size_t n;
    struct phases_centre *centres;
    size_t ncentres;
    double longest;             /* weight of the longest window, before windows were joined */
    double noise[PHASES_KINDS]; /* of the data of one window; of one burst */
    uint32_t *number;           /* scratch */
};

static inline int phases_is_used(const struct phases_window *w)
{
    return w->phase != 0;
}

static inline double phases_data_distance(const double *a, const double *b)
{
    double sum = 0;
    for (unsigned i = 0; i < PHASES_DATA; i++)
        sum += fabs(a[i] - b[i]);
    return sum;
}

/* The mean of n values each, of weight `old`, is now that of `more` as well. */
static inline void phases_add_to_mean(double *mean, const double *value, unsigned n, double old, double more)
{
    for (unsigned i = 0; i < n; i++)
        mean[i] += (value[i] - mean[i]) * (more / (old + more));
}

/* The thread's window before i, with_data: that has data of the same kind; n if there is none. */
size_t phases_before(const struct phases_work *work, size_t i, int with_data);
/* Its next one. */
size_t phases_after(const struct phases_work *work, size_t i);

/* Joins windows that follow each other and are alike: work->w becomes more[], which has room for all, and
 * into[] says where each window went. 0 or -ENOMEM. */
int phases_join_neighbours(struct phases_work *work, struct phases_window *more, size_t *into);

#endif
