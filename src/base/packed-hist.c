/* SPDX-License-Identifier: Apache-2.0 */
#include "base/packed-hist.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/*
 * The first bin from `bin` on that is not empty; HIST_BINS if there is none. Most are empty: eight at a time.
 */
static uint32_t next_used(const struct hist *h, uint32_t bin)
{
    for (; bin < HIST_BINS; bin++) {
        const uint64_t *c = h->count + bin;
        if (bin % 8 == 0 && !(c[0] | c[1] | c[2] | c[3] | c[4] | c[5] | c[6] | c[7]))
            bin += 7;
        else if (*c)
            break;
    }
    return bin;
}

int packed_hist_set(struct packed_hist *p, const struct hist *h)
{
    static_assert(HIST_BINS % 8 == 0, "next_used goes by eights");
    struct packed_hist made = {.total = h->total};
    size_t capacity = 0;
    uint64_t left = h->total; /* thousands of bins after the last value are skipped */
    uint32_t next = 0;
    for (uint32_t bin = 0; left > 0 && (bin = next_used(h, bin)) < HIST_BINS; bin++) {
        /* A skip is below 2^14: two bytes. */
        if (ARRAY_GROW_BY(made.bytes, made.size, 2 + LEB128_MOST, capacity) < 0) {
            free(made.bytes);
            return -ENOMEM;
        }
        made.size += leb128_put(made.bytes + made.size, bin - next);
        made.size += leb128_put(made.bytes + made.size, h->count[bin]);
        left -= h->count[bin];
        next = bin + 1;
    }
    if (!made.bytes && !(made.bytes = malloc(1))) /* as SQLite takes NULL for no value */
        return -ENOMEM;
    packed_hist_clear(p);
    *p = made;
    return 0;
}

/* Adds up the values; -EINVAL if the bytes are not a histogram. */
static int check(const uint8_t *bytes, size_t size, uint64_t *total)
{
    const uint8_t *at = bytes, *end = bytes + size;
    uint64_t next = 0, skip, count;
    *total = 0;
    while (at < end) {
        if (leb128_take(&at, end, &skip) || leb128_take(&at, end, &count))
            return -EINVAL;
        if (next >= HIST_BINS || skip >= HIST_BINS - next || count == 0 || *total + count < count)
            return -EINVAL;
        next += skip + 1;
        *total += count;
    }
    return 0;
}

int packed_hist_copy(struct packed_hist *p, const uint8_t *bytes, size_t size)
{
    struct packed_hist made = {.size = size};
    if (check(bytes, size, &made.total) != 0)
        return -EINVAL;
    if (size > 0) {
        if (!(made.bytes = malloc(size)))
            return -ENOMEM;
        memcpy(made.bytes, bytes, size);
    }
    packed_hist_clear(p);
    *p = made;
    return 0;
}

void packed_hist_clear(struct packed_hist *p)
{
    free(p->bytes);
    *p = (struct packed_hist){.bytes = NULL};
}

void packed_hist_unpack(const struct packed_hist *p, struct hist *h)
{
    struct packed_bins b = packed_hist_bins(p);
    memset(h, 0, sizeof *h);
    while (packed_bins_next(&b))
        h->count[b.bin] = b.count;
    h->total = p->total;
}

int packed_hist_add_zeros(struct packed_hist *p, uint64_t count)
{
    struct packed_bins first = packed_hist_bins(p);
    int has_zeros = packed_bins_next(&first) && first.bin == 0;
    /* What follows the bin of zeros; its own distance, from bin 1 on, is one less if there was none. */
    const uint8_t *rest = p->bytes;
    uint8_t head[3 * LEB128_MOST];
    size_t n = leb128_put(head, 0);
    if (count == 0)
        return 0;
    n += leb128_put(head + n, count + (has_zeros ? first.count : 0));
    if (has_zeros) {
        rest = first.at;
    } else if (p->size > 0) {
        uint64_t skip = 0;
        leb128_take(&rest, p->bytes + p->size, &skip);
        n += leb128_put(head + n, skip - 1);
    }
    size_t nrest = p->size - (size_t)(rest - p->bytes);
    uint8_t *bytes = malloc(n + nrest);
    if (!bytes)
        return -ENOMEM;
    memcpy(bytes, head, n);
    if (nrest > 0)
        memcpy(bytes + n, rest, nrest);
    free(p->bytes);
    *p = (struct packed_hist){bytes, n + nrest, p->total + count};
    return 0;
}

void packed_hist_at_least_each(const struct packed_hist *p, const double *values, size_t n, double *at_least)
{
    struct packed_bins b = packed_hist_bins(p);
    uint64_t below = 0; /* values in lower bins than b.bin */
    int left = packed_bins_next(&b);
    for (size_t i = 0; i < n; i++) {
        if (!(values[i] > 0) || values[i] >= (double)hist_edge(HIST_BINS)) {
            at_least[i] = values[i] > 0 ? 0 : (double)p->total;
            continue;
        }
        uint32_t bin = hist_bin((uint64_t)values[i]);
        for (; left && b.bin < bin; left = packed_bins_next(&b))
            below += b.count;
        uint64_t own = left && b.bin == bin ? b.count : 0;
        at_least[i] = hist_bin_at_least(bin, own, p->total - below - own, values[i]);
    }
}

double packed_hist_at_least(const struct packed_hist *p, double value)
{
    double at_least;
    packed_hist_at_least_each(p, &value, 1, &at_least);
    return at_least;
}
