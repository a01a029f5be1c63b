/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.c - caches whose sets have many ways, in particular fully associative ones: a hash table from lines to
 * slots (linear probing; removal moves entries back, so that there are no tombstones), and for each policy an
 * order that is cheap to maintain.
 *
 * Empty ways are filled from the first one up, as in narrow sets.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/wide.h"

static uint64_t home_of(const struct cache *c, uint64_t line)
{
    uint64_t hash = line * UINT64_C(0x9e3779b97f4a7c15);
    return (hash ^ (hash >> 32)) & c->wide.table_mask;
}

/* Index of the line's entry, or of the empty one for it. */
static uint64_t find_entry(const struct cache *c, uint64_t line)
{
    const struct wide *w = &c->wide;
    uint64_t at = home_of(c, line);
    while (w->table[at] && c->slots[w->table[at] - 1].key >> KEY_SHIFT != line)
        at = (at + 1) & w->table_mask;
    return at;
}

/* Removes the line of a slot from the table; the slot still holds it. */
static void forget(struct cache *c, uint64_t line)
{
    struct wide *w = &c->wide;
    uint64_t hole = find_entry(c, line), at = hole;
    for (;;) {
        at = (at + 1) & w->table_mask;
        if (!w->table[at])
            break;
        uint64_t home = home_of(c, c->slots[w->table[at] - 1].key >> KEY_SHIFT);
        /* Does the entry belong at or before the hole, cyclically? */
        if (((at - home) & w->table_mask) >= ((at - hole) & w->table_mask)) {
            w->table[hole] = w->table[at];
            hole = at;
        }
    }
    w->table[hole] = 0;
}

static int64_t wide_find(const struct cache *c, uint64_t line)
{
    return (int64_t)c->wide.table[find_entry(c, line)] - 1;
}

static void wide_hit(struct cache *c, uint64_t slot)
{
    c->wide_policy->hit(c, slot / c->ways, (uint32_t)(slot % c->ways));
}

static uint32_t empty_way(struct cache *c, uint64_t set)
{
    struct wide *w = &c->wide;
    uint32_t way = 0;
    if (w->holes[set] == 0)
        return w->used[set]++;
    w->holes[set]--;
    while (c->slots[set * c->ways + way].key != KEY_NONE)
        way++;
    return way;
}

static uint64_t wide_insert(struct cache *c, uint64_t key)
{
    struct wide *w = &c->wide;
    uint64_t line = key >> KEY_SHIFT, set = cache_set_of(c, line), victim = KEY_NONE;
    uint32_t way;
    if (w->holes[set] || w->used[set] < c->ways) {
        way = empty_way(c, set);
    } else {
        way = c->wide_policy->victim(c, set);
        victim = c->slots[set * c->ways + way].key;
        forget(c, victim >> KEY_SHIFT);
        c->wide_policy->drop(c, set, way);
    }
    uint64_t slot = set * c->ways + way;
    w->table[find_entry(c, line)] = (uint32_t)slot + 1;
    c->slots[slot].key = key;
    c->wide_policy->fill(c, set, way);
    return victim;
}

static void wide_remove(struct cache *c, uint64_t slot)
{
    uint64_t set = slot / c->ways;
    forget(c, c->slots[slot].key >> KEY_SHIFT);
    c->slots[slot].key = KEY_NONE;
    c->wide.holes[set]++;
    c->wide_policy->drop(c, set, (uint32_t)(slot % c->ways));
}

const struct cache_ops wide_ops = {wide_find, wide_hit, wide_insert, wide_remove, NULL};

int wide_init(struct cache *c)
{
    struct wide *w = &c->wide;
    const struct wide_policy *policy = c->wide_policy;
    uint64_t slots = c->nsets * c->ways, table = 16;
    while (table < 2 * slots)
        table *= 2;
    w->table_mask = table - 1;
    w->table = calloc(table, sizeof *w->table);
    w->used = calloc(c->nsets, sizeof *w->used);
    w->holes = calloc(c->nsets, sizeof *w->holes);
    w->count = calloc(c->nsets, sizeof *w->count);
    int ok = w->table && w->used && w->holes && w->count;
    if (policy->list) {
        w->prev = calloc(slots, sizeof *w->prev);
        w->next = calloc(slots, sizeof *w->next);
        w->head = malloc(c->nsets * sizeof *w->head);
        w->tail = malloc(c->nsets * sizeof *w->tail);
        ok = ok && w->prev && w->next && w->head && w->tail;
        for (uint64_t set = 0; ok && set < c->nsets; set++)
            w->head[set] = w->tail[set] = WIDE_END;
    }
    if (policy->tree) {
        w->tree = calloc(c->nsets * (c->ways / 64 + 1), sizeof *w->tree);
        ok = ok && w->tree;
    }
    if (policy->state) {
        w->state = calloc(slots, sizeof *w->state);
        ok = ok && w->state;
    }
    return ok ? 0 : -ENOMEM; /* the caller frees */
}

void wide_clear(struct cache *c)
{
    struct wide *w = &c->wide;
    free(w->table);
    free(w->used);
    free(w->holes);
    free(w->count);
    free(w->prev);
    free(w->next);
    free(w->head);
    free(w->tail);
    free(w->tree);
    free(w->state);
}
