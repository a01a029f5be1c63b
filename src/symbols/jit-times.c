/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit-times.c - code that a JIT compiler has replaced by other code at the same place.
 *
 * Recorded are blocks, by address; one block can be code of several functions, one after the other. The
 * counts of each burst have the time of the burst, and those of full mode the time of a slice of the run. So
 * each block at a place whose names change becomes several, one for each function, with numbers behind all
 * others; counts are written again with these numbers, and each function has sites of its own.
 *
 * Example: the block 7 at address 0x5000 is of `a`, made at 1 s, and from 4 s on of `b`. Of the blocks 1 to
 * 20 of that process it becomes 21 in the counts of bursts at 1 to 4 s, and 22 in those of later ones.
 *
 * What is counted over the whole run by address or by the old number (call paths, causes, strides, sharing)
 * belongs to the function with most references among those at its place.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/leb128.h"
#include "symbols/jit-map.h"
#include "symbols/naming.h"

#define NONE UINT32_MAX
#define MOST_HISTORY ((size_t)1 << 22) /* entries of all blocks together: further blocks are not split */

/* A block at a place where names change. */
struct old_block {
    uint64_t process;
    uint32_t number, image;
    const uint32_t *sites; /* of the map */
    uint32_t nsites, nhistory;
    uint32_t *history; /* entries, as jit_entries_at has them */
    uint32_t *numbers; /* the block's in the time of each entry; 0: none yet */
};

struct new_block {
    uint64_t process;
    uint32_t number, nsites;
    uint32_t *sites;
};

/* What is written in the place of a row of counts. */
struct row {
    uint64_t burst, process;
    uint8_t *bytes;
    size_t size;
};

struct next_number {
    uint64_t process, number;
};

struct split {
    const struct symbols_code *old;
    struct symbols_code code;
    struct symbols_site *sites;
    size_t nsites, sites_capacity;
    struct jit_entries **jit; /* by image; NULL: other code */
    char *changes;            /* of each old site: the names at its place change */
    uint32_t *same;           /* of each old site: the one that has its row; NONE: itself */
    uint32_t *slots;          /* number of a new site, + 1; 0: empty */
    size_t nslots;
    struct site_map *map;
    struct old_block *blocks;
    size_t nblocks, blocks_capacity, nhistory;
    uint32_t *block_slots; /* number in blocks[], + 1; 0: empty */
    size_t nblock_slots;
    struct new_block *added;
    size_t nadded, added_capacity;
    struct next_number *next;
    size_t nnext, next_capacity;
    struct profile_burst *bursts;
    size_t nbursts;
    struct row *rows;
    size_t nrows, rows_capacity;
};

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

static size_t mix(uint64_t a, uint64_t b)
{
    uint64_t hash = (a * UINT64_C(0x9e3779b97f4a7c15) ^ b) * UINT64_C(0xd6e8feb86659fd93);
    return (size_t)(hash ^ hash >> 32);
}

/* --- sites --- */

static uint32_t *site_slot(const struct split *s, struct symbols_site site)
{
    size_t i = mix(site.offset, (uint64_t)site.image << 32 | site.made) & (s->nslots - 1);
    for (; s->slots[i] != 0; i = (i + 1) & (s->nslots - 1)) {
        const struct symbols_site *other = &s->sites[s->slots[i] - 1];
        if (other->offset == site.offset && other->image == site.image && other->made == site.made)
            break;
    }
    return &s->slots[i];
}

static int grow_slots(struct split *s)
{
    size_t n = s->nslots != 0 ? 2 * s->nslots : 1024;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (slots == NULL)
        return -ENOMEM;
    free(s->slots);
    s->slots = slots;
    s->nslots = n;
    for (size_t i = s->old->nsites; i < s->nsites; i++)
        *site_slot(s, s->sites[i]) = (uint32_t)i + 1;
    return 0;
}

/* The number of a new site, which is added if there is none. Negative when memory is short. */
static int64_t find_site(struct split *s, struct symbols_site site)
{
    if (2 * (s->nsites - s->old->nsites + 1) > s->nslots && grow_slots(s) < 0)
        return -ENOMEM;
    uint32_t *slot = site_slot(s, site);
    if (*slot != 0)
        return *slot - 1;
    if (s->nsites >= NONE - 1 || ARRAY_GROW(s->sites, s->nsites, s->sites_capacity) < 0)
        return -ENOMEM;
    s->sites[s->nsites++] = site;
    *slot = (uint32_t)s->nsites;
    return (int64_t)s->nsites - 1;
}

/* --- blocks --- */

static uint32_t *block_slot(const struct split *s, uint64_t process, uint32_t number)
{
    size_t i = mix(process, number) & (s->nblock_slots - 1);
    for (; s->block_slots[i] != 0; i = (i + 1) & (s->nblock_slots - 1)) {
        const struct old_block *b = &s->blocks[s->block_slots[i] - 1];
        if (b->process == process && b->number == number)
            break;
    }
    return &s->block_slots[i];
}

static int grow_block_slots(struct split *s)
{
    size_t n = s->nblock_slots != 0 ? 2 * s->nblock_slots : 1024;
    uint32_t *slots = calloc(n, sizeof *slots);
    if (slots == NULL)
        return -ENOMEM;
    free(s->block_slots);
    s->block_slots = slots;
    s->nblock_slots = n;
    for (size_t i = 0; i < s->nblocks; i++)
        *block_slot(s, s->blocks[i].process, s->blocks[i].number) = (uint32_t)i + 1;
    return 0;
}

/* What was made at the first of the block's sites whose names change. */
static int note_history(struct split *s, struct old_block *b)
{
    const uint32_t *list;
    uint32_t i = 0;
    while (!s->changes[b->sites[i]])
        i++;
    const struct symbols_site *site = &s->sites[b->sites[i]];
    size_t n = jit_entries_at(s->jit[site->image], site->offset, &list);
    b->image = site->image;
    if (n < 2 || n > MOST_HISTORY - s->nhistory)
        return 0;
    b->history = malloc(n * sizeof *b->history);
    b->numbers = calloc(n, sizeof *b->numbers);
    if (b->history == NULL || b->numbers == NULL)
        return -ENOMEM;
    memcpy(b->history, list, n * sizeof *list);
    b->nhistory = (uint32_t)n;
    s->nhistory += n;
    return 0;
}

/* *found NULL: its names do not change. 0 or -ENOMEM. */
static int find_block(struct split *s, uint64_t process, uint32_t number, struct old_block **found)
{
    const uint32_t *sites;
    uint32_t n = site_map_block(s->map, process, number, &sites), i = 0;
    *found = NULL;
    while (i < n && (sites[i] >= s->old->nsites || !s->changes[sites[i]]))
        i++;
    if (i == n)
        return 0;
    if (2 * (s->nblocks + 1) > s->nblock_slots && grow_block_slots(s) < 0)
        return -ENOMEM;
    uint32_t *slot = block_slot(s, process, number);
    if (*slot == 0) {
        if (ARRAY_GROW(s->blocks, s->nblocks, s->blocks_capacity) < 0)
            return -ENOMEM;
        struct old_block *b = &s->blocks[s->nblocks];
        *b = (struct old_block){.process = process, .number = number, .sites = sites, .nsites = n};
        *slot = (uint32_t)++s->nblocks;
        if (note_history(s, b) < 0)
            return -ENOMEM;
    }
    struct old_block *b = &s->blocks[*slot - 1];
    *found = b->nhistory > 0 ? b : NULL;
    return 0;
}

/* A number that no block of the process has; 0: there is none, or memory is short. */
static uint32_t next_number(struct split *s, uint64_t process)
{
    size_t i = 0;
    while (i < s->nnext && s->next[i].process != process)
        i++;
    if (i == s->nnext) {
        if (ARRAY_GROW(s->next, s->nnext, s->next_capacity) < 0)
            return 0;
        s->next[s->nnext++] = (struct next_number){process, site_map_blocks_end(s->map, process)};
    }
    return s->next[i].number < SITE_MAP_MOST_BLOCKS ? (uint32_t)s->next[i].number++ : 0;
}

/* The number of a block in the time of an entry of its history; the old one if there are too many. Negative
 * when memory is short. */
static int64_t number_at(struct split *s, struct old_block *b, size_t at)
{
    struct jit_entries *jit = s->jit[b->image];
    if (b->numbers[at] != 0)
        return b->numbers[at];
    uint32_t number = next_number(s, b->process);
    if (number == 0)
        return b->numbers[at] = b->number;
    uint32_t *sites = malloc(b->nsites * sizeof *sites);
    if (sites == NULL || ARRAY_GROW(s->added, s->nadded, s->added_capacity) < 0) {
        free(sites);
        return -ENOMEM;
    }
    s->added[s->nadded++] = (struct new_block){b->process, number, b->nsites, sites};
    for (uint32_t i = 0; i < b->nsites; i++) {
        struct symbols_site site = s->sites[b->sites[i]];
        sites[i] = b->sites[i];
        if (!s->changes[b->sites[i]] || !jit_entries_has(jit, b->history[at], site.offset))
            continue;
        site.made = b->history[at] + 1;
        int64_t found = find_site(s, site);
        if (found < 0)
            return -ENOMEM;
        sites[i] = (uint32_t)found;
    }
    return b->numbers[at] = number;
}

/* --- rows of counts --- */

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
    if (put_block(w) < 0 || find_block(s, w->process, number, &block) < 0)
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
    int64_t found = number_at(s, block, at);
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

/* Rows are replaced when all have been read. */
static int take_row(void *ctx, uint64_t burst, uint64_t process, const uint8_t *bytes, size_t size,
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

static int store(struct naming *n)
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

/* --- slices, which nobody needs any more --- */

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

/* Has each block of a process once in its counts. */
static int merge_slices(struct naming *n)
{
    if (n->split->old->nslices == 0)
        return 0;
    int code = profile_each_site_counts(n->profile, merge_row, n, n->err);
    return code == 0 ? store_rows(n) : code;
}

/* --- which sites --- */

/* Notes at which sites names change. Returns how many, or -ENOMEM. */
static int64_t find_changes(struct naming *n, struct split *s)
{
    int64_t found = 0;
    const uint32_t *list;
    for (size_t i = 0; i < s->old->nimages; i++) {
        struct symbols_image *image =
            symbols_jit_map_is(s->old->images[i]) ? symbols_files_image(&n->files, s->old->images[i]) : NULL;
        s->jit[i] = image != NULL ? symbols_image_jit(image) : NULL;
    }
    for (size_t i = 0; i < s->old->nsites; i++) {
        const struct symbols_site *site = &s->old->sites[i];
        s->same[i] = NONE;
        s->changes[i] =
            s->jit[site->image] != NULL && jit_entries_at(s->jit[site->image], site->offset, &list) > 1;
        found += s->changes[i];
    }
    return found;
}

static int has_jit(const struct symbols_code *code)
{
    for (size_t i = 0; i < code->nimages; i++)
        if (symbols_jit_map_is(code->images[i]))
            return 1;
    return 0;
}

static int copy_sites(struct split *s)
{
    if (ARRAY_GROW_BY(s->sites, 0, s->old->nsites + 1, s->sites_capacity) < 0)
        return -ENOMEM;
    memcpy(s->sites, s->old->sites, s->old->nsites * sizeof *s->sites);
    s->nsites = s->old->nsites;
    return 0;
}

int naming_split(struct naming *n)
{
    if (!has_jit(n->code))
        return 0;
    struct split *s = n->split = calloc(1, sizeof *s);
    if (s != NULL) {
        s->old = n->code;
        s->jit = calloc(s->old->nimages + 1, sizeof *s->jit);
        s->changes = calloc(s->old->nsites + 1, 1);
        s->same = calloc(s->old->nsites + 1, sizeof *s->same);
    }
    if (s == NULL || s->jit == NULL || s->changes == NULL || s->same == NULL)
        return error_set(n->err, -ENOMEM, "out of memory for the code of a run");
    if (find_changes(n, s) == 0) {
        int merged = merge_slices(n);
        naming_split_clear(n);
        return merged;
    }
    if (copy_sites(s) < 0)
        return error_set(n->err, -ENOMEM, "out of memory for the code of a run");
    if ((s->map = site_map_load(n->profile, n->err)) == NULL)
        return -ENOMEM;
    int code = profile_bursts(n->profile, &s->bursts, &s->nbursts, n->err);
    if (code == 0)
        code = profile_each_site_counts(n->profile, take_row, n, n->err);
    if (code == 0)
        code = store(n);
    if (code == 0)
        code = merge_slices(n);
    s->code = *s->old;
    s->code.sites = s->sites;
    s->code.nsites = s->nsites;
    n->code = &s->code;
    return code;
}

/* --- what is not known by time --- */

/* The new site at a place, of that entry; NONE: none has references. */
static uint32_t site_of(const struct split *s, const struct symbols_site *old, uint32_t entry)
{
    struct symbols_site site = *old;
    site.made = entry + 1;
    uint32_t slot = s->nslots != 0 ? *site_slot(s, site) : 0;
    return slot != 0 ? slot - 1 : NONE;
}

static void settle_hit(struct naming *n, struct profile_hit *hit)
{
    const struct split *s = n->split;
    const uint32_t *list;
    if (hit->site >= s->old->nsites || !s->changes[hit->site])
        return;
    const struct symbols_site *old = &s->sites[hit->site];
    uint64_t at_ns = s->old->start_ns + hit->at_ns;
    size_t count = jit_entries_at(s->jit[old->image], old->offset, &list);
    uint32_t site =
        count > 0 ? site_of(s, old, jit_entries_during(s->jit[old->image], list, count, at_ns, at_ns)) : NONE;
    if (site != NONE)
        hit->site = site;
}

/* References of each entry of an image, by all its sites; NULL when memory is short. */
static double *weigh_entries(const struct naming *n, uint32_t image)
{
    const struct split *s = n->split;
    double *weight = calloc(jit_entries_count(s->jit[image]) + 1, sizeof *weight);
    for (size_t i = s->old->nsites; weight != NULL && i < s->nsites; i++)
        if (s->sites[i].image == image)
            weight[s->sites[i].made - 1] += n->references[i];
    return weight;
}

void naming_settle(struct naming *n)
{
    struct split *s = n->split;
    const uint32_t *list;
    if (s == NULL)
        return;
    for (size_t i = 0; i < n->nhits; i++)
        settle_hit(n, &n->hits[i]);
    for (uint32_t image = 0; image < s->old->nimages; image++) {
        double *weight = s->jit[image] != NULL ? weigh_entries(n, image) : NULL;
        for (size_t i = 0; weight != NULL && i < s->old->nsites; i++) {
            if (s->sites[i].image != image || !s->changes[i])
                continue;
            size_t count = jit_entries_at(s->jit[image], s->sites[i].offset, &list), best = count - 1;
            for (size_t k = count; k > 0; k--)
                best = weight[list[k - 1]] > weight[list[best]] ? k - 1 : best;
            if (count > 0) {
                s->same[i] = site_of(s, &s->sites[i], list[best]);
                s->sites[i].made = list[best] + 1;
            }
        }
        free(weight);
    }
}

void naming_settle_rows(struct naming *n)
{
    const struct split *s = n->split;
    for (size_t i = 0; s != NULL && i < s->old->nsites; i++)
        if (s->same[i] != NONE && n->ids[i] == 0)
            n->ids[i] = n->ids[s->same[i]];
}

void naming_split_clear(struct naming *n)
{
    struct split *s = n->split;
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->nblocks; i++) {
        free(s->blocks[i].history);
        free(s->blocks[i].numbers);
    }
    for (size_t i = 0; i < s->nadded; i++)
        free(s->added[i].sites);
    for (size_t i = 0; i < s->nrows; i++)
        free(s->rows[i].bytes);
    free(s->blocks);
    free(s->added);
    free(s->rows);
    free(s->next);
    free(s->slots);
    free(s->block_slots);
    free(s->bursts);
    free(s->sites);
    free(s->jit);
    free(s->changes);
    free(s->same);
    site_map_free(s->map);
    free(s);
    n->split = NULL;
}
