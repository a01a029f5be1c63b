/* SPDX-License-Identifier: Apache-2.0 */
/* stackdist-internal.h - shared by the files of stackdist. stackdist.c explains the method. */
#ifndef CACHEGRAM_SIM_STACKDIST_INTERNAL_H
#define CACHEGRAM_SIM_STACKDIST_INTERNAL_H

#include <stdbool.h>

#include "base/hist.h"
#include "sim/front.h"
#include "sim/stackdist.h"
#include "sim/tail.h"

/* Of the table with a front line's slot. Two slots per hint, so that two lines can share one. */
#define HINT_BITS 12u
#define HINTS (1u << HINT_BITS)

#define NO_LINE UINT64_MAX     /* line ids have 58 bits */
#define PLACE_FRONT UINT32_MAX /* place of a line in the front; else a number of the tail */

/* 20 bytes: with a table between a half and three quarters full, 27 to 40 bytes a line. */
struct entry {
    uint64_t line;
    uint64_t last;  /* time of the last touch, as known when the line entered or left the front */
    uint32_t place; /* see PLACE_FRONT */
} __attribute__((packed, aligned(4)));

/* A line of the front. */
struct slot {
    uint64_t line; /* NO_LINE: not in use */
    uint64_t last; /* time of the last touch */
    uint64_t at;   /* index in entries */
    int16_t stamp; /* the same as in front_stamps: to be read by itself */
} __attribute__((aligned(32)));

/* Sums of results; any of the histograms may be NULL. See stackdist_touch_many and stackdist_touch_cold. */
struct stackdist_sums {
    struct hist *stack, *reuse, *first;
    uint64_t *cold_lines; /* or NULL */
    size_t *ncold;
    struct stackdist_far *far; /* or NULL */
};

typedef int stackdist_touch_fn(struct stackdist *sd, const uint64_t *lines, size_t n,
                               const struct stackdist_sums *sums, struct stackdist_result *result);

struct stackdist {
    struct front_stamps stamps;
    struct slot slot[FRONT_LINES];
    uint8_t hint[HINTS][2]; /* hash of the line -> slot, if its line is the right one */
    uint32_t front_count;
    int16_t tick; /* the latest stamp */
    bool plain;   /* the front is empty and stays so: see stackdist.c */

    uint64_t now;   /* time of the latest touch; the first ever is 1 */
    uint64_t start; /* time of the latest reset; an entry with last <= start is empty */
    uint64_t lines;

    struct entry *entries;
    uint64_t capacity;

    struct tail tail;

    stackdist_touch_fn *touch; /* the best that the CPU can do */
};

/*
 * The hot loop, compiled for any machine and for AVX-512 (stackdist-touch.c): touches lines[0 .. n) and
 * sums the results. With result, n must be 1 and *result gets that touch's. Calls may be mixed.
 */
stackdist_touch_fn stackdist_touch_any, stackdist_touch_avx512;
/* Whether this machine runs stackdist_touch_avx512. */
int stackdist_has_avx512(void);

/* --- stackdist-rare.c --- */

/*
 * Numbers wanted before the next renumbering. That costs a pass over the table, so a large table
 * (which may be nearly empty after a reset) wants many.
 */
uint64_t stackdist_wanted_numbers(uint64_t tail_lines, uint64_t capacity);
/* The slots in use in the order of their lines' last touches; their number. */
unsigned stackdist_slots_oldest_first(const struct stackdist *sd, unsigned *out);
void stackdist_clear_front(struct stackdist *sd);
int stackdist_renumber(struct stackdist *sd);   /* makes room for tail numbers: 0 or -ENOMEM */
int stackdist_grow_table(struct stackdist *sd); /* 0 or -ENOMEM */
void stackdist_restamp(struct stackdist *sd);   /* makes room for stamps */
/* All lines of the front leave it; plain is set. Or, without memory, nothing happens. */
void stackdist_leave_front(struct stackdist *sd);
unsigned stackdist_slot_of(const struct stackdist *sd, uint64_t line); /* a line that is in the front */

static inline uint64_t hash_line(uint64_t line)
{
    return line * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t hint_of(uint64_t hash)
{
    return hash >> (64 - HINT_BITS);
}

/* The table's own hash is stronger: regular strides must not pile up in a table that is 3/4 full. */
static inline uint64_t home_of(uint64_t hash, uint64_t capacity)
{
    hash = (hash ^ (hash >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return (uint64_t)(((unsigned __int128)hash * capacity) >> 64);
}

/* The entry of the line, or the empty one where it belongs. */
static inline uint64_t find_entry(const struct stackdist *sd, uint64_t line, uint64_t hash)
{
    uint64_t at = home_of(hash, sd->capacity);

    while (sd->entries[at].last > sd->start && sd->entries[at].line != line)
        if (++at == sd->capacity)
            at = 0;
    return at;
}

#endif
