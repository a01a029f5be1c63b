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
 *
 * Blocks get their numbers in jit-blocks.c, counts are written again in jit-rows.c.
 */
#include "symbols/jit-split.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

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
        int merged = jit_split_merge(n);
        naming_split_clear(n);
        return merged;
    }
    if (copy_sites(s) < 0)
        return error_set(n->err, -ENOMEM, "out of memory for the code of a run");
    if ((s->map = site_map_load(n->profile, n->err)) == NULL)
        return -ENOMEM;
    int code = profile_bursts(n->profile, &s->bursts, &s->nbursts, n->err);
    if (code == 0)
        code = profile_each_site_counts(n->profile, jit_split_row, n, n->err);
    if (code == 0)
        code = jit_split_store(n);
    if (code == 0)
        code = jit_split_merge(n);
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
    uint32_t slot = s->nslots != 0 ? *jit_split_slot(s, site) : 0;
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
