/* SPDX-License-Identifier: Apache-2.0 */
/* stackset-internal.h - shared by the files of stackset. stackset.c explains the method. */
#ifndef CACHEGRAM_SIM_STACKSET_INTERNAL_H
#define CACHEGRAM_SIM_STACKSET_INTERNAL_H

#include <pthread.h>

#include "sim/linesample.h"
#include "sim/stackdist.h"
#include "sim/stackset.h"

/* Batches of a stretch: 131,072 references. Longer ones have fewer first touches, but take more memory. */
#define STRETCH 16u
/* Line ids are handed on in parts that stay in a first-level cache. */
#define LINES_BATCH 2048u

/* A stack. */
struct unit {
    unsigned shift;
    uint32_t thread;
    unsigned worker; /* who computes it, if one does */
    uint64_t touches, sampled, cold;
    struct stackdist *distances;
    struct hist hist;
    struct linesample *sample; /* instead of sampled, cold and hist; NULL without a sample */
    /* Of stretches. */
    uint64_t turn; /* the stretch that comes next */
    int dense;     /* stretches have too many lines to be worth a stack of their own */
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
    struct stackdist *apart; /* NULL: not used yet */
    struct hist hist;
    uint64_t touches;
    uint64_t *first, *last; /* its distinct lines in order of first and of last touch */
    size_t distinct, room;
};

/* How a batch's lines are dealt with. */
enum compute { COMPUTE_ALL, COMPUTE_SAMPLE, COMPUTE_APART };

/*
 * Touches the lines of a batch: of all of them or of those below the threshold in the unit's stack, or, as
 * the next part of a stretch, in the worker's. 0 or -ENOMEM.
 */
int stackset_compute(struct worker *w, struct unit *u, const struct batch *b, enum compute how,
                     uint64_t threshold);
/* Before the first batch of a stretch. 0 or -ENOMEM. */
int stackset_begin_apart(struct worker *w);
/* After the last batch of a stretch, before its turn. */
void stackset_end_apart(struct worker *w);
/* At its turn: adds the stretch to its unit. 0 or -ENOMEM. */
int stackset_join(struct worker *w, struct unit *u);
void stackset_free_apart(struct worker *w);

#endif
