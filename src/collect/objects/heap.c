/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c - takes reports of allocations from the agent.
 *
 * The call path of an allocation is found in the piece of the stack that the report holds (callers.h).
 * Functions of the C and C++ libraries that allocate for others are left out at the beginning of the path.
 *
 * A block or mapping whose end was reported stays known until another one is reported there, for the buffers
 * of records that were filled before.
 */
#include "collect/objects/heap.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/pages.h"
#include "collect/objects/callers.h"
#include "collect/tunables.h"

#define PATHS 16384u /* a power of two */
/* Callers that are looked at, and those that distinguish allocations: more if these are all of a standard
 * library, as in code that is not optimized, up to the first one that is not. */
#define MOST_FRAMES 24u
#define PATH_FRAMES 4u
#define MOST_PATH 16u
/* An address without a known block, with one of at most SMALL_BYTES within NEAR_BYTES, is taken to be in a
 * block that was not sampled. */
#define NEAR_BYTES (UINT64_C(1) << 20)
#define SMALL_BYTES (UINT64_C(128) << 10)
/* In a gap between known blocks of so many sampling intervals there are no others: of blocks that fill it,
 * one would have been sampled, but for a chance of exp(-30). Such memory is handed out by another allocator:
 * one in the program, or one whose functions are not seen, as `operator new` of a library that brings malloc,
 * too. */
#define GAP_INTERVALS 30.

struct path {
    uint64_t hash;
    uint32_t object;
};

struct heap {
    struct object_table *table;
    struct wire_proc *proc;
    struct blocks *blocks, *maps;
    struct callers *callers;
    uint64_t counted_ns, counted; /* start of the period in which reports are counted; their number */
    uint32_t live;
    int incomplete; /* blocks of some sample are not known, as there was no room for them */
    struct path paths[PATHS];
};

struct heap *heap_new(struct object_table *table, struct wire_proc *proc, struct error *err)
{
    struct heap *h = pages_sparse_new(sizeof(*h));
    if (h != NULL) {
        h->blocks = blocks_new();
        h->maps = blocks_new();
        h->callers = callers_new(table, proc->module, &proc->nmodules);
    }
    if (h == NULL || h->blocks == NULL || h->maps == NULL || h->callers == NULL) {
        heap_free(h);
        error_set(err, -ENOMEM, "out of memory for the allocations of a process");
        return NULL;
    }
    h->table = table;
    h->proc = proc;
    return h;
}

void heap_free(struct heap *h)
{
    if (h == NULL)
        return;
    blocks_free(h->blocks);
    blocks_free(h->maps);
    callers_free(h->callers);
    pages_sparse_free(h, sizeof(*h));
}

/* --- call paths --- */

/* One report. */
struct report {
    uint64_t kind, address, bytes, interval;
    uint64_t sp, rbp, pc;
    uint64_t stack[WIRE_HEAP_STACK_WORDS];
};

/* Whether a path says enough of where it allocates. */
static int is_long(struct heap *h, const uint64_t *path, unsigned n)
{
    if (n < PATH_FRAMES || n == MOST_PATH)
        return n == MOST_PATH;
    for (unsigned i = 0; i < n; i++)
        if (!callers_is_inner(h->callers, path[i]))
            return 1;
    return 0;
}

/* Return addresses from the allocation on, each once, without the libraries that come first: if there is
 * nothing else, the first of them. */
static unsigned find_path(struct heap *h, const struct report *r, uint64_t path[MOST_PATH])
{
    const struct callers_stack stack = {r->sp, WIRE_HEAP_STACK_WORDS, r->stack};
    struct callers_frame frame = {.pc = r->pc, .sp = r->sp, .rbp = r->rbp};
    unsigned n = 0;
    int outside = 0;
    for (unsigned frames = 0; frames < MOST_FRAMES && !is_long(h, path, n); frames++) {
        int again = n > 0 && !outside;
        if (!outside && !callers_place(h->callers, frame.pc).library) {
            outside = 1;
            again = 0;
            n = 0;
        }
        for (unsigned i = 0; i < n; i++)
            again |= path[i] == frame.pc;
        if (!again)
            path[n++] = frame.pc;
        if (callers_next(h->callers, &stack, &frame) < 0)
            break;
    }
    return n;
}

/* The object's name until the end of the recording: the file and the offset in it of each call. */
static uint32_t make_object(struct heap *h, const uint64_t *path, unsigned n)
{
    char name[MOST_PATH * 32] = "";
    size_t used = 0;
    for (unsigned i = 0; i < n; i++) {
        struct callers_place place = callers_place(h->callers, path[i]);
        used += (size_t)snprintf(name + used, sizeof(name) - used, "%s%x+%llx", i > 0 ? " " : "", place.file,
                                 (unsigned long long)place.offset);
    }
    return object_table_find(
        h->table, &(struct profile_object){.kind = PROFILE_OBJECT_BLOCK, .name = name, .module = (char *)""});
}

static uint32_t object_of(struct heap *h, const struct report *r)
{
    uint64_t path[MOST_PATH], hash = 1;
    unsigned n = find_path(h, r, path);
    for (unsigned i = 0; i < n; i++)
        hash = (hash ^ path[i]) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
    struct path *known = &h->paths[(hash >> 32) % PATHS];
    if (known->hash != hash || known->object == 0)
        *known = (struct path){hash, make_object(h, path, n)};
    return known->object;
}

/* --- reports --- */

/* Removes all blocks that overlap the range. */
static void clear_blocks(struct heap *h, uint64_t low, uint64_t high)
{
    struct block_span *b;
    while ((b = blocks_at(h->blocks, high - 1, NULL)) != NULL && b->high > low) {
        h->live -= b->ended == 0;
        blocks_remove(h->blocks, b->low);
    }
}

/* Ends the mappings in the range, at a position; 0: removes them. What is outside of it remains. */
static void clear_maps(struct heap *h, uint64_t low, uint64_t high, uint64_t position)
{
    struct block_span *b;
    for (uint64_t end = high;
         end > low && (b = blocks_at(h->maps, end - 1, NULL)) != NULL && b->high > low;) {
        struct block_span below = *b, within = *b, above = *b;
        blocks_remove(h->maps, b->low);
        below.high = within.low = below.low < low ? low : below.low;
        above.low = within.high = above.high > high ? high : above.high;
        within.ended = within.ended != 0 ? within.ended : position;
        if (below.low < below.high)
            blocks_put(h->maps, &below);
        if (position != 0)
            blocks_put(h->maps, &within);
        if (above.low < above.high)
            blocks_put(h->maps, &above);
        end = within.low;
    }
}

static uint32_t object_of_file(struct heap *h, const char *name)
{
    char *file = (char *)name;
    return object_table_find(
        h->table, &(struct profile_object){.kind = PROFILE_OBJECT_FILE, .name = file, .module = file});
}

/* Whether the agent reports no more blocks with an address like that, as it could not note them. */
static int is_set_full(const struct heap *h, uint64_t address)
{
    const uint64_t *set = h->proc->heap.known[wire_heap_filter(address) % WIRE_HEAP_SETS];
    unsigned used = 0;
    while (used < WIRE_HEAP_WAYS && __atomic_load_n(&set[used], __ATOMIC_RELAXED) != 0)
        used++;
    return used == WIRE_HEAP_WAYS;
}

static void take_report(struct heap *h, const struct report *r, uint64_t position)
{
    uint64_t high = r->address + (r->bytes > 0 ? r->bytes : 1);
    struct block_span *b;
    if (r->kind != WIRE_HEAP_FREE && high <= r->address)
        return;
    switch (r->kind) {
    case WIRE_HEAP_BLOCK: {
        double chance = r->interval > 0 ? -expm1(-(double)(r->bytes + 1) / (double)r->interval) : 1;
        clear_blocks(h, r->address, high);
        struct block_span span = {r->address, high, object_of(h, r), (float)(1 / chance), 0};
        object_table_block(h->table, span.object, r->bytes);
        if (span.object != 0 && blocks_put(h->blocks, &span) == 0)
            h->live++;
        else
            h->incomplete = 1;
        h->incomplete |= is_set_full(h, r->address);
        break;
    }
    case WIRE_HEAP_MAP:
    case WIRE_HEAP_FILE: {
        char name[sizeof(r->stack) + 1] = "";
        memcpy(name, r->stack, sizeof(r->stack));
        struct block_span span = {.low = r->address, .high = high, .weight = 1};
        span.object = r->kind == WIRE_HEAP_MAP ? object_of(h, r) : object_of_file(h, name);
        clear_blocks(h, r->address, high);
        clear_maps(h, r->address, high, 0);
        if (span.object != 0)
            blocks_put(h->maps, &span);
        break;
    }
    case WIRE_HEAP_FREE:
        b = blocks_at(h->blocks, r->address, NULL);
        if (b != NULL && b->low == r->address && b->ended == 0) {
            b->ended = position;
            h->live--;
        }
        break;
    default:
        clear_blocks(h, r->address, high);
        clear_maps(h, r->address, high, position);
    }
}

/* Keeps the number of reports per second near COLLECT_HEAP_REPORTS, and the number of blocks small. */
static void set_interval(struct heap *h, uint64_t now_ns)
{
    uint64_t interval = h->proc->heap.interval, ns = now_ns - h->counted_ns;
    if (interval < WIRE_HEAP_FIRST_INTERVAL || interval > WIRE_HEAP_MOST_INTERVAL)
        interval = WIRE_HEAP_FIRST_INTERVAL;
    double most = (double)ns * 1e-9 * COLLECT_HEAP_REPORTS;
    int many = (double)h->counted > most + COLLECT_HEAP_REPORTS / 4. || h->live > COLLECT_BLOCKS / 16;
    if (many && interval < WIRE_HEAP_MOST_INTERVAL)
        interval *= 2;
    else if (ns < COLLECT_HEAP_NS)
        return;
    else if ((double)h->counted < most / 8 && interval > WIRE_HEAP_FIRST_INTERVAL)
        interval /= 2;
    __atomic_store_n(&h->proc->heap.interval, interval, __ATOMIC_RELAXED);
    h->counted_ns = now_ns;
    h->counted = 0;
}

void heap_make_room(struct heap *h, uint64_t now_ns)
{
    uint64_t head = __atomic_load_n(&h->proc->heap.head, __ATOMIC_ACQUIRE);
    if (head - h->proc->heap.tail > WIRE_HEAP_WORDS / 2)
        heap_take(h, head - WIRE_HEAP_WORDS / 2, now_ns);
}

void heap_take(struct heap *h, uint64_t until, uint64_t now_ns)
{
    struct wire_heap *shared = &h->proc->heap;
    uint64_t tail = shared->tail, head = __atomic_load_n(&shared->head, __ATOMIC_ACQUIRE);
    for (uint64_t most = 0; tail != head && tail < until && most < WIRE_HEAP_WORDS;) {
        uint64_t first = __atomic_load_n(&shared->ring[tail % WIRE_HEAP_WORDS], __ATOMIC_ACQUIRE);
        uint64_t kind = first & ((1u << WIRE_HEAP_KIND_BITS) - 1), n = first >> WIRE_HEAP_KIND_BITS;
        uint64_t words[WIRE_HEAP_BLOCK_WORDS] = {0};
        if (kind == WIRE_HEAP_NONE || n < 3 || n > WIRE_HEAP_BLOCK_WORDS)
            break; /* not written yet; or it was overwritten by the target, and no more will come */
        for (uint64_t i = 0; i < n; i++) {
            words[i] = shared->ring[(tail + i) % WIRE_HEAP_WORDS];
            shared->ring[(tail + i) % WIRE_HEAP_WORDS] = 0;
        }
        struct report report = {kind,     words[1], words[2], kind == WIRE_HEAP_BLOCK ? words[3] : 0,
                                words[4], words[5], words[6], {0}};
        memcpy(report.stack, words + WIRE_HEAP_HEAD_WORDS, sizeof(report.stack));
        if (n == WIRE_HEAP_BLOCK_WORDS || kind == WIRE_HEAP_FREE || kind == WIRE_HEAP_UNMAP)
            take_report(h, &report, tail + 1);
        tail += n;
        most += n;
        h->counted += n == WIRE_HEAP_BLOCK_WORDS ? 1 : 0;
        __atomic_store_n(&shared->tail, tail, __ATOMIC_RELEASE);
    }
    set_interval(h, now_ns);
}

int heap_inherit(struct heap *h, struct heap *of, uint64_t now_ns)
{
    heap_take(of, UINT64_MAX, now_ns);
    h->live = of->live;
    return blocks_copy(h->blocks, of->blocks) < 0 || blocks_copy(h->maps, of->maps) < 0 ? -ENOMEM : 0;
}

/* --- look-up --- */

static int is_near(const struct block_span *b, uint64_t address)
{
    uint64_t distance = b->low <= address ? address - b->low : b->low - address;
    return distance < NEAR_BYTES && b->high - b->low < SMALL_BYTES;
}

/* At least the sampling interval with which the block was reported. */
static double interval_of(const struct block_span *b)
{
    return b != NULL ? (double)b->weight * (double)(b->high - b->low + 1) : 0;
}

/* Whether blocks that begin between these two would be known; NULL: there is none on that side. */
static int would_be_known(const struct heap *h, const struct block_span *below,
                          const struct block_span *above)
{
    double gap =
        (double)(above != NULL ? above->low : UINT64_MAX) - (double)(below != NULL ? below->high : 0);
    double interval = (double)h->proc->heap.interval;
    interval = fmax(interval, fmax(interval_of(below), interval_of(above)));
    return !h->incomplete && __atomic_load_n(&h->proc->heap.lost, __ATOMIC_RELAXED) == 0 &&
           gap > GAP_INTERVALS * fmax(interval, WIRE_HEAP_FIRST_INTERVAL);
}

void heap_find(struct heap *h, uint64_t address, uint64_t since, struct heap_place *place)
{
    const struct block_span *above, *next, *b = blocks_at(h->blocks, address, &above);
    *place = (struct heap_place){.low = 0, .high = above != NULL ? above->low : UINT64_MAX};
    if (b != NULL && address < b->high) {
        place->low = b->low;
        place->high = b->high;
        if (b->ended == 0 || b->ended > since) {
            place->object = b->object;
            place->begin = b->low;
            place->weight = b->weight;
            return;
        }
    } else if (b != NULL) {
        place->low = b->high;
    }
    const struct block_span *map = blocks_at(h->maps, address, &next);
    int inside = map != NULL && address < map->high;
    int mapped = inside && (map->ended == 0 || map->ended > since);
    uint64_t low = map == NULL ? 0
                   : inside    ? map->low
                               : map->high,
             high = inside         ? map->high
                    : next != NULL ? next->low
                                   : UINT64_MAX;
    /* In a mapping, what is near must be in it, too. */
    place->near_blocks = (b != NULL && is_near(b, address) && (!mapped || b->low >= low)) ||
                         (above != NULL && is_near(above, address) && (!mapped || above->low < high));
    if ((b == NULL || address >= b->high) && would_be_known(h, b, above)) {
        place->no_block = 1;
        place->near_blocks = 0;
    }
    place->low = low > place->low ? low : place->low;
    place->high = high < place->high ? high : place->high;
    if (mapped && !place->near_blocks) {
        place->object = map->object;
        place->begin = map->low;
    }
}
