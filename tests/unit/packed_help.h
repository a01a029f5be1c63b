/* SPDX-License-Identifier: Apache-2.0 */
/* packed_help.h - bursts with packed histograms, value by value. */
#ifndef PACKED_HELP_H
#define PACKED_HELP_H

#include <stdlib.h>

#include "base/packed-hist.h"
#include "model/curve.h"

/* Adds `count` times the value. Slow: it unpacks and packs the whole. */
static inline void packed_add(struct packed_hist *p, uint64_t value, uint64_t count)
{
    struct hist h;
    packed_hist_unpack(p, &h);
    hist_add(&h, value, count);
    if (packed_hist_set(p, &h) < 0)
        abort();
}

static inline void packed_same(struct packed_hist *to, const struct packed_hist *from)
{
    if (packed_hist_copy(to, from->bytes, from->size) < 0)
        abort();
}

static inline uint64_t packed_count(const struct packed_hist *p, uint32_t bin)
{
    struct packed_bins b = packed_hist_bins(p);
    while (packed_bins_next(&b))
        if (b.bin == bin)
            return b.count;
    return 0;
}

/* Frees n bursts with their histograms. */
static inline void free_bursts(struct curve_burst *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        curve_burst_clear(&b[i]);
    free(b);
}

#endif
