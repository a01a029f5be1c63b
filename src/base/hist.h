/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hist.h - histograms of distances with a fixed, universal set of bins.
 *
 * Below 1024 every value has a bin of its own; above, a bin is 1/256 octave wide. Every power of
 * two and every half power of two (floored) is a bin's lower edge, so a share "distance >= edge"
 * is exact there. Bin b holds the values hist_edge(b) <= v < hist_edge(b + 1).
 */
#ifndef CACHEGRAM_HIST_H
#define CACHEGRAM_HIST_H

#include <stdint.h>

#define HIST_EXACT 1024u
#define HIST_SUB 256u
#define HIST_BINS (HIST_EXACT + HIST_SUB * 38u) /* values below 2^48; larger ones go into the last bin */

struct hist {
    uint64_t count[HIST_BINS];
    uint64_t total; /* sum of count[] */
};

uint32_t hist_bin(uint64_t value); /* 0 .. HIST_BINS-1 */
uint64_t hist_edge(uint32_t bin);  /* lowest value of the bin; hist_edge(HIST_BINS) = 2^48 */
void hist_add(struct hist *h, uint64_t value, uint64_t count);
void hist_merge(struct hist *into, const struct hist *from);
/* Number of values >= value; exact if value is an edge, else linear within the bin. */
double hist_at_least(const struct hist *h, double value);

#endif
