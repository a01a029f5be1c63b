/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth.h - how many distinct lines so many references touch (StatStack's expected stack distance,
 * METHODS.md 3), from reuse distances of which some are cut off. Internal to the models.
 */
#ifndef CACHEGRAM_MODEL_GROWTH_H
#define CACHEGRAM_MODEL_GROWTH_H

#include <stddef.h>
#include <stdint.h>

#include "base/hist.h"

/*
 * Coarser than histograms, as there is one of these for each burst: values below 64 have a bin each, then
 * there are 16 bins an octave. Each is a whole number of histogram bins.
 */
#define GROWTH_EXACT 64u
#define GROWTH_STEPS 16u
#define GROWTH_BINS (GROWTH_EXACT + GROWTH_STEPS * 4u + (HIST_BINS - HIST_EXACT) / 16u)

/* Lowest value of the bin; of GROWTH_BINS: the end of the last. */
double growth_edge(uint32_t bin);
uint32_t growth_bin(double value); /* value >= 0 */

/* Reuse distances, each with a weight. */
struct growth_counts {
    double event[GROWTH_BINS];    /* are so long */
    double censored[GROWTH_BINS]; /* are at least so long */
    double endless;               /* have no end */
};
enum growth_kind { GROWTH_EVENT, GROWTH_CENSORED };
void growth_add_hist(struct growth_counts *counts, enum growth_kind kind, const struct hist *h,
                     double weight);
/* into += factor * from */
void growth_add_counts(struct growth_counts *into, const struct growth_counts *from, double factor);

struct growth {
    double share[GROWTH_BINS + 1]; /* of references whose reuse distance is at least the bin's edge */
    double lines[GROWTH_BINS + 1]; /* expected distinct lines among edge references */
    double at_risk[GROWTH_BINS];   /* weight of the distances known to reach the bin */
};
/*
 * Kaplan-Meier. Where nothing is at risk any more the share stays what it was before. least: bins whose
 * at_risk is not above it count as unknown; the number of bins before the first of those is returned.
 */
uint32_t growth_estimate(const struct growth_counts *counts, double least, struct growth *g);
/* From bin `from` on, g goes on in proportion to tail. */
void growth_splice(struct growth *g, const struct growth *tail, uint32_t from);
/* Expected distinct lines among so many references, >= 0. */
double growth_lines(const struct growth *g, double references);

#endif
