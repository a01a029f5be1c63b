/* SPDX-License-Identifier: Apache-2.0 */
#include "pirate/ratio.h"

#include <math.h>
#include <stddef.h>

/* 97.5% quantiles of Student's t for 1, 2, ... degrees of freedom. */
static const double student[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
#define LARGE_SAMPLE 2.05 /* 1.96 to 2.08 for 21 and more */

void ratio_add(struct ratio *r, double x, double y)
{
    r->n++;
    r->x += x;
    r->y += y;
    r->xx += x * x;
    r->xy += x * y;
    r->yy += y * y;
}

void ratio_estimate(const struct ratio *r, double *value, double *low, double *high)
{
    *value = *low = *high = NAN;
    if (!(r->y > 0))
        return;
    double ratio = r->x / r->y, n = (double)r->n;
    *value = ratio;
    if (r->n < 2)
        return;
    /* Sum of (x - ratio y)^2; rounding can take it below 0. */
    double squares = fmax(r->xx - 2 * ratio * r->xy + ratio * ratio * r->yy, 0);
    double error = sqrt(n / (n - 1) * squares) / r->y;
    size_t freedom = (size_t)(r->n - 1);
    double t = freedom <= sizeof student / sizeof student[0] ? student[freedom - 1] : LARGE_SAMPLE;
    *low = fmax(ratio - t * error, 0);
    *high = ratio + t * error;
}
