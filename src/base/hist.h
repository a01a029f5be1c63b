/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hist.h - histograms of distances with a fixed, universal set of bins.
 *
 * Below 1024 every value has its own bin; above, a bin is 1/256 octave wide. Every power of two and every
 * half power of two (floored) is a bin's lower edge, so that shares of "distance >= edge" are exact there.
 * Bin b holds the values hist_edge(b) <= v < hist_edge(b + 1).
 */
#ifndef CACHEGRAM_HIST_H
#define CACHEGRAM_HIST_H

#include <stddef.h>
#include <stdint.h>

#define HIST_EXACT 1024u
#define HIST_SUB 256u
#define HIST_BINS (HIST_EXACT + HIST_SUB * 38u) /* values below 2^48; larger ones go into the last bin */

struct hist {
    uint64_t count[HIST_BINS];
    uint64_t total; /* sum of count[] */
};

/* Tables of hist.c. */
#define HIST_FIRST_OCTAVE 10u /* log2(HIST_EXACT) */
#define HIST_LAST_OCTAVE 47u
extern const uint64_t
    hist_octave[HIST_SUB + 1]; /* lower edges of the steps of the last octave, and a sentinel */
extern const uint8_t hist_cell[256];

/* The value's bin, 0 .. HIST_BINS-1. No branch: on which side of HIST_EXACT a distance lies is hard to
 * predict. */
static inline uint32_t hist_bin(uint64_t value)
{
    const uint64_t largest = (UINT64_C(1) << (HIST_LAST_OCTAVE + 1)) - 1;
    uint64_t v = value < largest ? value : largest;
    unsigned k = 63u - (unsigned)__builtin_clzll(v | HIST_EXACT); /* its octave */
    unsigned shift = HIST_LAST_OCTAVE - k;
    uint64_t end = (v + 1) << shift;
    uint32_t s = hist_cell[(v << shift >> 39) & 0xff];

    s += hist_octave[s + 1] < end;
    s += hist_octave[s + 1] < end;
    uint32_t bin = HIST_EXACT + (k - HIST_FIRST_OCTAVE) * HIST_SUB + s;
    return v < HIST_EXACT ? (uint32_t)v : bin;
}

uint64_t hist_edge(uint32_t bin); /* lowest value of the bin; hist_edge(HIST_BINS) = 2^48 */
void hist_add(struct hist *h, uint64_t value, uint64_t count);
/* Adds the values 0 .. n - 1, each once. */
void hist_add_up_to(struct hist *h, uint64_t n);
void hist_merge(struct hist *into, const struct hist *from);
/* Number of values >= value; exact if value is an edge, otherwise linear within the bin. */
double hist_at_least(const struct hist *h, double value);
/* The part of it for a value below 2^48: `above` values are in higher bins, `count` in its own bin, of which
 * a part counts. */
double hist_bin_at_least(uint32_t bin, uint64_t count, uint64_t above, double value);

#endif
