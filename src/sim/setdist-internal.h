/* SPDX-License-Identifier: Apache-2.0 */
/* setdist-internal.h - structures of setdist.c, for tests. */
#ifndef CACHEGRAM_SIM_SETDIST_INTERNAL_H
#define CACHEGRAM_SIM_SETDIST_INTERNAL_H

#include "sim/setdist.h"

struct setdist_list {
    uint32_t number[SETDIST_WAYS]; /* of lines, the most recent first; 0 or less than setdist.first: none */
} __attribute__((aligned(128)));

struct setdist_entry {
    uint64_t line;
    uint32_t number; /* less than setdist.first: empty */
};

typedef int setdist_touch_fn(struct setdist *s, const uint64_t *lines, size_t n);

struct setdist {
    struct setdist_list *level[SETDIST_LEVELS]; /* [l]: 2^(l + 1) sets */
    struct setdist_entry *entries;              /* at most half full */
    uint64_t capacity;                          /* a power of two */
    unsigned shift;                             /* 64 - log2(capacity) */
    uint32_t first, next;                       /* numbers: the first since the reset, the next to assign */
    uint64_t count[SETDIST_LEVELS][SETDIST_WAYS + 1]; /* [SETDIST_WAYS]: not in the list */
    uint64_t recent[SETDIST_LEVELS]; /* touches whose line was the most recent from this level on */
    setdist_touch_fn *touch;         /* the fastest that the CPU supports */
};

setdist_touch_fn setdist_touch_any, setdist_touch_avx512;
/* Whether this machine runs setdist_touch_avx512. */
int setdist_has_avx512(void);

#endif
