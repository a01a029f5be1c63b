/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/tally.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"

static struct tally_entry *place_of(struct tally_entry *entries, size_t capacity, const struct tally_entry *e)
{
    uint64_t key = ((uint64_t)e->row << 32 | e->object) * UINT64_C(0x9e3779b97f4a7c15);
    key = ((key ^ key >> 29) + e->what) * UINT64_C(0xbf58476d1ce4e5b9);
    size_t at = (size_t)(key >> 20) & (capacity - 1);
    for (; entries[at].count != 0; at = (at + 1) & (capacity - 1))
        if (entries[at].row == e->row && entries[at].object == e->object && entries[at].what == e->what)
            break;
    return &entries[at];
}

static int grow(struct tally *t)
{
    size_t capacity = t->capacity != 0 ? 2 * t->capacity : 4096;
    struct tally_entry *grown = calloc(capacity, sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->entries[i].count != 0)
            *place_of(grown, capacity, &t->entries[i]) = t->entries[i];
    free(t->entries);
    t->entries = grown;
    t->capacity = capacity;
    return 0;
}

int tally_add(struct tally *t, uint32_t row, uint32_t object, uint32_t what, uint64_t count)
{
    struct tally_entry new = {count, row, object, what};
    if (count == 0)
        return 0;
    if (2 * (t->n + 1) > t->capacity && grow(t) < 0)
        return -ENOMEM;
    struct tally_entry *e = place_of(t->entries, t->capacity, &new);
    if (e->count == 0) {
        *e = new;
        t->n++;
    } else {
        e->count += count;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct tally_entry *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    return x->what < y->what ? -1 : x->what > y->what;
}

void tally_sort(struct tally *t)
{
    size_t used = 0;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->entries[i].count != 0)
            t->entries[used++] = t->entries[i];
    if (used > 0)
        qsort(t->entries, used, sizeof *t->entries, compare);
}

void tally_thin(struct tally *t, size_t most)
{
    struct random_state random;
    uint64_t least = 1;
    for (double kept = (double)t->n; kept > (double)most;) {
        least *= 2;
        kept = 0;
        for (size_t i = 0; i < t->n; i++)
            kept += fmin(1, (double)t->entries[i].count / (double)least);
    }
    size_t n = 0;
    random_seed(&random, 1);
    for (size_t i = 0; i < t->n; i++) {
        struct tally_entry e = t->entries[i];
        if (e.count < least)
            e.count = random_below(&random, least) < e.count ? least : 0;
        if (e.count > 0)
            t->entries[n++] = e;
    }
    t->n = n;
}

void tally_clear(struct tally *t)
{
    free(t->entries);
    *t = (struct tally){0};
}
