/* SPDX-License-Identifier: Apache-2.0 */
/* stackset-internal.h - shared by the files of stackset. stackset.c explains the method. */
#ifndef CACHEGRAM_SIM_STACKSET_INTERNAL_H
#define CACHEGRAM_SIM_STACKSET_INTERNAL_H

#include <pthread.h>

#include "sim/linesample.h"
#include "sim/stackdist.h"
#include "sim/stackset.h"

/* Batches of a stretch: 131,072 references. Longer ones have fewer first touches, but use more memory. */
#define STRETCH 16u
/* Line ids are passed on in parts that stay in a first-level cache. */
#define LINES_BATCH 2048u

/* A stack. */
struct unit {
    unsigned shift;
    uint32_t thread;
    unsigned worker; /* which computes it, if a single one does */
    uint64_t touches, sampled, cold;
    struct stackdist *distances;
    struct hist hist;
    struct linesample *sample; /* replaces sampled, cold and hist; NULL without a sample */
    /* For stretches. */
    uint64_t next_stretch; /* the next stretch in order */
    int dense;             /* stretches have too many lines for a stack of their own to pay */
};

struct batch {
    uint32_t thread, space;
    size_t n;
    uint64_t address[STACKSET_BATCH];
    uint16_t size[STACKSET_BATCH];
};

struct worker {
    struct stackset *set;
    unsigned number;
    pthread_t thread;
    uint64_t done;               /* batches */
    uint64_t lines[LINES_BATCH]; /* of the unit in progress */
    /* A stretch of the unit in progress. */
    struct stackdist *separate_stack; /* NULL: not used yet */
    struct hist hist;
    uint64_t touches;
    uint64_t *first, *last; /* its distinct lines in order of first and of last touch */
    size_t distinct, capacity;
};

/* How the lines of a batch are processed. */
enum compute { COMPUTE_ALL, COMPUTE_SAMPLE, COMPUTE_STRETCH };

/*
 * Touches the lines of a batch: all of them, or those below the threshold, in the unit's stack; or, as the
 * next part of a stretch, in the worker's stack. 0 or -ENOMEM.
 */
int stackset_compute(struct worker *w, struct unit *u, const struct batch *b, enum compute how,
                     uint64_t threshold);
/* Before the first batch of a stretch. 0 or -ENOMEM. */
int stackset_begin_stretch(struct worker *w);
/* After the last batch of a stretch, before it is joined. */
void stackset_end_stretch(struct worker *w);
/* In the order of stretches: adds the stretch to its unit. 0 or -ENOMEM. */
int stackset_join(struct worker *w, struct unit *u);
void stackset_free_stretch(struct worker *w);

#endif
