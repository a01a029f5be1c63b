/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stackset.h - LRU stack distances of one stream of references for several line sizes at once, threads
 * together or apart, all lines or a sample of them, on several cores.
 */
#ifndef CACHEGRAM_STACKSET_H
#define CACHEGRAM_STACKSET_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/hist.h"
#include "sim/linesample.h"

/* References of one call of stackset_add at most. */
#define STACKSET_BATCH 8192u
/* With a sample, its lines are divided into that many equal groups; their differences give the error. */
#define STACKSET_GROUPS LINESAMPLE_GROUPS

struct stackset_options {
    const unsigned *line_bytes; /* powers of two, 8 .. 4096; copied */
    size_t nlines;              /* 1 .. */
    int separate;               /* a stack for each thread; else one for all */
    double rate;                /* share of the lines that is looked at, 0 < rate <= 1; 1 is exact */
    unsigned workers;           /* threads that compute, 1 .. ; with a sample no more than stacks are used */
};

struct stackset;

/* NULL with err filled: an invalid option (-EINVAL), or out of memory. */
struct stackset *stackset_new(const struct stackset_options *options, struct error *err);
void stackset_free(struct stackset *s); /* NULL is allowed; ends without finishing */
/*
 * n references (1 .. STACKSET_BATCH) of one thread (any number, dense ones are best): bytes [address, address
 * + size), size >= 1, touch each of their lines. Lines of different spaces (processes, numbered from 0) are
 * different lines at the same address. The arrays are copied. 0, or -ENOMEM with err filled (perhaps of an
 * earlier call).
 */
int stackset_add(struct stackset *s, uint32_t thread, uint32_t space, const uint64_t *address,
                 const uint16_t *size, size_t n, struct error *err);
/* Waits until all is computed; more may be added afterwards. As stackset_add. */
int stackset_wait(struct stackset *s, struct error *err);

/* One stack, after stackset_wait. Owned by the set, valid until more is added. */
struct stackset_result {
    unsigned line_bytes;
    uint32_t thread;          /* if separate */
    uint64_t touches;         /* of lines, all of them */
    uint64_t sampled;         /* of lines in the sample; all with rate 1 */
    uint64_t cold;            /* first touches, in the sample */
    uint64_t lines;           /* distinct ones, in the sample */
    const struct hist *stack; /* distances in the sample: divide them by the rate */
    /* Sampled only, else NULL: the share that each group's lines have in those (distances in the whole
     * sample, 1 and more). */
    const struct hist *group_stack[STACKSET_GROUPS];
    uint64_t group_cold[STACKSET_GROUPS];
};
size_t stackset_results(const struct stackset *s);
struct stackset_result stackset_result(const struct stackset *s, size_t i); /* by thread, then line size */
/* All memory in use, in bytes; after stackset_wait. */
size_t stackset_memory_bytes(const struct stackset *s);

#endif
