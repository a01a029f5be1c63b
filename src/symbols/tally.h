/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h - sums by site, object and what is counted. */
#ifndef CACHEGRAM_SYMBOLS_TALLY_H
#define CACHEGRAM_SYMBOLS_TALLY_H

#include <stddef.h>
#include <stdint.h>

struct tally_entry {
    uint64_t count; /* 0: empty */
    uint32_t row, object;
    uint32_t what; /* profile/site-counts.h */
};

/* All zero: nothing yet. */
struct tally {
    struct tally_entry *entries;
    size_t n, capacity;
};

/* 0, or -ENOMEM. */
int tally_add(struct tally *t, uint32_t row, uint32_t object, uint32_t what, uint64_t count);
/* By row, object and what: entries[0 .. n). Nothing can be added any more. */
void tally_sort(struct tally *t);
/* After tally_sort: leaves about `most` entries, if there are more. Small counts are rounded at random, up to
 * a common count or down to nothing, so that sums stay the same in the mean. */
void tally_thin(struct tally *t, size_t most);
void tally_clear(struct tally *t);

#endif
