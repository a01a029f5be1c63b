/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stackset.h - LRU stack distances of one stream of references for several line sizes at once, threads
 * together or separate, all lines or a sample of them, on several cores.
 */
#ifndef CACHEGRAM_STACKSET_H
#define CACHEGRAM_STACKSET_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/hist.h"
#include "sim/linesample.h"

/* Most references of one call of stackset_add. */
#define STACKSET_BATCH 8192u
/* The lines of a sample are divided into so many equal groups; their differences give the error. */
#define STACKSET_GROUPS LINESAMPLE_GROUPS

struct stackset_options {
    const unsigned *line_bytes; /* powers of two, 8 .. 4096; copied */
    size_t nlines;              /* 1 .. */
    int separate;               /* a stack for each thread; otherwise one for all */
    double rate;                /* share of the lines that is sampled, 0 < rate <= 1; 1 is exact */
    unsigned workers;           /* computing threads, 1 .. ; with a sample not more than there are stacks */
};

struct stackset;

/* NULL with err filled: an invalid option (-EINVAL), or out of memory. */
struct stackset *stackset_new(const struct stackset_options *options, struct error *err);
void stackset_free(struct stackset *s); /* NULL is allowed; ends without finishing */
/*
 * Adds n references (1 .. STACKSET_BATCH) of one thread (preferably with a small number): bytes [address,
 * address + size), size >= 1, touch each of their lines. Lines of different spaces (processes, numbered from
 * 0) are different lines at the same address. The arrays are copied. 0, or -ENOMEM with err filled (possibly
 * of an earlier call).
 */
int stackset_add(struct stackset *s, uint32_t thread, uint32_t space, const uint64_t *address,
                 const uint16_t *size, size_t n, struct error *err);
/* Waits until everything is computed; more may be added afterwards. Result as stackset_add. */
int stackset_wait(struct stackset *s, struct error *err);

/* Result of one stack, after stackset_wait. Owned by the set, valid until more is added. */
struct stackset_result {
    unsigned line_bytes;
    uint32_t thread;          /* if separate */
    uint64_t touches;         /* of all lines */
    uint64_t sampled;         /* of lines in the sample; all of them with rate 1 */
    uint64_t cold;            /* first touches, in the sample */
    uint64_t lines;           /* distinct ones, in the sample */
    const struct hist *stack; /* distances in the sample: divide them by the rate */
    /* With a sample, otherwise NULL: the share of each group's lines in those (distances of 1 and more in the
     * whole sample). */
    const struct hist *group_stack[STACKSET_GROUPS];
    uint64_t group_cold[STACKSET_GROUPS];
};
size_t stackset_results(const struct stackset *s);
struct stackset_result stackset_result(const struct stackset *s, size_t i); /* by thread, then line size */
/* Total memory in use, in bytes; after stackset_wait. */
size_t stackset_memory_bytes(const struct stackset *s);

#endif
