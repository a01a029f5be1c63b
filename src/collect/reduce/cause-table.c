/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cause-table.c - a table of limited size.
 *
 * When it is full, the threshold is doubled: an entry with fewer reuses than the threshold is kept with
 * probability reuses / threshold, and then has so many as the threshold. Sums stay unbiased, and entries
 * with many reuses exact (threshold sampling: Duffield, Lund & Thorup 2005).
 */
#include "collect/reduce/cause-table.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct cause_table {
    struct symbols_cause *list; /* [0 .. n) */
    uint32_t *slots;            /* number of an entry, + 1; 0: empty; twice the capacity */
    size_t n, capacity;
    uint64_t every, threshold;
    struct random_state random;
};

struct cause_table *cause_table_new(size_t capacity, uint64_t every, struct error *err)
{
    struct cause_table *c = calloc(1, sizeof(*c));
    if (c != NULL) {
        *c = (struct cause_table){.capacity = capacity, .every = every, .threshold = every};
        c->list = malloc(capacity * sizeof(*c->list));
        c->slots = calloc(2 * capacity, sizeof(*c->slots));
        random_seed(&c->random, 1);
    }
    if (c != NULL && c->list != NULL && c->slots != NULL)
        return c;
    cause_table_free(c);
    error_set(err, -ENOMEM, "out of memory for the causes of misses");
    return NULL;
}

void cause_table_free(struct cause_table *c)
{
    if (c == NULL)
        return;
    free(c->list);
    free(c->slots);
    free(c);
}

const struct symbols_cause *cause_table_all(const struct cause_table *c, size_t *n)
{
    *n = c->n;
    return c->list;
}

static int is_same(const struct symbols_cause *a, const struct symbols_cause *b)
{
    return a->process == b->process && a->victim_site == b->victim_site &&
           a->victim_object == b->victim_object && a->site == b->site && a->object == b->object &&
           a->bin == b->bin;
}

static uint32_t *slot_of(const struct cause_table *c, const struct symbols_cause *cause)
{
    const uint32_t parts[] = {(uint32_t)cause->process,
                              cause->victim_site,
                              cause->victim_object,
                              cause->site,
                              cause->object,
                              cause->bin};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        hash = (hash ^ parts[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    size_t at = (size_t)(hash >> 8) & (2 * c->capacity - 1);
    while (c->slots[at] != 0 && !is_same(&c->list[c->slots[at] - 1], cause))
        at = (at + 1) & (2 * c->capacity - 1);
    return &c->slots[at];
}

static void thin(struct cause_table *c)
{
    size_t used = 0;
    c->threshold *= 2;
    for (size_t i = 0; i < c->n; i++) {
        struct symbols_cause *e = &c->list[i];
        if (e->reuses < c->threshold) {
            if (random_below(&c->random, c->threshold) >= e->reuses)
                continue;
            e->reuses = c->threshold;
        }
        c->list[used++] = *e;
    }
    c->n = used;
    memset(c->slots, 0, 2 * c->capacity * sizeof(*c->slots));
    for (size_t i = 0; i < used; i++)
        *slot_of(c, &c->list[i]) = (uint32_t)i + 1;
}

void cause_table_add(struct cause_table *c, const struct symbols_cause *cause)
{
    uint64_t reuses = c->every;
    uint32_t *slot = slot_of(c, cause);
    if (*slot != 0) {
        c->list[*slot - 1].reuses += reuses;
        return;
    }
    if (reuses < c->threshold) {
        if (random_below(&c->random, c->threshold) >= reuses)
            return;
        reuses = c->threshold;
    }
    while (c->n == c->capacity) {
        thin(c);
        slot = slot_of(c, cause);
    }
    c->list[c->n] = *cause;
    c->list[c->n].reuses = reuses;
    *slot = (uint32_t)++c->n;
}
