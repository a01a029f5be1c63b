/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site-counts.h - what table burst_site counts of a site (docs/format.md). The codes are part of the file
 * format.
 */
#ifndef CACHEGRAM_SITE_COUNTS_H
#define CACHEGRAM_SITE_COUNTS_H

#include <stddef.h>
#include <stdint.h>
#include "base/octaves.h"

enum {
    SITE_COUNT_MORE = 0,  /* touches besides those of executions */
    SITE_COUNT_STACK = 1, /* + bin: reuses in the burst at that stack distance */
    SITE_COUNT_FIRST = SITE_COUNT_STACK + OCTAVES_BINS, /* + bin: first touches of a line, so many lines
                                                         * having been touched before */
    SITE_COUNT_END = SITE_COUNT_FIRST + OCTAVES_BINS,
    SITE_COUNT_EXECUTIONS = 255 /* while recording only */
};

/*
 * Reads one row's counts. Called for each block: executions of it; then for each entry: reference, what,
 * count. A negative return value ends the reading. 0, -EINVAL for damaged bytes, or what was returned.
 */
struct site_counts_reader {
    int (*block)(void *ctx, uint32_t block, uint64_t executions);
    int (*entry)(void *ctx, uint32_t block, uint32_t reference, uint32_t what, uint64_t count);
    void *ctx;
};
int site_counts_read(const uint8_t *bytes, size_t size, const struct site_counts_reader *reader);

#endif
