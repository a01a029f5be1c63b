/* SPDX-License-Identifier: Apache-2.0 */
/* ratio.h - a ratio of two sums over intervals, such as time per step, and how sure it is. */
#ifndef CACHEGRAM_MODEL_RATIO_H
#define CACHEGRAM_MODEL_RATIO_H

#include <stdint.h>

/* Zeroed to begin with. */
struct ratio {
    uint64_t n;
    double x, y, xx, xy, yy; /* sums */
};

void ratio_add(struct ratio *r, double x, double y);
/*
 * sum x / sum y, with its 95% interval: the ratio estimator, variance by linearisation (Cochran 1977, 6.3),
 * Student's t. Intervals count as independent. *value is NaN without any y; low and high where n < 2.
 */
void ratio_estimate(const struct ratio *r, double *value, double *low, double *high);

#endif
