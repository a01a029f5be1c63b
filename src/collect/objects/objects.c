/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects.c - the data object of a line. What is at an address is found in extents.h, and by the agent's
 * reports of blocks (heap.h). A line, or the touched part of one, may be in several objects: it is that of
 * which it has most, variables and blocks first. The answer is remembered until the next buffer, for lines,
 * and for pages that are completely in one object.
 *
 * Touches of blocks that the agent did not report go to the object whose known blocks the same instruction
 * touches.
 */
#include "collect/objects/objects.h"
#include <errno.h>
#include <string.h>
#include <time.h>
#include "base/clock-ns.h"
#include "base/pages.h"
#include "base/random.h"
#include "collect/objects/extents.h"

/* Entries of the tables below, which are direct-mapped. */
#define PAGES 4096u
#define LINES 8192u
#define SITES 16384u
#define PAGE_SHIFT 12u
#define UNKNOWN_BLOCK (-1.f) /* as weight: a block, but it is not known which one */

struct page {
    uint64_t number;
    uint32_t buffer;                /* in which this was determined */
    uint32_t id;                    /* 0: parts of it are in different objects */
    float weight;                   /* of a block: blocks that it represents */
    int is_zone, is_heap, is_stack; /* see struct extent; id is that of the zone */
};

/* What is known of a line, or of a part of one, in this buffer. Direct-mapped. */
struct line {
    uint64_t number;
    uint32_t part; /* OBJECTS_WHOLE_LINE: of all */
    uint32_t buffer;
    uint32_t id;
    float weight;  /* of a block, see struct page */
    int is_shared; /* by several objects or blocks */
    int is_stack;
};

/* The object to which a site's touches of unknown blocks are attributed. */
struct site_object {
    uint32_t site, id; /* 0: empty */
    float most;        /* the largest weight so far */
};

struct objects {
    struct extents extents;
    struct heap *heap;
    struct frames *frames;
    uint32_t heap_id; /* of blocks that are not known; 0: not requested yet */
    struct random_state random;
    unsigned line_bytes, line_shift;
    uint32_t buffer;
    struct page pages[PAGES];
    struct line lines[LINES];
    struct site_object sites[SITES];
};

struct objects *objects_new(struct object_table *table, struct wire_proc *proc, uint32_t pid,
                            unsigned line_bytes, struct error *err)
{
    struct objects *o = pages_sparse_new(sizeof(*o));
    if (o == NULL || (o->heap = heap_new(table, proc, err)) == NULL ||
        (o->frames = frames_new(table)) == NULL || extents_init(&o->extents, table, proc, o->heap, pid) < 0) {
        objects_free(o);
        error_set(err, -ENOMEM, "out of memory for the data objects of a process");
        return NULL;
    }
    o->line_bytes = line_bytes;
    o->line_shift = (unsigned)__builtin_ctz(line_bytes);
    o->buffer = 1;
    random_seed(&o->random, pid);
    return o;
}

void objects_free(struct objects *o)
{
    if (o == NULL)
        return;
    extents_clear(&o->extents);
    heap_free(o->heap);
    frames_free(o->frames);
    pages_sparse_free(o, sizeof(*o));
}

int objects_inherit(struct objects *o, struct objects *of)
{
    return heap_inherit(o->heap, of->heap, clock_ns(CLOCK_MONOTONIC));
}

void objects_replaced(struct objects *o)
{
    areas_close(&o->extents.areas);
}

void objects_look(struct objects *o)
{
    areas_look(&o->extents.areas);
}

void objects_look_again(struct objects *o)
{
    areas_look_again(&o->extents.areas);
}

void objects_make_room(struct objects *o)
{
    heap_make_room(o->heap, clock_ns(CLOCK_MONOTONIC));
}

void objects_buffer(struct objects *o, const struct wire_desc *desc)
{
    heap_take(o->heap, desc->heap_end, clock_ns(CLOCK_MONOTONIC));
    if (o->heap_id == 0)
        o->heap_id = extents_heap_id(&o->extents);
    o->buffer++;
    extents_buffer(&o->extents, desc);
}

/* The variable that has most of a line or part, or otherwise the object that has most of it. Only this one
 * gets a number. */
static const struct extent *extent_of_most(struct objects *o, uint64_t low, uint64_t bytes_of_all,
                                           int *is_shared)
{
    uint64_t high = low + bytes_of_all, most = 0, best = low;
    for (uint64_t at = low; at < high;) {
        const struct extent *e = extents_find(&o->extents, at);
        uint64_t end = e->high < high ? e->high : high;
        if (end <= at)
            break;
        uint64_t bytes = (end - at) * (e->is_variable ? bytes_of_all : 1);
        if (bytes > most) {
            most = bytes;
            best = at;
        }
        *is_shared |= end - at < bytes_of_all;
        at = end;
    }
    return extents_number(&o->extents, extents_find(&o->extents, best), best);
}

/* A touch of a known block: it becomes the object of the site's unknown ones, the likelier the more blocks it
 * represents. */
static void remember(struct objects *o, uint32_t site, uint32_t id, float weight)
{
    struct site_object *s = &o->sites[(site * UINT64_C(0x9e3779b97f4a7c15) >> 40) % SITES];
    if (s->id == 0 || s->site != site)
        *s = (struct site_object){site, id, weight};
    else if (weight > s->most)
        s->most = weight;
    if (weight >= s->most || random_unit(&o->random) * (double)s->most < (double)weight)
        s->id = id;
}

static uint32_t recall(const struct objects *o, uint32_t site, uint32_t otherwise)
{
    const struct site_object *s = &o->sites[(site * UINT64_C(0x9e3779b97f4a7c15) >> 40) % SITES];
    return s->id != 0 && s->site == site ? s->id : otherwise;
}

/* A line or part in a zone: the known block that has most of it, or what has most of it. */
static void find_block(struct objects *o, const struct extent *zone, uint64_t low, uint64_t bytes_of_all,
                       struct line *l)
{
    uint64_t high = low + bytes_of_all, most = 0, block_bytes = 0;
    uint32_t id = 0;
    for (uint64_t at = low; at < high;) {
        struct heap_place here;
        heap_find(o->heap, at, o->extents.since, &here);
        uint64_t end = here.high < high ? here.high : high;
        if (end <= at)
            break;
        uint64_t bytes = (end - at) * (here.weight > 0 ? bytes_of_all : 1);
        l->is_shared |= end - at < bytes_of_all;
        at = end;
        if (bytes <= most)
            continue;
        most = bytes;
        block_bytes = here.high - here.low;
        l->weight = (float)here.weight;
        id = here.object;
        if (id == 0 && ((zone->is_heap && !here.no_block) || here.near_blocks)) {
            id = o->heap_id;
            l->weight = UNKNOWN_BLOCK;
        }
    }
    /* Where the part of a line is not known: small blocks share lines, and a line is known if any of its
     * blocks is. So a block counts by its part of the line, with 8 bytes that malloc keeps before it. */
    if (l->weight > 0 && block_bytes + 8 < bytes_of_all)
        l->weight *= (float)(block_bytes + 8) / (float)bytes_of_all;
    l->id = id != 0 ? id : zone->id;
}

/* Determines the object of an address's page for this buffer. */
static void learn_page(struct objects *o, struct page *p, uint64_t address)
{
    int is_shared = 0;
    const struct extent *e = extent_of_most(o, address, o->line_bytes, &is_shared);
    uint64_t number = address >> PAGE_SHIFT, low = number << PAGE_SHIFT, high = low + (1u << PAGE_SHIFT);
    struct heap_place place = {.low = e->low, .high = e->high};
    *p = (struct page){.number = number, .buffer = o->buffer};
    if (e->low > low || e->high < high)
        return;
    p->id = e->id;
    p->is_zone = e->is_zone;
    p->is_heap = e->is_heap;
    p->is_stack = e->is_stack;
    if (e->is_zone)
        heap_find(o->heap, address, o->extents.since, &place);
    if (place.object != 0 && place.low <= low && place.high >= high) {
        p->id = place.object;
        p->weight = (float)place.weight;
        p->is_zone = 0;
    }
}

/* l->number and l->part say which line or part. */
static void learn(struct objects *o, struct line *l)
{
    uint64_t bytes = o->line_bytes, address = l->number << o->line_shift;
    if (l->part != OBJECTS_WHOLE_LINE) {
        bytes /= OBJECTS_PARTS;
        address += l->part * bytes;
    }
    uint64_t number = address >> PAGE_SHIFT;
    struct page *p = &o->pages[(number ^ number >> 12) % PAGES];
    if (p->number != number || p->buffer != o->buffer)
        learn_page(o, p, l->number << o->line_shift);
    struct extent zone = {.id = p->id, .is_zone = p->is_zone, .is_heap = p->is_heap, .is_stack = p->is_stack};
    l->buffer = o->buffer;
    l->id = p->id;
    l->weight = p->weight;
    l->is_shared = 0;
    if (p->id == 0) { /* there is more than one in the page */
        zone = *extent_of_most(o, address, bytes, &l->is_shared);
        l->id = zone.id;
    }
    l->is_stack = zone.is_stack;
    if (zone.is_zone)
        find_block(o, &zone, address, bytes, l);
}

static uint64_t slot_of_line(uint64_t line, uint32_t part)
{
    return (line ^ line >> 13 ^ (uint64_t)(part + 1) << 9) % LINES;
}

void objects_fetch(const struct objects *o, uint64_t line)
{
    __builtin_prefetch(&o->lines[slot_of_line(line, OBJECTS_WHOLE_LINE)], 1);
}

static const struct line *known(struct objects *o, uint64_t line, uint32_t part)
{
    struct line *l = &o->lines[slot_of_line(line, part)];
    if (l->number != line || l->part != part || l->buffer != o->buffer) {
        l->number = line;
        l->part = part;
        learn(o, l);
    }
    return l;
}

int objects_is_on_stack(struct objects *o, uint64_t line)
{
    return known(o, line, OBJECTS_WHOLE_LINE)->is_stack;
}

uint64_t objects_address(const struct objects *o, uint64_t line, unsigned part)
{
    return (line << o->line_shift) + part * (o->line_bytes / OBJECTS_PARTS);
}

struct frames *objects_frames(struct objects *o)
{
    return o->frames;
}

/* The local variable at a part of a line, or, of a whole line, at its beginning or its end; else `otherwise`.
 */
static uint32_t find_local(struct objects *o, uint64_t line, unsigned part, uint32_t otherwise)
{
    uint64_t begin;
    if (part != OBJECTS_WHOLE_LINE) {
        uint32_t id = frames_find(o->frames, objects_address(o, line, part), &begin);
        return id != 0 ? id : otherwise;
    }
    uint32_t id = frames_find(o->frames, objects_address(o, line, 0), &begin);
    if (id == 0)
        id = frames_find(o->frames, objects_address(o, line, OBJECTS_PARTS - 1), &begin);
    return id != 0 ? id : otherwise;
}

uint32_t objects_find(struct objects *o, uint64_t line, unsigned part, uint32_t site)
{
    const struct line *l = known(o, line, OBJECTS_WHOLE_LINE);
    if (l->is_stack)
        return find_local(o, line, part, l->id);
    if (l->is_shared && part != OBJECTS_WHOLE_LINE)
        l = known(o, line, part);
    if (l->weight > 0)
        remember(o, site, l->id, l->weight);
    return l->weight >= 0 ? l->id : recall(o, site, l->id);
}

uint32_t objects_find_at(struct objects *o, uint64_t address, uint32_t site)
{
    const struct extent *e = extents_number(&o->extents, extents_find(&o->extents, address), address);
    struct heap_place place = {0};
    uint64_t begin;
    if (e->is_variable)
        return e->id;
    if (e->is_stack) {
        uint32_t id = frames_find(o->frames, address, &begin);
        return id != 0 ? id : e->id;
    }
    if (e->is_zone)
        heap_find(o->heap, address, o->extents.since, &place);
    return place.weight > 0
               ? place.object
               : objects_find(o, address >> o->line_shift, objects_part(address, o->line_shift), site);
}

int objects_offset(struct objects *o, uint64_t address, uint32_t object, uint64_t *offset)
{
    const struct extent *e = extents_number(&o->extents, extents_find(&o->extents, address), address);
    uint64_t low = e->begin;
    int found = e->is_variable && e->id == object;
    if (e->is_stack)
        found = frames_find(o->frames, address, &low) == object && object != e->id && low != UINT64_MAX;
    if (e->is_zone) {
        struct heap_place place;
        heap_find(o->heap, address, o->extents.since, &place);
        low = place.begin;
        found = place.object == object && place.object != 0;
    }
    *offset = address - low;
    return found ? 0 : -1;
}
