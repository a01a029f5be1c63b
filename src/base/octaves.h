/* SPDX-License-Identifier: Apache-2.0 */
/*
 * octaves.h - coarse bins for distances: values below 16 are one bin, above that a bin is half an octave
 * wide. Edges are powers of two and half powers of two, rounded down, equal to edges of hist.h.
 */
#ifndef CACHEGRAM_OCTAVES_H
#define CACHEGRAM_OCTAVES_H

#include <math.h>
#include <stdint.h>

#define OCTAVES_FIRST 4u /* log2 of the first edge */
#define OCTAVES_LEAST (UINT64_C(1) << OCTAVES_FIRST)
#define OCTAVES_BINS 65u /* the last one contains 2^35.5 and more */

static inline uint32_t octaves_bin(uint64_t value)
{
    if (value < OCTAVES_LEAST)
        return 0;
    const uint64_t largest = (UINT64_C(1) << 36) - 1;
    uint64_t v = value < largest ? value : largest;
    unsigned k = 63u - (unsigned)__builtin_clzll(v);
    /* v >= floor(2^(k + 1/2)) if and only if v + 1 is above 2^(k + 1/2) */
    uint32_t half = (unsigned __int128)(v + 1) * (v + 1) > (unsigned __int128)1 << (2 * k + 1);
    return 1 + 2 * (k - OCTAVES_FIRST) + half;
}

/* Lowest value of the bin; bin is below OCTAVES_BINS. */
static inline uint64_t octaves_edge(uint32_t bin)
{
    if (bin == 0)
        return 0;
    unsigned k = OCTAVES_FIRST + (bin - 1) / 2;
    uint64_t edge = UINT64_C(1) << k;
    /* The half power: 36 binary digits of the square root of two are enough. */
    return (bin - 1) % 2 == 0 ? edge : (uint64_t)(((unsigned __int128)edge * UINT64_C(97184015999)) >> 36);
}

/* The same for any value of 0 or more, and with the end of the last bin. */
static inline uint32_t octaves_bin_of(double value)
{
    return octaves_bin(value < 0x1p36 ? (uint64_t)value : UINT64_MAX);
}
static inline double octaves_start(uint32_t bin)
{
    return bin < OCTAVES_BINS ? (double)octaves_edge(bin) : INFINITY;
}

#endif
