/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site-counts.h - the counts of a site in table burst_site (docs/format.md). The codes are part of the file
 * format.
 */
#ifndef CACHEGRAM_SITE_COUNTS_H
#define CACHEGRAM_SITE_COUNTS_H

#include <stddef.h>
#include <stdint.h>
#include "base/octaves.h"

/* The last one has 2^23 lines and more. */
#define SITE_COUNT_TAIL_BINS 40

enum {
    SITE_COUNT_MORE = 0,  /* touches in addition to those of executions */
    SITE_COUNT_STACK = 1, /* + bin: reuses in the burst at that stack distance */
    SITE_COUNT_FIRST =
        SITE_COUNT_STACK + OCTAVES_BINS, /* + bin: first touches of a line, after so many other lines */
    /* Touches of the object, estimated from a sample; they include those that are also counted otherwise. */
    SITE_COUNT_OBJECT = SITE_COUNT_FIRST + OCTAVES_BINS,
    /* In the tail that was recorded after the burst, a sample of its first touches of lines, each of which is
     * counted twice: + bin: after so many other lines of the tail; */
    SITE_COUNT_TAIL_ENTRY = SITE_COUNT_OBJECT + 1,
    /* and + bin: at that stack distance, as the burst touched the line; or, as it did not, after so many
     * other lines of the burst and its tail. Bins beyond the last one are counted in that. */
    SITE_COUNT_TAIL_REUSE = SITE_COUNT_TAIL_ENTRY + SITE_COUNT_TAIL_BINS,
    SITE_COUNT_TAIL_FIRST = SITE_COUNT_TAIL_REUSE + SITE_COUNT_TAIL_BINS,
    /* Of a process with several threads, where every reference was recorded. A touch whose distances in a
     * cache that the threads share and in one of its thread's own are in different bins is counted by both:
     * + bin: a reuse in the shared one; */
    SITE_COUNT_SHARED = SITE_COUNT_TAIL_FIRST + SITE_COUNT_TAIL_BINS,
    /* + bin: a reuse in the thread's own; and the thread's first touch, which is not the process' first. */
    SITE_COUNT_OWN = SITE_COUNT_SHARED + OCTAVES_BINS,
    SITE_COUNT_OWN_FIRST = SITE_COUNT_OWN + OCTAVES_BINS,
    SITE_COUNT_END,
    SITE_COUNT_EXECUTIONS = 511 /* on reading only */
};

/* The same code for caches that the threads of a process share; SITE_COUNT_OWN ones, which are of others, as
 * they are. */
static inline uint32_t site_count_together(uint32_t what)
{
    return what >= SITE_COUNT_SHARED && what < SITE_COUNT_OWN ? what - SITE_COUNT_SHARED + SITE_COUNT_STACK
                                                              : what;
}

/*
 * Reads the counts of one row. Called for each block with its executions, then for each entry with reference,
 * what, object (table `object`; 0: not known), count. A negative result ends the reading. 0, -EINVAL for
 * damaged bytes, or that result.
 */
struct site_counts_reader {
    int (*block)(void *ctx, uint32_t block, uint64_t executions);
    int (*entry)(void *ctx, uint32_t block, uint32_t reference, uint32_t what, uint32_t object,
                 uint64_t count);
    void *ctx;
};
int site_counts_read(const uint8_t *bytes, size_t size, const struct site_counts_reader *reader);
/* The same counts, of each block and each entry once. *merged: malloc'ed. 0, -EINVAL for damaged bytes, or
 * -ENOMEM. */
int site_counts_merge(const uint8_t *bytes, size_t size, uint8_t **merged, size_t *merged_size);

#endif
