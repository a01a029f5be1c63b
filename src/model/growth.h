/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth.h - the expected number of distinct lines that r references touch (StatStack's ES(r),
 * docs/methods.md, section 3), from reuse distances of which some are censored. Internal to the models.
 */
#ifndef CACHEGRAM_MODEL_GROWTH_H
#define CACHEGRAM_MODEL_GROWTH_H

#include <stddef.h>
#include <stdint.h>

#include "base/packed-hist.h"

/*
 * Coarser than struct hist, since there is one of these for each burst: values below 64 have a bin each, then
 * there are 16 bins per octave. Each is a whole number of histogram bins.
 */
#define GROWTH_EXACT 64u
#define GROWTH_STEPS 16u
#define GROWTH_BINS (GROWTH_EXACT + GROWTH_STEPS * 4u + (HIST_BINS - HIST_EXACT) / 16u)

/* Lowest value of the bin; of GROWTH_BINS: the end of the last. */
double growth_edge(uint32_t bin);
uint32_t growth_bin(double value); /* value >= 0 */

/* Sums of the weights of reuse distances. */
struct growth_counts {
    double event[GROWTH_BINS];    /* exactly in this bin */
    double censored[GROWTH_BINS]; /* at least in this bin */
    double endless;               /* infinite: never reused */
};
enum growth_kind { GROWTH_EVENT, GROWTH_CENSORED };
void growth_add_hist(struct growth_counts *counts, enum growth_kind kind, const struct packed_hist *h);
/* into += factor * from */
void growth_add_counts(struct growth_counts *into, const struct growth_counts *from, double factor);

struct growth {
    double share[GROWTH_BINS + 1]; /* of references whose reuse distance is at least the bin's edge */
    double lines[GROWTH_BINS + 1]; /* expected distinct lines among so many references as the bin's edge */
};
/*
 * Kaplan-Meier. Where nothing is at risk, the share stays constant. Bins which distances of no more
 * weight than `least` are known to reach count as unknown; the number of bins before the first unknown one is
 * returned.
 */
uint32_t growth_estimate(const struct growth_counts *counts, double least, struct growth *g);
/* Replaces g from bin `from` on by tail, scaled to be continuous. */
void growth_splice(struct growth *g, const struct growth *tail, uint32_t from);
/* Expected distinct lines among so many references (>= 0), linear within bins. */
double growth_lines(const struct growth *g, double references);

#endif
