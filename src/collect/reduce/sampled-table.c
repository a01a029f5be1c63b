/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampled-table.c - a table of limited size.
 *
 * When it is full, the threshold is doubled: an entry whose count is below the threshold is kept with
 * probability count / threshold, and then counts as much as the threshold. Sums stay unbiased, and large
 * counts exact (threshold sampling: Duffield, Lund & Thorup 2005).
 */
#include "collect/reduce/sampled-table.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/random.h"

/* Counts that are added together, so that the misses of their entries overlap. */
#define PENDING 16u

struct sampled_table {
    unsigned char *pending; /* PENDING entries; [0 .. npending) are not in the list yet */
    size_t npending, pending_slot[PENDING];
    unsigned char *list; /* [0 .. n) */
    uint32_t *slots;     /* number of an entry, + 1; 0: empty; twice the capacity */
    size_t n, capacity, key;
    uint64_t threshold;
    struct random_state random;
};

struct sampled_table *sampled_table_new(size_t capacity, size_t key, struct error *err)
{
    struct sampled_table *t = calloc(1, sizeof(*t));
    if (t != NULL) {
        *t = (struct sampled_table){.capacity = capacity, .key = key, .threshold = 1};
        t->list = malloc(capacity * (key + sizeof(uint64_t)));
        t->slots = calloc(2 * capacity, sizeof(*t->slots));
        t->pending = malloc(PENDING * (key + sizeof(uint64_t)));
        random_seed(&t->random, 1);
    }
    if (t != NULL && t->list != NULL && t->slots != NULL && t->pending != NULL)
        return t;
    sampled_table_free(t);
    error_set(err, -ENOMEM, "out of memory for the counts of code");
    return NULL;
}

void sampled_table_free(struct sampled_table *t)
{
    if (t == NULL)
        return;
    free(t->list);
    free(t->slots);
    free(t->pending);
    free(t);
}

static unsigned char *entry_at(const struct sampled_table *t, size_t i)
{
    return t->list + i * (t->key + sizeof(uint64_t));
}

static uint64_t count_of(const struct sampled_table *t, const unsigned char *entry)
{
    uint64_t count;
    memcpy(&count, entry + t->key, sizeof(count));
    return count;
}

static void set_count(const struct sampled_table *t, unsigned char *entry, uint64_t count)
{
    memcpy(entry + t->key, &count, sizeof(count));
}

/* Where the search for a key begins. */
static size_t home_of(const struct sampled_table *t, const unsigned char *key)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < t->key; i += sizeof(uint32_t)) {
        uint32_t part;
        memcpy(&part, key + i, sizeof(part));
        hash = (hash ^ part) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (size_t)(hash >> 8) & (2 * t->capacity - 1);
}

static uint32_t *slot_from(const struct sampled_table *t, const unsigned char *key, size_t at)
{
    while (t->slots[at] != 0 && memcmp(entry_at(t, t->slots[at] - 1), key, t->key) != 0)
        at = (at + 1) & (2 * t->capacity - 1);
    return &t->slots[at];
}

static uint32_t *slot_of(const struct sampled_table *t, const unsigned char *key)
{
    return slot_from(t, key, home_of(t, key));
}

/* Whether an entry of that count is kept, and with which. */
static int draw(struct sampled_table *t, uint64_t *count)
{
    if (*count >= t->threshold)
        return 1;
    if (random_below(&t->random, t->threshold) >= *count)
        return 0;
    *count = t->threshold;
    return 1;
}

static void thin(struct sampled_table *t)
{
    size_t used = 0;
    t->threshold *= 2;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t count = count_of(t, entry_at(t, i));
        if (!draw(t, &count))
            continue;
        memmove(entry_at(t, used), entry_at(t, i), t->key);
        set_count(t, entry_at(t, used++), count);
    }
    t->n = used;
    memset(t->slots, 0, 2 * t->capacity * sizeof(*t->slots));
    for (size_t i = 0; i < used; i++)
        *slot_of(t, entry_at(t, i)) = (uint32_t)i + 1;
}

static void add(struct sampled_table *t, const unsigned char *entry, size_t home)
{
    uint32_t *slot = slot_from(t, entry, home);
    uint64_t count = count_of(t, entry);
    if (*slot != 0) {
        unsigned char *known = entry_at(t, *slot - 1);
        set_count(t, known, count_of(t, known) + count);
        return;
    }
    if (!draw(t, &count))
        return;
    while (t->n == t->capacity) {
        thin(t);
        slot = slot_of(t, entry);
    }
    memcpy(entry_at(t, t->n), entry, t->key);
    set_count(t, entry_at(t, t->n), count);
    *slot = (uint32_t)++t->n;
}

static void add_pending(struct sampled_table *t)
{
    for (size_t i = 0; i < t->npending; i++) {
        uint32_t number = t->slots[t->pending_slot[i]];
        if (number != 0)
            __builtin_prefetch(entry_at(t, number - 1), 1);
    }
    for (size_t i = 0; i < t->npending; i++)
        add(t, t->pending + i * (t->key + sizeof(uint64_t)), t->pending_slot[i]);
    t->npending = 0;
}

void sampled_table_add(struct sampled_table *t, const void *entry, uint64_t count)
{
    unsigned char *pending = t->pending + t->npending * (t->key + sizeof(uint64_t));
    size_t home = home_of(t, entry);
    __builtin_prefetch(&t->slots[home]);
    memcpy(pending, entry, t->key);
    set_count(t, pending, count);
    t->pending_slot[t->npending++] = home;
    if (t->npending == PENDING)
        add_pending(t);
}

const void *sampled_table_all(struct sampled_table *t, size_t *n)
{
    add_pending(t);
    *n = t->n;
    return t->list;
}
