/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites.c - attributes every reference of every burst to its instruction, at low cost.
 *
 * Most touches hit in the smallest cache of interest. These are only counted by block: one increment for all
 * references of an executed block (decode.h). A touch at a distance of OCTAVES_LEAST lines or more, or the
 * first touch of its line, is an event; stackdist_touch_many lists them. Events are counted in a hash table
 * by site, bin and data object. Where there are very many (full mode), one near event in near_every is
 * counted, for that many. Of all touches, one in COLLECT_OBJECT_EVERY is attributed to its object, and counts
 * for that many. Entries of one block form a list, so that the end of the burst can write block after block
 * without sorting.
 */
#include "collect/reduce/sites.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/leb128.h"
#include "base/octaves.h"
#include "base/pages.h"
#include "base/random.h"
#include "collect/tunables.h"
#include "profile/site-counts.h"
#include "sim/epochs.h"
#include "symbols/code.h"

#define FIRST_SLOTS 4096u
/* Counts that are added together, so that the misses of the table's entries overlap. */
#define PENDING 32u

_Static_assert(OBJECTS_PARTS_SHIFT == DECODE_PARTS_SHIFT, "the decoder's parts of lines");

struct entry {
    uint64_t count;
    uint32_t site;
    uint32_t what; /* site-counts.h */
    uint32_t object;
    uint32_t next; /* next entry of the same block, + 1; 0: none */
    uint32_t slot; /* its index in slots */
};

/* By block. Memory of blocks that were never seen is never written. */
struct tables {
    uint32_t executions[WIRE_MAX_BLOCKS];
    uint32_t executed[WIRE_MAX_BLOCKS + 1];
    uint32_t head[WIRE_MAX_BLOCKS];   /* first entry, + 1; 0: none */
    uint64_t before[WIRE_MAX_BLOCKS]; /* executions in earlier buffers */
    uint32_t listed[WIRE_MAX_BLOCKS];
};

/* A count that add_soon has not added yet. */
struct pending {
    uint64_t count;
    uint32_t site, what, object, slot;
};

struct sites {
    struct tables *tables;
    struct decode_sites noted;
    size_t nlisted; /* number of blocks with entries or executions in earlier buffers, in tables->listed */
    struct entry *entries;
    uint32_t nentries, capacity;
    uint32_t *slots; /* number of an entry, + 1; 0: empty. Their number is a power of two */
    uint32_t nslots;
    struct pending pending[PENDING];
    uint32_t npending;
    uint64_t lines;              /* first touches so far */
    struct stackdist_far far[2]; /* the second one: in the thread's own stack */
    size_t far_capacity[2];
    uint8_t *bytes;
    size_t bytes_capacity;
    struct epochs *epochs;              /* recent far touches */
    struct sampled_table *causes;       /* NULL: reuses are not sampled */
    uint64_t process;                   /* likewise: theirs */
    int64_t reuses_ahead;               /* far touches until the next sampled one */
    uint32_t cause_every, ncauses;      /* one in so many is; those sampled since that was set */
    uint64_t ahead;                     /* touches until the next one whose object is looked for */
    uint32_t near_every, near_ahead[2]; /* near events until the next one that is counted, as for far */
    struct random_state random;
    int failed; /* memory was short in count_more */
};

static void count_more(void *ctx, uint32_t site, uint64_t touches);

struct sites *sites_new(uint32_t near_every, struct error *err)
{
    struct sites *s = calloc(1, sizeof(*s));
    if (s != NULL) {
        s->tables = pages_sparse_new(sizeof(*s->tables));
        s->nslots = FIRST_SLOTS;
        s->slots = calloc(s->nslots, sizeof(*s->slots));
        s->capacity = FIRST_SLOTS / 2;
        s->entries = malloc(s->capacity * sizeof(*s->entries));
        s->epochs = epochs_new(err);
    }
    if (s == NULL || s->tables == NULL || s->slots == NULL || s->entries == NULL || s->epochs == NULL) {
        sites_free(s);
        error_set(err, -ENOMEM, "out of memory for the sites of a process");
        return NULL;
    }
    s->noted = (struct decode_sites){
        .executions = s->tables->executions, .executed = s->tables->executed, .more = count_more, .ctx = s};
    s->far[0].least = s->far[1].least = OCTAVES_LEAST;
    s->near_every = near_every;
    s->cause_every = COLLECT_CAUSE_EVERY;
    random_seed(&s->random, 1);
    return s;
}

void sites_free(struct sites *s)
{
    if (s == NULL)
        return;
    pages_sparse_free(s->tables, sizeof(*s->tables));
    free(s->slots);
    free(s->entries);
    for (int own = 0; own < 2; own++) {
        free(s->far[own].at);
        free(s->far[own].stack);
    }
    free(s->bytes);
    epochs_free(s->epochs);
    free(s);
}

struct decode_sites *sites_noted(struct sites *s)
{
    return &s->noted;
}

struct stackdist_far *sites_far(struct sites *s, size_t n, int own)
{
    struct stackdist_far *far = &s->far[own];
    size_t *capacity = &s->far_capacity[own];
    if (n + STACKDIST_FAR_EXTRA > *capacity) {
        free(far->at);
        free(far->stack);
        *capacity = n + STACKDIST_FAR_EXTRA;
        far->at = malloc(*capacity * sizeof(*far->at));
        far->stack = malloc(*capacity * sizeof(*far->stack));
        if (far->at == NULL || far->stack == NULL) {
            *capacity = 0;
            return NULL;
        }
    }
    return far;
}

static inline uint32_t slot_of(const struct sites *s, uint32_t site, uint32_t what, uint32_t object)
{
    uint64_t key = ((uint64_t)site << 9 | what) ^ (uint64_t)object << 36;
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (s->nslots - 1);
}

static int grow(struct sites *s)
{
    struct entry *entries = realloc(s->entries, 2 * (size_t)s->capacity * sizeof(*entries));
    if (entries == NULL)
        return -ENOMEM;
    s->entries = entries;
    uint32_t *slots = calloc(2 * (size_t)s->nslots, sizeof(*slots));
    if (slots == NULL)
        return -ENOMEM;
    free(s->slots);
    s->slots = slots;
    s->capacity *= 2;
    s->nslots *= 2;
    for (uint32_t i = 0; i < s->nentries; i++) {
        struct entry *e = &entries[i];
        for (e->slot = slot_of(s, e->site, e->what, e->object); slots[e->slot] != 0;)
            e->slot = (e->slot + 1) & (s->nslots - 1);
        slots[e->slot] = i + 1;
    }
    return 0;
}

static int is_listed(const struct sites *s, uint32_t block)
{
    return s->tables->head[block] != 0 || s->tables->before[block] != 0;
}

static void list_block(struct sites *s, uint32_t block)
{
    if (!is_listed(s, block))
        s->tables->listed[s->nlisted++] = block;
}

static int add_entry(struct sites *s, uint32_t slot, uint32_t site, uint32_t what, uint32_t object,
                     uint64_t count)
{
    if (s->nentries == s->capacity) {
        if (grow(s) < 0)
            return -ENOMEM;
        for (slot = slot_of(s, site, what, object); s->slots[slot] != 0;)
            slot = (slot + 1) & (s->nslots - 1);
    }
    list_block(s, site >> DECODE_SITE_BITS);
    uint32_t *head = &s->tables->head[site >> DECODE_SITE_BITS];
    s->entries[s->nentries] = (struct entry){
        .count = count, .site = site, .what = what, .object = object, .next = *head, .slot = slot};
    s->slots[slot] = *head = ++s->nentries;
    return 0;
}

static inline int add(struct sites *s, uint32_t site, uint32_t what, uint32_t object, uint64_t count)
{
    uint32_t slot = slot_of(s, site, what, object);
    for (; s->slots[slot] != 0; slot = (slot + 1) & (s->nslots - 1)) {
        struct entry *e = &s->entries[s->slots[slot] - 1];
        if (e->site == site && e->what == what && e->object == object) {
            e->count += count;
            return 0;
        }
    }
    return add_entry(s, slot, site, what, object, count);
}

static int add_pending(struct sites *s)
{
    int status = 0;
    for (uint32_t i = 0; i < s->npending; i++) {
        uint32_t number = s->slots[s->pending[i].slot];
        if (number != 0)
            __builtin_prefetch(&s->entries[number - 1], 1);
    }
    for (uint32_t i = 0; i < s->npending; i++) {
        const struct pending *p = &s->pending[i];
        status |= add(s, p->site, p->what, p->object, p->count);
    }
    s->npending = 0;
    return status;
}

/* As `add`, after some others; add_pending ends the series. */
static inline int add_soon(struct sites *s, uint32_t site, uint32_t what, uint32_t object, uint64_t count)
{
    uint32_t slot = slot_of(s, site, what, object);
    int status = s->npending == PENDING ? add_pending(s) : 0;
    __builtin_prefetch(&s->slots[slot]);
    s->pending[s->npending++] = (struct pending){count, site, what, object, slot};
    return status;
}

static void count_more(void *ctx, uint32_t site, uint64_t touches)
{
    struct sites *s = ctx;
    s->failed |= add(s, site, SITE_COUNT_MORE, 0, touches) < 0;
}

/* --- which touches are attributed to their objects --- */

/* The touch of line number `at` of a batch. when: its place among all touches, that of the first touch of
 * line number i being 2 i + 1. Repetitions of string instructions come in between, at even places. */
struct sample {
    size_t at, when;
};

struct sampling {
    const struct process_touches *touches;
    const uint32_t *line_sites;
    struct objects *objects; /* NULL: nothing is sampled */
    size_t piece;            /* even: lines up to a repetition or the end; odd: a repetition */
    struct sample samples[PENDING];
    size_t taken, n; /* of samples */
};

/* The next one. Zero: there are no more in the batch. */
static int draw_sample(struct sites *s, struct sampling *from, struct sample *sample)
{
    const struct process_touches *t = from->touches;
    for (; from->piece <= 2 * t->nrepeats; from->piece++) {
        size_t i = from->piece / 2, begin = i > 0 ? t->repeats[i - 1].at : 0;
        uint64_t n = (i < t->nrepeats ? t->repeats[i].at : t->n) - begin;
        if (from->piece % 2 == 1)
            n = t->repeats[i].lines * t->repeats[i].times;
        if (s->ahead >= n) {
            s->ahead -= n;
            continue;
        }
        *sample = (struct sample){begin + s->ahead, 2 * (begin + s->ahead) + 1};
        if (from->piece % 2 == 1)
            *sample = (struct sample){t->repeats[i].at - t->repeats[i].lines + s->ahead % t->repeats[i].lines,
                                      2 * (size_t)t->repeats[i].at};
        s->ahead += 1 + random_below(&s->random, 2 * COLLECT_OBJECT_EVERY - 1);
        return 1;
    }
    return 0;
}

static void draw_samples(struct sites *s, struct sampling *from)
{
    from->taken = 0;
    for (from->n = 0; from->n < PENDING && draw_sample(s, from, &from->samples[from->n]); from->n++) {
        __builtin_prefetch(&from->touches->lines[from->samples[from->n].at]);
        __builtin_prefetch(&from->line_sites[from->samples[from->n].at]);
    }
    for (size_t i = 0; i < from->n; i++)
        objects_fetch(from->objects, from->touches->lines[from->samples[i].at]);
}

/* Attributes those before a place to their objects, which may change there. */
static int sample_until(struct sites *s, struct sampling *from, size_t when)
{
    int status = 0;
    if (from->objects == NULL)
        return 0;
    for (;;) {
        if (from->taken == from->n)
            draw_samples(s, from);
        if (from->n == 0 || from->samples[from->taken].when >= when)
            return status;
        size_t at = from->samples[from->taken++].at;
        uint32_t site = decode_touch_site(from->line_sites[at]),
                 part = decode_touch_part(from->line_sites[at]);
        uint32_t object = objects_find(from->objects, from->touches->lines[at], part, site);
        status |= add_soon(s, site, SITE_COUNT_OBJECT, object, COLLECT_OBJECT_EVERY);
    }
}

/* --- touches at large distances --- */

void sites_note_causes(struct sites *s, struct sampled_table *causes, uint64_t process)
{
    s->causes = causes;
    s->process = process;
}

/* A reuse at that distance is sampled: something was touched in between. */
static void sample_cause(struct sites *s, uint64_t line, struct epochs_touch touch, uint64_t distance)
{
    struct symbols_cause cause = {.process = s->process,
                                  .victim_site = touch.site,
                                  .victim_object = touch.object,
                                  .bin = octaves_bin(distance)};
    struct epochs_touch between;
    if (epochs_draw(s->epochs, line, distance, &s->random, &between) < 0)
        return;
    cause.site = between.site;
    cause.object = between.object;
    sampled_table_add(s->causes, &cause, s->cause_every);
}

/* How many events at that distance the next one represents; 0: it is not counted. */
static inline uint64_t represented_by(struct sites *s, uint64_t distance, int own)
{
    if (s->near_every <= 1 || distance >= COLLECT_NEAR_LINES)
        return 1;
    if (s->near_ahead[own]-- != 0)
        return 0;
    s->near_ahead[own] = (uint32_t)random_below(&s->random, 2 * s->near_every - 1);
    return s->near_every;
}

static inline struct epochs_touch find_touch(const struct process_touches *touches,
                                             const uint32_t *line_sites, size_t at, struct objects *objects)
{
    struct epochs_touch touch = {.site = decode_touch_site(line_sites[at])};
    if (objects != NULL)
        touch.object =
            objects_find(objects, touches->lines[at], decode_touch_part(line_sites[at]), touch.site);
    return touch;
}

/* Of a line on a stack: which function's frame it is in. */
static void note_frame(const struct process_touches *touches, const uint32_t *line_sites, size_t at,
                       struct objects *objects, struct call_paths *paths)
{
    call_paths_note_frame(paths, objects_frames(objects), at, decode_touch_site(line_sites[at]),
                          objects_address(objects, touches->lines[at], decode_touch_part(line_sites[at])));
}

static int is_same_bin(uint64_t a, uint64_t b)
{
    return a == b || (a != STACKDIST_COLD && b != STACKDIST_COLD && octaves_bin(a) == octaves_bin(b));
}

/* Counts the touches that are far in the thread's own stack, but not in the same bin of the process'. */
static int take_own(struct sites *s, const struct process_touches *touches, const uint32_t *line_sites,
                    const struct stackdist_far *far, const struct stackdist_far *own, struct objects *objects)
{
    int status = 0;
    for (size_t i = 0, k = 0; k < own->n; k++) {
        while (i < far->n && far->at[i] < own->at[k])
            i++;
        if (i < far->n && far->at[i] == own->at[k] && is_same_bin(far->stack[i], own->stack[k]))
            continue;
        uint64_t represented = represented_by(s, own->stack[k], 1);
        if (represented == 0)
            continue;
        struct epochs_touch touch = find_touch(touches, line_sites, own->at[k], objects);
        uint32_t what = own->stack[k] == STACKDIST_COLD ? SITE_COUNT_OWN_FIRST
                                                        : SITE_COUNT_OWN + octaves_bin(own->stack[k]);
        status |= add_soon(s, touch.site, what, touch.object, represented);
    }
    return status;
}

/* Whether far->at[i] is in the same bin in the thread's own stack; *k: where to look from. */
static int is_own(const struct stackdist_far *far, size_t i, const struct stackdist_far *own, size_t *k)
{
    while (*k < own->n && own->at[*k] < far->at[i])
        ++*k;
    return *k < own->n && own->at[*k] == far->at[i] && is_same_bin(far->stack[i], own->stack[*k]);
}

int sites_take(struct sites *s, const struct process_touches *touches, const uint32_t *line_sites,
               const struct stackdist_far *far, const struct stackdist_far *own, struct objects *objects,
               struct call_paths *paths)
{
    struct sampling sampling = {.touches = touches, .line_sites = line_sites, .objects = objects};
    int status = 0;
    if (own != NULL)
        status |= take_own(s, touches, line_sites, far, own, objects);
    for (size_t i = 0, k = 0; i < far->n; i++) {
        int first = far->stack[i] == STACKDIST_COLD;
        uint64_t represented = represented_by(s, far->stack[i], 0);
        if (represented == 0)
            continue;
        uint64_t line = touches->lines[far->at[i]];
        status |= sample_until(s, &sampling, 2 * (size_t)far->at[i] + 1);
        if (objects != NULL && paths != NULL && objects_is_on_stack(objects, line))
            note_frame(touches, line_sites, far->at[i], objects, paths);
        struct epochs_touch touch = find_touch(touches, line_sites, far->at[i], objects);
        uint32_t what =
            first ? SITE_COUNT_FIRST + octaves_bin(s->lines) : SITE_COUNT_STACK + octaves_bin(far->stack[i]);
        int shared = own != NULL && !first && !is_own(far, i, own, &k);
        s->lines += (unsigned)first;
        status |= add_soon(s, touch.site, shared ? what - SITE_COUNT_STACK + SITE_COUNT_SHARED : what,
                           touch.object, represented);
        if (paths != NULL)
            call_paths_touch(paths, far->at[i], s->process, touch.site, what, represented);
        if (s->causes == NULL)
            continue;
        s->reuses_ahead -= (int64_t)represented;
        if (s->reuses_ahead < 0) {
            if (!first)
                sample_cause(s, line, touch, far->stack[i]);
            if (++s->ncauses == COLLECT_SAMPLES_THINNED) {
                s->cause_every *= 2;
                s->ncauses = 0;
            }
            s->reuses_ahead += 1 + (int64_t)random_below(&s->random, 2 * s->cause_every - 1);
        }
        epochs_add(s->epochs, line, touch);
    }
    status |= sample_until(s, &sampling, SIZE_MAX);
    status |= add_pending(s);
    return status < 0 ? -ENOMEM : 0;
}

static uint32_t tail_bin(uint64_t lines)
{
    uint32_t bin = octaves_bin(lines);
    return bin < SITE_COUNT_TAIL_BINS ? bin : SITE_COUNT_TAIL_BINS - 1;
}

int sites_take_tail(struct sites *s, const struct sites_tail_touch *touch)
{
    uint32_t what = touch->in_burst ? SITE_COUNT_TAIL_REUSE : SITE_COUNT_TAIL_FIRST;
    int status = add(s, touch->site, SITE_COUNT_TAIL_ENTRY + tail_bin(touch->entry), touch->object,
                     touch->represented);
    status |= add(s, touch->site, what + tail_bin(touch->distance), touch->object, touch->represented);
    return status;
}

void sites_next_buffer(struct sites *s)
{
    for (size_t i = 0; i < s->noted.nexecuted; i++) {
        uint32_t block = s->noted.executed[i];
        list_block(s, block);
        s->tables->before[block] += s->noted.executions[block];
        s->noted.executions[block] = 0;
    }
    s->noted.nexecuted = 0;
}

static void forget_counts(struct sites *s)
{
    for (size_t i = 0; i < s->noted.nexecuted; i++)
        s->noted.executions[s->noted.executed[i]] = 0;
    for (size_t i = 0; i < s->nlisted; i++) {
        s->tables->head[s->tables->listed[i]] = 0;
        s->tables->before[s->tables->listed[i]] = 0;
    }
    for (uint32_t i = 0; i < s->nentries; i++)
        s->slots[s->entries[i].slot] = 0;
    s->noted.nexecuted = s->nlisted = 0;
    s->nentries = 0;
    s->failed = 0;
}

void sites_forget(struct sites *s)
{
    forget_counts(s);
    s->lines = 0;
    epochs_reset(s->epochs);
}

static int make_room(struct sites *s)
{
    /* Each block has a head of three numbers, each entry four. */
    size_t most = 4 * LEB128_MOST * (s->noted.nexecuted + s->nlisted + s->nentries + (size_t)1);
    if (most <= s->bytes_capacity)
        return 0;
    free(s->bytes);
    s->bytes = malloc(2 * most);
    s->bytes_capacity = s->bytes != NULL ? 2 * most : 0;
    return s->bytes != NULL ? 0 : -ENOMEM;
}

/* Writes a block and its entries, after block `previous`. Returns the end of the bytes. */
static size_t put_block(struct sites *s, uint32_t block, uint32_t previous, size_t at)
{
    uint64_t executions = s->tables->executions[block] + s->tables->before[block], n = 0;
    for (uint32_t i = s->tables->head[block]; i != 0; i = s->entries[i - 1].next)
        n++;
    at += leb128_put(s->bytes + at, zigzag((int64_t)block - (int64_t)previous));
    at += leb128_put(s->bytes + at, executions);
    at += leb128_put(s->bytes + at, n);
    for (uint32_t i = s->tables->head[block]; i != 0; i = s->entries[i - 1].next) {
        const struct entry *e = &s->entries[i - 1];
        at += leb128_put(s->bytes + at, e->site & ((1u << DECODE_SITE_BITS) - 1));
        at += leb128_put(s->bytes + at, e->what);
        at += leb128_put(s->bytes + at, e->object);
        at += leb128_put(s->bytes + at, e->count);
    }
    s->tables->head[block] = 0;
    s->tables->before[block] = 0;
    return at;
}

int sites_part(struct sites *s, uint8_t *used, uint32_t *previous, uint64_t *nblocks, const uint8_t **bytes,
               size_t *size)
{
    if (s->failed || make_room(s) < 0)
        return -ENOMEM;
    size_t at = 0;
    for (size_t i = 0; i < s->noted.nexecuted + s->nlisted; i++) {
        int listed = i >= s->noted.nexecuted;
        uint32_t block = listed ? s->tables->listed[i - s->noted.nexecuted] : s->noted.executed[i];
        if (listed && !is_listed(s, block))
            continue; /* written with its executions */
        at = put_block(s, block, *previous, at);
        used[block / 8] |= (uint8_t)(1u << block % 8);
        *previous = block;
        ++*nblocks;
    }
    forget_counts(s);
    *bytes = s->bytes;
    *size = at;
    return 0;
}

int sites_end(struct sites *s, uint8_t *used, const uint8_t **bytes, size_t *size)
{
    uint32_t previous = 0;
    uint64_t nblocks = 0;
    int status = sites_part(s, used, &previous, &nblocks, bytes, size);
    if (status == 0)
        sites_forget(s);
    return status;
}
