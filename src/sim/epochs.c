/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epochs.c - random lines of reuse epochs.
 *
 * Problem. A line is touched again after `distance` other lines. One of these is wanted, each with the same
 * probability, together with the instruction that touched it last. A list of all lines in the order of their
 * last touches would give it, but takes time and memory for every touch.
 *
 * Method. Only lines whose hash is below a threshold are kept (spatial sampling, as in SHARDS, Waldspurger et
 * al. 2015): one in M. Of the `distance` lines touched last, about distance / M are in the sample, and they
 * are the newest ones there. The sample is a log of touches with a bit for each entry, set while it is its
 * line's last touch. The k-th newest line is found from the end by the numbers of bits in words. A full log
 * is compacted to its KEPT newest lines. There are several levels with M = 8, 32, 128, ...: the first one
 * that reaches as far as the distance is used, so that short distances have many candidates and long ones
 * need little memory. A line of a level is also in all levels before.
 *
 * Example, M = 1: touches a b c a. The log is a b c a with bits 0 1 1 1; the two lines touched last are a
 * (entry 3) and c (entry 2).
 */
#include "sim/epochs.h"

#include <errno.h>
#include <string.h>
#include "base/pages.h"

#define LEVELS 8u
#define FIRST_BITS 3u /* log2 of M of the first level */
#define LEVEL_BITS 2u /* log2 of the factor to the next level's */
#define LOG 8192u
#define KEPT                                                                                       \
    2048u /* at least a quarter of these are candidates, so a share has an error of up to 2 points \
           */
#define WORDS (LOG / 64)
#define SLOTS                                                                                    \
    16384u /* twice the entries: lines that are no longer valid keep their slot until compaction \
            */
#define TRIES 4

struct entry {
    uint64_t line;
    struct epochs_touch touch;
    uint32_t slot; /* of its line */
};

struct level {
    struct entry log[LOG];
    uint64_t last[WORDS];  /* bits: the entry is its line's last touch */
    uint8_t bits[WORDS];   /* number of bits set in last[] */
    uint16_t slots[SLOTS]; /* entry of a line's last touch, + 1; 0: empty */
    uint32_t n;            /* entries of the log */
    uint32_t lines;        /* bits that are set */
};

struct epochs {
    struct level levels[LEVELS];
};

struct epochs *epochs_new(struct error *err)
{
    struct epochs *e = pages_sparse_new(sizeof *e);
    if (!e)
        error_set(err, -ENOMEM, "out of memory for the lines of reuse epochs");
    return e;
}

void epochs_free(struct epochs *e)
{
    pages_sparse_free(e, sizeof *e);
}

static void clear(struct level *l)
{
    memset(l->last, 0, sizeof l->last);
    memset(l->bits, 0, sizeof l->bits);
    memset(l->slots, 0, sizeof l->slots);
    l->n = l->lines = 0;
}

void epochs_reset(struct epochs *e)
{
    for (unsigned i = 0; i < LEVELS && e->levels[i].n > 0; i++) {
        struct level *l = &e->levels[i];
        if (l->n > SLOTS / 32) {
            clear(l);
            continue;
        }
        for (uint32_t k = 0; k < l->n; k++)
            l->slots[l->log[k].slot] = 0;
        memset(l->last, 0, sizeof l->last);
        memset(l->bits, 0, sizeof l->bits);
        l->n = l->lines = 0;
    }
}

static inline uint64_t hash_of(uint64_t line)
{
    return line * UINT64_C(0x9e3779b97f4a7c15);
}

/* Whose bits are independent of those that select lines. */
static inline uint64_t second_hash(uint64_t hash)
{
    return (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
}

/* The slot of the line's last entry, or an empty one. */
static uint16_t *slot_of(struct level *l, uint64_t line, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & (SLOTS - 1);
    while (l->slots[at] != 0 && l->log[l->slots[at] - 1].line != line)
        at = (at + 1) & (SLOTS - 1);
    return &l->slots[at];
}

static void append(struct level *l, const struct entry *entry, uint64_t hash)
{
    uint16_t *slot = slot_of(l, entry->line, hash);
    if (*slot != 0) {
        l->last[(*slot - 1u) / 64] &= ~(UINT64_C(1) << (*slot - 1u) % 64);
        l->bits[(*slot - 1u) / 64]--;
    } else {
        l->lines++;
    }
    l->log[l->n] = *entry;
    l->log[l->n].slot = (uint32_t)(slot - l->slots);
    l->last[l->n / 64] |= UINT64_C(1) << l->n % 64;
    l->bits[l->n / 64]++;
    *slot = (uint16_t)++l->n;
}

/* Keeps the newest lines. */
static void compact(struct level *l)
{
    uint64_t last[WORDS];
    uint32_t skip = l->lines > KEPT ? l->lines - KEPT : 0;
    memcpy(last, l->last, sizeof last);
    clear(l);
    for (uint32_t i = 0; i < LOG; i++) {
        if ((last[i / 64] >> i % 64 & 1) == 0 || (skip > 0 && skip-- > 0))
            continue;
        struct entry entry = l->log[i]; /* a new entry never overwrites one that is still to be read */
        append(l, &entry, second_hash(hash_of(entry.line)));
    }
}

void epochs_add(struct epochs *e, uint64_t line, struct epochs_touch touch)
{
    uint64_t hash = hash_of(line);
    if (hash >> (64 - FIRST_BITS) != 0)
        return;
    const struct entry entry = {line, touch, 0};
    hash = second_hash(hash);
    for (unsigned i = 0, bits = 0; i < LEVELS && (i == 0 || hash >> (64 - bits) == 0);
         i++, bits += LEVEL_BITS) {
        struct level *l = &e->levels[i];
        if (l->n == LOG)
            compact(l);
        append(l, &entry, hash);
    }
}

/* The entry of the line before which `newer` others were touched. */
static const struct entry *newest(const struct level *l, uint32_t newer)
{
    uint32_t word = (l->n - 1) / 64, at = 0;
    for (; newer >= l->bits[word]; word--)
        newer -= l->bits[word];
    uint64_t bits = l->last[word];
    for (uint32_t half = 32; half > 0; half /= 2) { /* is it in the upper half of what is left? */
        uint32_t upper = (uint32_t)__builtin_popcountll(bits >> half);
        if (newer < upper) {
            at += half;
            bits >>= half;
        } else {
            newer -= upper;
            bits &= (UINT64_C(1) << half) - 1;
        }
    }
    return &l->log[word * 64 + at];
}

int epochs_draw(const struct epochs *e, uint64_t line, uint64_t distance, struct random_state *random,
                struct epochs_touch *touch)
{
    unsigned i = 0, bits = FIRST_BITS;
    for (; i + 1 < LEVELS && distance >> bits > KEPT; i++)
        bits += LEVEL_BITS;
    const struct level *l = &e->levels[i];
    uint64_t candidates = distance >> bits < l->lines ? distance >> bits : l->lines;
    for (int tries = 0; candidates > 0 && tries < TRIES; tries++) {
        const struct entry *entry = newest(l, (uint32_t)random_below(random, candidates));
        if (entry->line != line) {
            *touch = entry->touch;
            return 0;
        }
    }
    return -ENOENT;
}
