/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rates.h - reduces the noise of the rates that weight bursts (docs/methods.md, section 7): a rate measured
 * at a single burst is noisy, but a program executes few different kinds of code.
 */
#ifndef CACHEGRAM_MODEL_RATES_H
#define CACHEGRAM_MODEL_RATES_H

#include <stddef.h>

#define RATES_TRAITS 4

/* Traits distinguish bursts of different code; they do not depend on the speed of the machine. */
struct rates_burst {
    double trait[RATES_TRAITS];
    double refs_per_ns; /* as measured; NaN: not measured */
};

/* Sets the traits from a burst's numbers. */
void rates_traits(struct rates_burst *b, double references, double lines, double blocks, double instructions,
                  double stores);

/*
 * Sets the rate of every burst, also of those without one, to the median rate of the bursts most similar to
 * it, itself included. 0, or -ENOMEM: then nothing is changed.
 */
int rates_smooth(struct rates_burst *bursts, size_t n);

/* The two rates measured at a burst. */
struct rates_pair {
    double near_per_ns; /* of the references right before it, from which its weight comes; NaN: not known */
    double refs_per_ns; /* of the whole counting stretch before it; NaN: not known */
};

/*
 * Bounds near_per_ns: a few references that took almost no time must not give one burst half of the total
 * weight. 0, or -ENOMEM: then nothing is changed.
 */
int rates_bound(struct rates_pair *rates, size_t n);

#endif
