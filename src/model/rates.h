/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rates.h - bounds the rates that weight bursts, and fills in missing ones (docs/methods.md, section 7).
 */
#ifndef CACHEGRAM_MODEL_RATES_H
#define CACHEGRAM_MODEL_RATES_H

#include <stddef.h>

/* The two rates measured at a burst. */
struct rates_pair {
    double near_per_ns; /* of the references right before it, from which its weight comes; NaN: not known */
    double refs_per_ns; /* of the whole counting stretch before it; NaN: not known */
    double lines_each;  /* distinct lines that the burst touched, for each of its references; 0: not known */
};

/*
 * Bounds near_per_ns: a few references that took almost no time must not give one burst half of the total
 * weight. 0, or -ENOMEM: then nothing is changed.
 */
int rates_bound(struct rates_pair *rates, size_t n);

/* Where neither rate is known but lines_each is: sets refs_per_ns to the rate (near_per_ns, or else
 * refs_per_ns) of the burst that is most like it in lines_each, of those whose rate was measured. 0, or
 * -ENOMEM: then nothing is changed. */
int rates_fill(struct rates_pair *rates, size_t n);

#endif
