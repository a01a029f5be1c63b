/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rates.h - steadier rates of bursts: what was measured around one burst is noisy, but a program does few
 * different things.
 */
#ifndef CACHEGRAM_MODEL_RATES_H
#define CACHEGRAM_MODEL_RATES_H

#include <stddef.h>

#define RATES_TRAITS 4

/* What tells bursts of different code apart, whatever the machine does. */
struct rates_burst {
    double trait[RATES_TRAITS];
    double refs_per_ns; /* as measured; NaN: not */
};

/* From a burst's numbers to its traits. */
void rates_traits(struct rates_burst *b, double references, double lines, double blocks, double instructions,
                  double stores);

/*
 * Gives every burst the median rate of those most like it, itself included; those without one, too. 0, or
 * -ENOMEM: then nothing is changed.
 */
int rates_smooth(struct rates_burst *bursts, size_t n);

/* What a burst is weighed with. */
struct rates_near {
    double near_per_ns; /* of the references right before it; NaN: not told */
    double refs_per_ns; /* of the stretch that these are the end of; NaN: not told */
};

/*
 * Bounds near_per_ns: a few references that were over in no time would have one burst stand for half of the
 * run. 0, or -ENOMEM: then nothing is changed.
 */
int rates_bound(struct rates_near *near, size_t n);

/*
 * For how many references the program mostly goes on as it is at a burst: by how alike the two rates of a
 * burst are, as they were measured. NaN: too few bursts tell.
 */
double rates_persistence(const struct rates_near *near, size_t n);

#endif
