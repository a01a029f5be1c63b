/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit-entries.c - entries by address, searched as a balanced tree: the middle one of a part of the array is
 * its root, and `highest` is the highest end of that part.
 *
 * Files of any content may be read, by which neither memory nor time may grow without bounds: all numbers are
 * limited, and so are the entries that are looked at in all searches together.
 */
#include "symbols/jit-entries.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define MOST_ENTRIES (1u << 21)
#define MOST_KEPT (UINT64_C(512) << 20)
#define MOST_VISITS (UINT64_C(1) << 27)
#define SORT_VISITS 16 /* for an entry that was found: to sort it takes that much longer */
#define CHUNK_BYTES ((size_t)1 << 16)

struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

struct jit_entries {
    struct jit_entry *list;
    size_t n, capacity;
    struct chunk *chunks;
    uint64_t kept, visits;
    uint32_t shift;
    uint32_t *found; /* of jit_entries_at */
    size_t nfound, found_capacity;
};

struct jit_entries *jit_entries_new(void)
{
    return calloc(1, sizeof(struct jit_entries));
}

void jit_entries_free(struct jit_entries *e)
{
    if (e == NULL)
        return;
    for (struct chunk *chunk = e->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(e->list);
    free(e->found);
    free(e);
}

void *jit_entries_keep(struct jit_entries *e, size_t size)
{
    struct chunk *chunk = e->chunks;
    if (size > MOST_KEPT || e->kept + size > MOST_KEPT)
        return NULL;
    size = (size + 15) & ~(size_t)15;
    if (chunk == NULL || chunk->size - chunk->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        if ((chunk = malloc(sizeof *chunk + room)) == NULL)
            return NULL;
        *chunk = (struct chunk){.next = e->chunks, .size = room};
        e->chunks = chunk;
    }
    void *kept = chunk->bytes + chunk->used;
    chunk->used += size;
    e->kept += size;
    return kept;
}

int jit_entries_add(struct jit_entries *e, struct jit_entry entry)
{
    if (entry.low >= entry.high || *entry.name == '\0' || e->n == MOST_ENTRIES)
        return 0;
    if (ARRAY_GROW(e->list, e->n, e->capacity) < 0)
        return -ENOMEM;
    entry.order = (uint32_t)e->n;
    e->list[e->n++] = entry;
    return 0;
}

const struct jit_entry *jit_entries_added(const struct jit_entries *e, size_t i)
{
    return i < e->n ? &e->list[i] : NULL;
}

size_t jit_entries_count(const struct jit_entries *e)
{
    return e->n;
}

void jit_entries_without_times(struct jit_entries *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->list[i].from_ns = 0;
}

void jit_entries_shift(struct jit_entries *e, uint32_t bytes)
{
    e->shift = bytes;
}

static int compare_places(const void *a, const void *b)
{
    const struct jit_entry *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static uint64_t find_highest(struct jit_entry *list, size_t n)
{
    if (n == 0)
        return 0;
    struct jit_entry *root = &list[n / 2];
    uint64_t left = find_highest(list, n / 2), right = find_highest(root + 1, n - n / 2 - 1);
    root->highest = left > right ? left : right;
    root->highest = root->highest > root->high ? root->highest : root->high;
    return root->highest;
}

void jit_entries_sort(struct jit_entries *e)
{
    if (e->n > 0)
        qsort(e->list, e->n, sizeof *e->list, compare_places);
    find_highest(e->list, e->n);
}

/* Adds to `found` which of the n entries from number `first` on have the address. */
static int find_all(struct jit_entries *e, size_t first, size_t n, uint64_t address)
{
    while (n > 0) {
        size_t root = first + n / 2;
        const struct jit_entry *entry = &e->list[root];
        if (entry->highest <= address || e->visits++ > MOST_VISITS)
            return 0;
        if (find_all(e, first, n / 2, address) < 0)
            return -ENOMEM;
        if (entry->low > address)
            return 0;
        if (address < entry->high) {
            if (ARRAY_GROW(e->found, e->nfound, e->found_capacity) < 0)
                return -ENOMEM;
            e->found[e->nfound++] = (uint32_t)root;
        }
        first = root + 1;
        n -= n / 2 + 1;
    }
    return 0;
}

static int compare_times(const void *a, const void *b, void *of)
{
    const struct jit_entry *list = of, *x = &list[*(const uint32_t *)a], *y = &list[*(const uint32_t *)b];
    if (x->from_ns != y->from_ns)
        return x->from_ns < y->from_ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* The same function, made again. */
static int is_same(const struct jit_entry *x, const struct jit_entry *y)
{
    return x->low == y->low && x->high == y->high && x->lines == y->lines && strcmp(x->name, y->name) == 0;
}

size_t jit_entries_at(struct jit_entries *e, uint64_t address, const uint32_t **list)
{
    size_t n = 0;
    e->nfound = 0;
    *list = NULL;
    if (find_all(e, 0, e->n, address) < 0 || e->nfound == 0 || e->visits > MOST_VISITS)
        return 0;
    e->visits += SORT_VISITS * e->nfound;
    qsort_r(e->found, e->nfound, sizeof *e->found, compare_times, e->list);
    for (size_t i = 0; i < e->nfound; i++) {
        const struct jit_entry *entry = &e->list[e->found[i]];
        const struct jit_entry *before = n > 0 ? &e->list[e->found[n - 1]] : NULL;
        if (before != NULL && before->from_ns == entry->from_ns)
            n--;
        else if (before != NULL && is_same(before, entry))
            continue;
        e->found[n++] = e->found[i];
    }
    *list = e->found;
    return n;
}

size_t jit_entries_during_at(const struct jit_entries *e, const uint32_t *list, size_t n, uint64_t from_ns,
                             uint64_t until_ns)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->list[list[middle]].from_ns <= from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    size_t best = low > 0 ? low - 1 : 0;
    uint64_t longest = 0, begin = from_ns;
    for (size_t i = best; i < n && (i == best || begin <= until_ns); i++) {
        uint64_t next = i + 1 < n ? e->list[list[i + 1]].from_ns : UINT64_MAX;
        uint64_t end = next < until_ns ? next : until_ns;
        if (end > begin && end - begin >= longest) {
            longest = end - begin;
            best = i;
        }
        begin = next;
    }
    return best;
}

uint32_t jit_entries_during(const struct jit_entries *e, const uint32_t *list, size_t n, uint64_t from_ns,
                            uint64_t until_ns)
{
    return list[jit_entries_during_at(e, list, n, from_ns, until_ns)];
}

int jit_entries_has(const struct jit_entries *e, uint32_t number, uint64_t address)
{
    return number < e->n && address >= e->list[number].low && address < e->list[number].high;
}

const char *jit_entries_name(const struct jit_entries *e, uint32_t number)
{
    return number < e->n ? e->list[number].name : NULL;
}

uint32_t jit_entries_line(const struct jit_entries *e, uint32_t number, uint64_t address, const char **file)
{
    *file = NULL;
    if (!jit_entries_has(e, number, address))
        return 0;
    const struct jit_entry *entry = &e->list[number];
    uint64_t offset = address - entry->low + e->shift;
    size_t low = 0, high = entry->nlines;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entry->lines[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || entry->lines[low - 1].line == 0)
        return 0;
    *file = entry->lines[low - 1].file;
    return entry->lines[low - 1].line;
}
