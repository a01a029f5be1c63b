/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/hist-blob.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/leb128.h"

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

unsigned char *hist_blob_encode(const struct hist *h, size_t *size)
{
    static_assert(HIST_BINS % 8 == 0, "next_used goes by eights");
    size_t capacity = 0, n = 0;
    unsigned char *bytes = NULL;
    uint64_t left = h->total; /* thousands of bins after the last value are skipped */
    uint32_t next = 0;
    for (uint32_t bin = 0; left > 0 && (bin = next_used(h, bin)) < HIST_BINS; bin++) {
        if (n + 2 + LEB128_MOST > capacity) { /* a skip is below 2^14: two bytes */
            unsigned char *larger = realloc(bytes, capacity = 2 * capacity + 2048);
            if (!larger) {
                free(bytes);
                return NULL;
            }
            bytes = larger;
        }
        n += leb128_put(bytes + n, bin - next);
        n += leb128_put(bytes + n, h->count[bin]);
        left -= h->count[bin];
        next = bin + 1;
    }
    *size = n;
    return bytes ? bytes : malloc(1);
}

int hist_blob_decode(const unsigned char *bytes, size_t size, struct hist *h)
{
    const unsigned char *at = bytes, *end = bytes + size;
    uint64_t next = 0;
    memset(h, 0, sizeof *h);
    while (at < end) {
        uint64_t skip, count;
        if (leb128_take(&at, end, &skip) || leb128_take(&at, end, &count))
            return -EINVAL;
        if (skip >= HIST_BINS - next || count == 0 || h->total + count < count)
            return -EINVAL;
        next += skip;
        h->count[next++] = count;
        h->total += count;
        if (next == HIST_BINS && at < end)
            return -EINVAL;
    }
    return 0;
}
