/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/tally.h"

#include <errno.h>
#include <stdlib.h>

static struct tally_entry *place_of(struct tally_entry *entries, size_t room, const struct tally_entry *e)
{
    uint64_t key = ((uint64_t)e->row << 32 | e->object) * UINT64_C(0x9e3779b97f4a7c15);
    key = ((key ^ key >> 29) + e->what) * UINT64_C(0xbf58476d1ce4e5b9);
    size_t at = (size_t)(key >> 20) & (room - 1);
    for (; entries[at].count != 0; at = (at + 1) & (room - 1))
        if (entries[at].row == e->row && entries[at].object == e->object && entries[at].what == e->what)
            break;
    return &entries[at];
}

static int grow(struct tally *t)
{
    size_t room = t->room != 0 ? 2 * t->room : 4096;
    struct tally_entry *grown = calloc(room, sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < t->room; i++)
        if (t->entries[i].count != 0)
            *place_of(grown, room, &t->entries[i]) = t->entries[i];
    free(t->entries);
    t->entries = grown;
    t->room = room;
    return 0;
}

int tally_add(struct tally *t, uint32_t row, uint32_t object, uint32_t what, uint64_t count)
{
    struct tally_entry new = {count, row, object, what};
    if (count == 0)
        return 0;
    if (2 * (t->n + 1) > t->room && grow(t) < 0)
        return -ENOMEM;
    struct tally_entry *e = place_of(t->entries, t->room, &new);
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
    for (size_t i = 0; i < t->room; i++)
        if (t->entries[i].count != 0)
            t->entries[used++] = t->entries[i];
    if (used > 0)
        qsort(t->entries, used, sizeof *t->entries, compare);
}

void tally_clear(struct tally *t)
{
    free(t->entries);
    *t = (struct tally){0};
}
