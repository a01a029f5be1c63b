/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit-blocks.c - numbers for the blocks that one block becomes when its code is replaced, and the sites of
 * these: for each entry of the block's history, when it is first asked for, one number behind all others of
 * the process.
 */
#include "symbols/jit-split.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define MOST_HISTORY ((size_t)1 << 22) /* entries of all blocks together: further blocks are not split */

static size_t mix(uint64_t a, uint64_t b)
{
    uint64_t hash = (a * UINT64_C(0x9e3779b97f4a7c15) ^ b) * UINT64_C(0xd6e8feb86659fd93);
    return (size_t)(hash ^ hash >> 32);
}

uint32_t *jit_split_slot(const struct split *s, struct symbols_site site)
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
        *jit_split_slot(s, s->sites[i]) = (uint32_t)i + 1;
    return 0;
}

/* The number of a new site, which is added if there is none. Negative when memory is short. */
static int64_t find_site(struct split *s, struct symbols_site site)
{
    if (2 * (s->nsites - s->old->nsites + 1) > s->nslots && grow_slots(s) < 0)
        return -ENOMEM;
    uint32_t *slot = jit_split_slot(s, site);
    if (*slot != 0)
        return *slot - 1;
    if (s->nsites >= NONE - 1 || ARRAY_GROW(s->sites, s->nsites, s->sites_capacity) < 0)
        return -ENOMEM;
    s->sites[s->nsites++] = site;
    *slot = (uint32_t)s->nsites;
    return (int64_t)s->nsites - 1;
}

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

int jit_split_block(struct split *s, uint64_t process, uint32_t number, struct old_block **found)
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

int64_t jit_split_number(struct split *s, struct old_block *b, size_t at)
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
