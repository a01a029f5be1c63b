/* SPDX-License-Identifier: Apache-2.0 */
/* stackdist-internal.h - shared by the files of stackdist. stackdist.c explains the method. */
#ifndef CACHEGRAM_SIM_STACKDIST_INTERNAL_H
#define CACHEGRAM_SIM_STACKDIST_INTERNAL_H

#include <assert.h>
#include <stdbool.h>

#include "base/hist.h"
#include "sim/stackdist.h"
#include "sim/tail.h"

/* Words of 64 numbers whose bits are counted without the tree. More would take more vectors per touch. */
#define RECENT_WORDS 16u
/* 16 KB: half of a first-level cache. */
#define HINT_BITS 12u
#define HINTS (1u << HINT_BITS)

/* 20 bytes: with a table between half and three quarters full, 27 to 40 bytes per line. */
struct entry {
    uint64_t line;
    uint64_t last;   /* time of the last touch */
    uint32_t number; /* of the last touch */
} __attribute__((packed, aligned(4)));

/* Sums of results; any of the histograms may be NULL. See stackdist_touch_many and stackdist_touch_cold. */
struct stackdist_sums {
    struct hist *stack, *reuse, *first;
    uint64_t *cold_lines; /* or NULL */
    size_t *ncold;
    struct stackdist_far *far; /* or NULL */
};

typedef int stackdist_touch_fn(struct stackdist *sd, const uint64_t *lines, size_t n,
                               const struct stackdist_sums *sums);

typedef int16_t recent_counts __attribute__((vector_size(RECENT_WORDS * sizeof(int16_t))));

struct stackdist {
    /* By recent word: set bits in later words, including those reserved for future numbers. */
    union {
        recent_counts all;
        int16_t of[RECENT_WORDS];
    } __attribute__((aligned(RECENT_WORDS * sizeof(int16_t)))) later;
    uint32_t next;  /* number of the next touch */
    uint32_t open;  /* number of words in the tree: the recent ones are those from this one on */
    uint32_t far;   /* touches of the chunk that went beyond the recent words */
    bool scattered; /* most of the last chunk's did, so the lines of the next one are prefetched */
    uint64_t now;   /* time of the latest touch; the first ever is 1 */
    uint64_t start; /* time of the latest reset; an entry with last <= start is empty */
    uint64_t lines;
    struct entry *entries;
    uint64_t capacity;
    struct tail tail;
    stackdist_touch_fn *touch; /* the fastest that the CPU supports */
    uint32_t hint[HINTS];      /* hash of the line -> index in entries, if that is the line's */
};

/*
 * The hot loop, compiled for any machine and for AVX2 (stackdist-touch.c): touches lines[0 .. n) and sums the
 * results. Calls of both may be mixed.
 */
stackdist_touch_fn stackdist_touch_any, stackdist_touch_avx2;
/* Whether this machine runs stackdist_touch_avx2. */
int stackdist_has_avx2(void);

/* --- stackdist-rare.c --- */

/*
 * Numbers to provide before the next renumbering. Renumbering takes a pass over the table, so a large table
 * (which may be nearly empty after a reset) needs many.
 */
uint64_t stackdist_wanted_numbers(uint64_t lines, uint64_t capacity);
int stackdist_open_word(struct stackdist *sd);  /* provides 64 more numbers: 0 or -ENOMEM */
int stackdist_grow_table(struct stackdist *sd); /* 0 or -ENOMEM */
/* Number of lines whose last touch is before that number. */
uint64_t stackdist_older(const struct stackdist *sd, uint32_t number);

static_assert(RECENT_WORDS * 64 <= HIST_EXACT, "recent distances have a bin each");

static inline uint64_t hash_line(uint64_t line)
{
    return line * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t hint_of(uint64_t hash)
{
    return hash >> (64 - HINT_BITS);
}

/* The table's own hash is stronger: regular strides must not cluster in a table that is 3/4 full. */
static inline uint64_t home_of(uint64_t hash, uint64_t capacity)
{
    hash = (hash ^ (hash >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return (uint64_t)(((unsigned __int128)hash * capacity) >> 64);
}

/* The entry of the line, or the empty one for it. */
static inline uint64_t find_entry(const struct stackdist *sd, uint64_t line, uint64_t hash)
{
    uint64_t at = home_of(hash, sd->capacity);

    while (sd->entries[at].last > sd->start && sd->entries[at].line != line)
        if (++at == sd->capacity)
            at = 0;
    return at;
}

/* Lines touched after one with a recent number; word: number / 64 - sd->open. */
static inline uint64_t recent_newer(const struct stackdist *sd, int later, uint32_t number)
{
    uint64_t bits = sd->tail.bits[number / 64] >> (number % 64) >> 1;

    return (uint64_t)(__builtin_popcountll(bits) + later);
}

#endif
