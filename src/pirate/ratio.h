/* SPDX-License-Identifier: Apache-2.0 */
/* ratio.h - a ratio of two sums over intervals, such as time per step, with its confidence interval. */
#ifndef CACHEGRAM_MODEL_RATIO_H
#define CACHEGRAM_MODEL_RATIO_H

#include <stdint.h>

/* To be initialised with zeros. */
struct ratio {
    uint64_t n;
    double x, y, xx, xy, yy; /* sums */
};

void ratio_add(struct ratio *r, double x, double y);
/*
 * sum x / sum y with its 95% interval: the ratio estimator, variance by linearisation (Cochran 1977, 6.3),
 * Student's t. Intervals are assumed independent. *value is NaN if all y are 0; low and high if n < 2.
 */
void ratio_estimate(const struct ratio *r, double *value, double *low, double *high);

#endif
