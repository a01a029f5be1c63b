/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit-rows.c - writes counts again with other numbers of blocks: those of the code that was there at the time
 * of a burst, or of a slice of full mode. Afterwards slices are merged, so that each block of a process is
 * counted once.
 */
#include "symbols/jit-split.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/leb128.h"

/* A row while it is written again. */
struct writing {
    struct naming *n;
    uint64_t process, from_ns, until_ns; /* full mode: of the slice */
    size_t slice;                        /* full mode: number of the next one; else SIZE_MAX */
    uint64_t nblocks;                    /* so far */
    int changed;
    uint8_t *bytes;
    size_t size, capacity;
    uint32_t previous; /* block */
    /* the block that is read */
    int open;
    uint32_t number;
    uint64_t executions, nentries;
    uint8_t *entries;
    size_t entries_size, entries_capacity;
};

static int put_block(struct writing *w)
{
    if (!w->open)
        return 0;
    size_t most = 3 * LEB128_MOST + w->entries_size;
    if (ARRAY_GROW_BY(w->bytes, w->size, most, w->capacity) < 0)
        return -ENOMEM;
    w->size += leb128_put(w->bytes + w->size, zigzag((int64_t)w->number - (int64_t)w->previous));
    w->size += leb128_put(w->bytes + w->size, w->executions);
    w->size += leb128_put(w->bytes + w->size, w->nentries);
    if (w->entries_size > 0)
        memcpy(w->bytes + w->size, w->entries, w->entries_size);
    w->size += w->entries_size;
    w->previous = w->number;
    w->entries_size = 0;
    w->nentries = 0;
    w->open = 0;
    return 0;
}

static int take_block(void *ctx, uint32_t number, uint64_t executions)
{
    struct writing *w = ctx;
    struct split *s = w->n->split;
    struct old_block *block;
    if (put_block(w) < 0 || jit_split_block(s, w->process, number, &block) < 0)
        return -ENOMEM;
    for (; w->slice < s->old->nslices; w->slice++) {
        const struct symbols_slice *slice = &s->old->slices[w->slice];
        if (slice->process == w->process && w->nblocks < slice->blocks) {
            w->from_ns = slice->from_ns;
            w->until_ns = slice->until_ns;
            break;
        }
    }
    w->nblocks++;
    w->open = 1;
    w->number = number;
    w->executions = executions;
    if (block == NULL)
        return 0;
    size_t at =
        jit_entries_during_at(s->jit[block->image], block->history, block->nhistory, w->from_ns, w->until_ns);
    int64_t found = jit_split_number(s, block, at);
    if (found < 0)
        return -ENOMEM;
    w->number = (uint32_t)found;
    w->changed = 1;
    return 0;
}

static int take_entry(void *ctx, uint32_t block, uint32_t reference, uint32_t what, uint32_t object,
                      uint64_t count)
{
    struct writing *w = ctx;
    (void)block;
    if (ARRAY_GROW_BY(w->entries, w->entries_size, 4 * (size_t)LEB128_MOST, w->entries_capacity) < 0)
        return -ENOMEM;
    w->entries_size += leb128_put(w->entries + w->entries_size, reference);
    w->entries_size += leb128_put(w->entries + w->entries_size, what);
    w->entries_size += leb128_put(w->entries + w->entries_size, object);
    w->entries_size += leb128_put(w->entries + w->entries_size, count);
    w->nentries++;
    return 0;
}

/* The time of the counts: of a burst, or of all of full mode without slices. */
static void find_time(const struct naming *n, uint64_t burst, struct writing *w)
{
    const struct split *s = n->split;
    w->slice = burst == 0 ? 0 : SIZE_MAX;
    w->from_ns = 0;
    w->until_ns = UINT64_MAX;
    if (burst == 0)
        return;
    size_t end = ARRAY_UP_TO(s->bursts, s->nbursts, id, burst);
    if (end > 0 && s->bursts[end - 1].id == burst) {
        w->from_ns = s->old->start_ns + s->bursts[end - 1].start_ns;
        w->until_ns = s->old->start_ns + s->bursts[end - 1].end_ns;
    }
}

int jit_split_row(void *ctx, uint64_t burst, uint64_t process, const uint8_t *bytes, size_t size,
                  struct error *err)
{
    struct naming *n = ctx;
    struct split *s = n->split;
    struct writing w = {.n = n, .process = process};
    const struct site_counts_reader reader = {take_block, take_entry, &w};
    find_time(n, burst, &w);
    int code = site_counts_read(bytes, size, &reader);
    if (code == 0)
        code = put_block(&w);
    if (code == 0 && w.changed && (code = ARRAY_GROW(s->rows, s->nrows, s->rows_capacity)) == 0) {
        s->rows[s->nrows++] = (struct row){burst, process, w.bytes, w.size};
        w.bytes = NULL;
    }
    free(w.bytes);
    free(w.entries);
    if (code == -ENOMEM)
        return error_set(err, code, "out of memory for the counts of sites");
    return code < 0 ? error_set(err, code, "counts of sites are not valid") : 0;
}

static int store_rows(struct naming *n)
{
    struct split *s = n->split;
    int code = 0;
    for (size_t i = 0; i < s->nrows; i++) {
        if (code == 0)
            code = profile_put_sites_counts(n->profile, s->rows[i].burst, s->rows[i].process,
                                            s->rows[i].bytes, s->rows[i].size, n->err);
        free(s->rows[i].bytes);
    }
    s->nrows = 0;
    return code;
}

int jit_split_store(struct naming *n)
{
    struct split *s = n->split;
    int code = store_rows(n);
    for (size_t i = 0; i < s->nnext && code == 0; i++) {
        struct site_map_block *more = malloc((s->nadded + 1) * sizeof *more);
        size_t count = 0;
        for (size_t k = 0; more != NULL && k < s->nadded; k++)
            if (s->added[k].process == s->next[i].process)
                more[count++] =
                    (struct site_map_block){s->added[k].number, s->added[k].nsites, s->added[k].sites};
        code = more != NULL ? site_map_append(s->map, n->profile, s->next[i].process, more, count, n->err)
                            : error_set(n->err, -ENOMEM, "out of memory for the code of a run");
        free(more);
    }
    return code;
}

static int has_slices(const struct symbols_code *code, uint64_t process)
{
    for (size_t i = 0; i < code->nslices; i++)
        if (code->slices[i].process == process)
            return 1;
    return 0;
}

static int merge_row(void *ctx, uint64_t burst, uint64_t process, const uint8_t *bytes, size_t size,
                     struct error *err)
{
    struct naming *n = ctx;
    struct split *s = n->split;
    struct row row = {.process = process};
    if (burst != 0 || !has_slices(s->old, process))
        return 0;
    int code = site_counts_merge(bytes, size, &row.bytes, &row.size);
    if (code == 0 && (code = ARRAY_GROW(s->rows, s->nrows, s->rows_capacity)) < 0)
        free(row.bytes);
    if (code == 0)
        s->rows[s->nrows++] = row;
    if (code == -ENOMEM)
        return error_set(err, code, "out of memory for the counts of sites");
    return code < 0 ? error_set(err, code, "counts of sites are not valid") : 0;
}

int jit_split_merge(struct naming *n)
{
    if (n->split->old->nslices == 0)
        return 0;
    int code = profile_each_site_counts(n->profile, merge_row, n, n->err);
    return code == 0 ? store_rows(n) : code;
}
