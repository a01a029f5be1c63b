/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed-hist.h - a histogram in few bytes: for the profile (docs/format.md), and where there are thousands.
 * Most of the 84 KB of a struct hist are zero; the histograms of a burst take 2 KB each.
 *
 * For every bin that is not empty, in rising order: the number of empty bins skipped since the last
 * one, then the count, both as LEB128 (7 bits a byte, low bits first, high bit set on all but the
 * last byte). Example: 3 values in bin 0 and 300 in bin 5 are 00 03 04 ac 02.
 */
#ifndef CACHEGRAM_PACKED_HIST_H
#define CACHEGRAM_PACKED_HIST_H

#include <stddef.h>
#include <stdint.h>
#include "base/hist.h"
#include "base/leb128.h"

/* All zero: without values. */
struct packed_hist {
    uint8_t *bytes; /* malloc'ed; always valid */
    size_t size;
    uint64_t total; /* number of values */
};

/* Sets *p to h, or to a copy of stored bytes, instead of what it was. 0; -ENOMEM; -EINVAL if the bytes are
 * not a histogram. packed_hist_clear frees it. */
int packed_hist_set(struct packed_hist *p, const struct hist *h);
int packed_hist_copy(struct packed_hist *p, const uint8_t *bytes, size_t size);
void packed_hist_clear(struct packed_hist *p);
void packed_hist_unpack(const struct packed_hist *p, struct hist *h);
/* Adds values of zero. 0 or -ENOMEM. */
int packed_hist_add_zeros(struct packed_hist *p, uint64_t count);

double packed_hist_at_least(const struct packed_hist *p, double value); /* as hist_at_least */
/* The same for n values, none lower than the one before it, in one pass: at_least[n]. */
void packed_hist_at_least_each(const struct packed_hist *p, const double *values, size_t n, double *at_least);

/* A pass over the bins that are not empty, in rising order. */
struct packed_bins {
    const uint8_t *at, *end;
    uint32_t next;
    uint32_t bin; /* the present one */
    uint64_t count;
};

static inline struct packed_bins packed_hist_bins(const struct packed_hist *p)
{
    return (struct packed_bins){.at = p->bytes, .end = p->bytes + p->size};
}

/* 0: there are no more. */
static inline int packed_bins_next(struct packed_bins *b)
{
    uint64_t skip;
    if (b->at == b->end || leb128_take(&b->at, b->end, &skip) || leb128_take(&b->at, b->end, &b->count))
        return 0;
    b->bin = b->next + (uint32_t)skip;
    b->next = b->bin + 1;
    return 1;
}

#endif
