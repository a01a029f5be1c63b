/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects.c - the data object of a line.
 *
 * Three facts about an address are used: the mapping that contains it (/proc/PID/maps), whether it is in the
 * segments of an ELF file whose code is mapped (wire_proc.module), and what the agent reported (heap.h).
 * Variables are found by the latter, since the zeroed part of a data segment has no name among the mappings.
 * Mappings change, so a mapping is looked up again in each buffer that touches it. If the process has ended,
 * the last answer is used.
 *
 * A page that is completely in one object is remembered until the next buffer.
 */
#include "collect/objects/objects.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock-ns.h"
#include "base/pages.h"
#include "base/random.h"
#include "collect/objects/heap.h"
#include "collect/objects/vma.h"
#include "collect/tunables.h"

/* Entries of the tables below, which are direct-mapped. */
#define PAGES 4096u
#define LINES 8192u
#define SITES 16384u
#define PAGE_SHIFT 12u
#define RECENT 16u /* in no order */
#define MOST_AREAS 65536u
#define MOST_THREADS 1024u
/* glibc's thread descriptor, from the FS base on, is at the end of a thread's stack. Size of it, and of what
 * may lie below. */
#define TCB_BYTES 2304u
#define TLS_BYTES 4096u

struct page {
    uint64_t number;
    uint32_t buffer;      /* in which this was determined */
    uint32_t id;          /* 0: parts of it are in different objects */
    float weight;         /* of a block: blocks that it represents */
    int is_zone, is_heap; /* see struct extent; id is that of the zone */
};

/* What is known of a line, or of a part of one, in this buffer. Direct-mapped. */
struct line {
    uint64_t number;
    uint32_t part; /* OBJECTS_WHOLE_LINE: of all */
    uint32_t buffer;
    uint32_t id;
    float weight;  /* of a block, see struct page */
    int is_shared; /* by several objects or blocks */
};

/* The object to which a site's touches of unknown blocks are attributed. */
struct site_object {
    uint32_t site, id; /* 0: empty */
    float most;        /* the largest weight so far */
};

struct area {
    struct vma vma;
    uint32_t buffer;
};

struct module {
    uint64_t low, high, bias;
    char path[sizeof(((struct wire_module *)0)->path)];
    struct symbols_data *data; /* the table's */
};

struct thread_stack {
    uint32_t tid;
    uint64_t fs_base;
};

/* The surroundings of an address: an object, from low up to high. */
struct extent {
    uint64_t low, high;
    uint32_t id;     /* 0: not requested */
    uint64_t begin;  /* of a variable: it may continue from another mapping */
    int is_variable; /* or a block, and no gap between such, which is rarely touched */
    /* Blocks of the heap may be there; id is that of memory that is not in a block. */
    int is_zone, is_heap;
};
#define UNKNOWN_BLOCK (-1.f) /* as weight: a block, but it is not known which one */

struct objects {
    struct object_table *table;
    struct wire_proc *proc;
    struct heap *heap;
    uint32_t heap_id; /* of blocks that are not known; 0: not requested yet */
    uint64_t since;   /* position of the agent's reports at the start of the buffer */
    struct random_state random;
    struct vmas *vmas; /* NULL: the process may not be inspected */
    uint32_t pid;
    unsigned line_bytes, line_shift;
    uint32_t buffer;
    uint64_t refreshed_ns;
    uint64_t looked_ns;  /* objects_look_again: when; 0: never */
    struct area **areas; /* by start, without overlap */
    size_t nareas, areas_capacity;
    struct module *modules;
    uint32_t nmodules, modules_seen;
    const struct module *program; /* one of these, which has thread-local variables; NULL: none is known */
    struct thread_stack threads[MOST_THREADS];
    uint32_t nthreads;
    struct extent recent[RECENT]; /* of this buffer */
    unsigned next;                /* of recent[] */
    int numbering;                /* extents get the number of their object */
    struct page pages[PAGES];
    struct line lines[LINES];
    struct site_object sites[SITES];
};

static struct area *put_area(struct objects *o, const struct vma *vma);

/* The part of it that is known before mappings are read: the process may have ended by then. */
static void add_main_stack(struct objects *o, uint64_t top)
{
    const uint64_t page = top / WIRE_PAGE * WIRE_PAGE;
    if (page != 0 && page < UINT64_MAX - WIRE_PAGE)
        put_area(o, &(struct vma){.start = page, .end = page + WIRE_PAGE, .name = "[stack]"});
}

struct objects *objects_new(struct object_table *table, struct wire_proc *proc, uint32_t pid,
                            unsigned line_bytes, struct error *err)
{
    struct objects *o = pages_sparse_new(sizeof(*o));
    if (o != NULL)
        o->modules = calloc(WIRE_MAX_MODULES, sizeof(*o->modules));
    if (o == NULL || o->modules == NULL || (o->heap = heap_new(table, proc, err)) == NULL) {
        objects_free(o);
        error_set(err, -ENOMEM, "out of memory for the data objects of a process");
        return NULL;
    }
    o->table = table;
    o->proc = proc;
    o->pid = pid;
    o->line_bytes = line_bytes;
    o->line_shift = (unsigned)__builtin_ctz(line_bytes);
    o->vmas = vmas_new(pid);
    o->buffer = 1;
    add_main_stack(o, proc->stack_top);
    random_seed(&o->random, pid);
    return o;
}

void objects_free(struct objects *o)
{
    if (o == NULL)
        return;
    vmas_free(o->vmas);
    heap_free(o->heap);
    for (size_t i = 0; i < o->nareas; i++)
        free(o->areas[i]);
    free(o->areas);
    free(o->modules);
    pages_sparse_free(o, sizeof(*o));
}

int objects_inherit(struct objects *o, struct objects *of)
{
    return heap_inherit(o->heap, of->heap, clock_ns(CLOCK_MONOTONIC));
}

/* --- mappings --- */

/* Number of areas that end at the address or before. */
static size_t areas_before(const struct objects *o, uint64_t address)
{
    size_t low = 0, high = o->nareas;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->areas[middle]->vma.end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Replaces everything that it overlaps. NULL when memory is short. */
static struct area *put_area(struct objects *o, const struct vma *vma)
{
    size_t first = areas_before(o, vma->start), end = first;
    while (end < o->nareas && o->areas[end]->vma.start < vma->end)
        free(o->areas[end++]);
    memmove(o->areas + first, o->areas + end, (o->nareas - end) * sizeof(o->areas[0]));
    o->nareas -= end - first;
    if (o->nareas == o->areas_capacity) {
        size_t capacity = 2 * o->areas_capacity + 64;
        struct area **areas = capacity <= MOST_AREAS ? realloc(o->areas, capacity * sizeof(areas[0])) : NULL;
        if (areas == NULL)
            return NULL;
        o->areas = areas;
        o->areas_capacity = capacity;
    }
    struct area *area = malloc(sizeof(*area));
    if (area == NULL)
        return NULL;
    memmove(o->areas + first + 1, o->areas + first, (o->nareas - first) * sizeof(o->areas[0]));
    o->areas[first] = area;
    o->nareas++;
    *area = (struct area){*vma, o->buffer};
    return area;
}

static int take_vma(void *ctx, const struct vma *vma)
{
    struct objects *o = ctx;
    return put_area(o, vma) != NULL ? 0 : -1;
}

void objects_look(struct objects *o)
{
    if (o->vmas == NULL)
        return;
    vmas_refresh(o->vmas);
    vmas_each(o->vmas, take_vma, o);
}

void objects_look_again(struct objects *o)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (o->looked_ns == 0 || now - o->looked_ns > COLLECT_MAPS_NS) {
        o->looked_ns = now;
        objects_look(o);
    }
}

/* The process has ended since its mappings were read. Its main stack may have grown until then, into space
 * where nothing else was. */
static struct area *grow_stack(struct objects *o, size_t next, uint64_t address)
{
    struct area *stack = next < o->nareas ? o->areas[next] : NULL;
    if (stack == NULL || strcmp(stack->vma.name, "[stack]") != 0 ||
        stack->vma.start - address > COLLECT_STACK_GROWS)
        return NULL;
    stack->vma.start = address / WIRE_PAGE * WIRE_PAGE;
    return stack;
}

/* NULL: unknown. */
static const struct vma *find_vma(struct objects *o, uint64_t address)
{
    size_t i = areas_before(o, address);
    struct area *known = i < o->nareas && o->areas[i]->vma.start <= address ? o->areas[i] : NULL;
    struct vma vma;
    if (known == NULL || known->buffer != o->buffer) {
        int status = o->vmas != NULL ? vmas_find(o->vmas, address, &vma) : -ESRCH;
        if (status == 0)
            known = put_area(o, &vma);
        else if (known == NULL && status == -ESRCH)
            known = grow_stack(o, i, address);
    }
    if (known != NULL)
        known->buffer = o->buffer;
    return known != NULL ? &known->vma : NULL;
}

/* --- modules --- */

static uint64_t page_end(uint64_t address)
{
    return (address + WIRE_PAGE - 1) / WIRE_PAGE * WIRE_PAGE;
}

static void take_module(struct objects *o, const struct wire_module *shared)
{
    struct module *m = &o->modules[o->nmodules];
    uint64_t start = shared->start, offset = shared->file_offset, low, high, address;
    memcpy(m->path, shared->path, sizeof(m->path)); /* the target may change its own */
    m->path[sizeof(m->path) - 1] = '\0';
    m->data = object_table_data(o->table, m->path);
    if (m->data == NULL || symbols_data_address(m->data, offset, &address) != 0)
        return;
    symbols_data_span(m->data, &low, &high);
    m->bias = start - address;
    m->low = m->bias + low;
    m->high = page_end(m->bias + high); /* the dynamic loader uses the rest of its last page */
    if (m->low >= m->high)
        return;
    o->nmodules++;
    if (o->program == NULL && symbols_data_tls(m->data, &low) > 0)
        o->program = m;
}

static int is_anonymous(const struct vma *vma)
{
    return vma == NULL || vma->name[0] == '\0' || strncmp(vma->name, "[anon", 5) == 0;
}

/* Whether the mapping is the module's for certain. Either path may be truncated. */
static int is_mapping_of(const struct module *m, const struct vma *vma)
{
    return vma != NULL && strncmp(vma->name, m->path, sizeof(m->path) - 1) == 0;
}

/* The most recently loaded module at the address that may be there, or, where another file is now, may have
 * been there when the buffer was filled. NULL: none. */
static const struct module *find_module(struct objects *o, uint64_t address, const struct vma *vma)
{
    const struct module *unloaded = NULL;
    uint32_t n = __atomic_load_n(&o->proc->nmodules, __ATOMIC_ACQUIRE);
    while (o->modules_seen < n && o->modules_seen < WIRE_MAX_MODULES)
        take_module(o, &o->proc->module[o->modules_seen++]);
    for (uint32_t i = o->nmodules; i > 0; i--) {
        const struct module *m = &o->modules[i - 1];
        if (address < m->low || address >= m->high)
            continue;
        if (is_anonymous(vma) || is_mapping_of(m, vma))
            return m;
        if (unloaded == NULL && vma->name[0] == '/')
            unloaded = m;
    }
    return unloaded;
}

/* --- objects --- */

static uint32_t number(struct objects *o, enum profile_object_kind kind, const char *name, const char *module,
                       uint64_t offset, uint64_t size)
{
    if (!o->numbering)
        return 0;
    return object_table_find(
        o->table,
        &(struct profile_object){
            .kind = kind, .name = (char *)name, .module = (char *)module, .offset = offset, .size = size});
}

static void find_variable(struct objects *o, const struct module *m, uint64_t address, struct extent *extent)
{
    struct symbols_variable v;
    symbols_data_find(m->data, address - m->bias, &v);
    extent->low = v.low + m->bias > m->low ? v.low + m->bias : m->low;
    extent->high = v.high < m->high - m->bias ? v.high + m->bias : m->high;
    extent->begin = v.low + m->bias;
    extent->is_variable = v.name != NULL;
    if (v.name != NULL)
        extent->id = number(o, PROFILE_OBJECT_VARIABLE, v.name, m->path, v.low, v.high - v.low);
    else
        extent->id = number(o, PROFILE_OBJECT_SECTION, v.section, m->path, v.section_low, 0);
}

/* Whether a thread's stack, or the main thread's variables, are there: in an anonymous mapping, which may
 * continue above as another thread's stack. If not, the extent is set to the surroundings of the address
 * between these. */
static int find_thread(struct objects *o, uint64_t address, const struct vma *vma, struct extent *extent)
{
    char name[64];
    for (uint32_t i = 0; i < o->nthreads; i++) {
        const struct thread_stack *t = &o->threads[i];
        int is_main = t->tid == o->pid;
        uint64_t low = is_main ? t->fs_base - TLS_BYTES : vma->start,
                 high = is_main ? t->fs_base + TCB_BYTES : page_end(t->fs_base + TCB_BYTES);
        if (t->fs_base < vma->start || t->fs_base >= vma->end)
            continue;
        if (high <= address && high > extent->low)
            extent->low = high;
        if (low > address && low < extent->high)
            extent->high = low;
        if (address < low || address >= high)
            continue;
        /* Stacks lie side by side in one mapping if they have no guard pages. */
        for (uint32_t k = 0; k < o->nthreads; k++) {
            uint64_t end = page_end(o->threads[k].fs_base + TCB_BYTES);
            if (k != i && o->threads[k].fs_base < t->fs_base && end <= t->fs_base && end > low)
                low = end;
        }
        if (address < low)
            continue;
        snprintf(name, sizeof(name), "thread %u", t->tid);
        extent->low = low;
        extent->high = high;
        extent->id = is_main ? number(o, PROFILE_OBJECT_TLS, "main thread", "", 0, 0)
                             : number(o, PROFILE_OBJECT_STACK, name, "", 0, 0);
        return 1;
    }
    return 0;
}

/* Whether the program's thread-local data is there: a variable, or, in a stripped file, any. *place is cut to
 * that, or to what is between such. */
static int find_thread_local(struct objects *o, uint64_t address, const struct vma *vma,
                             struct extent *extent, struct heap_place *place)
{
    uint64_t below, bytes = o->program != NULL ? symbols_data_tls(o->program->data, &below) : 0;
    for (uint32_t i = 0; bytes > 0 && i < o->nthreads; i++) {
        uint64_t fs_base = o->threads[i].fs_base, begin = fs_base - below;
        struct symbols_variable v = {.low = 0, .high = bytes};
        if (fs_base < below || (vma != NULL && (fs_base < vma->start || fs_base >= vma->end)))
            continue;
        if (address < begin) {
            place->high = begin < place->high ? begin : place->high;
            continue;
        }
        if (address - begin >= bytes) {
            place->low = begin + bytes > place->low ? begin + bytes : place->low;
            continue;
        }
        symbols_data_find_tls(o->program->data, address - begin, &v);
        uint64_t low = begin + v.low, high = v.high < bytes ? begin + v.high : begin + bytes;
        place->low = low > place->low ? low : place->low;
        place->high = high < place->high ? high : place->high;
        extent->begin = low;
        extent->is_variable = v.name != NULL;
        if (v.name != NULL)
            extent->id =
                number(o, PROFILE_OBJECT_THREAD_LOCAL, v.name, o->program->path, v.low, v.high - v.low);
        else
            extent->id = number(o, PROFILE_OBJECT_SECTION, "thread-local data", o->program->path, 0, 0);
        return 1;
    }
    return 0;
}

/* Likewise, where no mapping is known: the process has ended before they were read. The address may be on the
 * stack of the thread with the next descriptor above it. */
static int find_ended_thread(struct objects *o, uint64_t address, struct extent *extent)
{
    const struct thread_stack *next = NULL;
    char name[64];
    for (uint32_t i = 0; i < o->nthreads; i++) {
        const struct thread_stack *t = &o->threads[i];
        if (address < t->fs_base + TCB_BYTES && (next == NULL || t->fs_base < next->fs_base))
            next = t;
    }
    if (next == NULL || next->tid == o->pid || next->fs_base + TCB_BYTES - address > COLLECT_THREAD_STACK)
        return 0;
    size_t above = areas_before(o, address);
    if (above < o->nareas && o->areas[above]->vma.end <= next->fs_base)
        return 0; /* another mapping lies in between */
    snprintf(name, sizeof(name), "thread %u", next->tid);
    extent->id = number(o, PROFILE_OBJECT_STACK, name, "", 0, 0);
    return 1;
}

/*
 * Whether the module was at the address when the buffer was filled; it may have been unloaded before or
 * since. A block or mapping that the agent had reported by then has taken its place. *place: the surroundings
 * for which that is so.
 */
static int has_module(struct objects *o, const struct module *m, uint64_t address, const struct vma *vma,
                      struct heap_place *place)
{
    *place = (struct heap_place){.high = UINT64_MAX};
    if (is_mapping_of(m, vma))
        return 1;
    heap_find(o->heap, address, o->since, place);
    return place->object == 0;
}

/* A file is mapped at the address. Another one, or the same under another name, may have been there when the
 * buffer was filled: that is in the agent's reports. */
static void find_file(struct objects *o, uint64_t address, struct extent *extent)
{
    struct heap_place place;
    heap_find(o->heap, address, o->since, &place);
    extent->low = place.low > extent->low ? place.low : extent->low;
    extent->high = place.high < extent->high ? place.high : extent->high;
    extent->is_zone = place.object != 0;
}

static struct extent find_extent(struct objects *o, uint64_t address)
{
    const struct vma *vma = find_vma(o, address);
    const struct module *m = find_module(o, address, vma);
    struct extent e = {.low = vma != NULL ? vma->start : address & ~(uint64_t)(WIRE_PAGE - 1)};
    struct heap_place place = {.high = UINT64_MAX};
    e.high = vma != NULL ? vma->end : e.low + WIRE_PAGE;
    if (m != NULL && has_module(o, m, address, vma, &place)) {
        struct extent v = {0};
        find_variable(o, m, address, &v);
        e.low = v.low > e.low || vma == NULL ? v.low : e.low;
        e.high = v.high < e.high || vma == NULL ? v.high : e.high;
        e.id = v.id;
        e.begin = v.begin;
        e.is_variable = v.is_variable;
    } else if (is_anonymous(vma) && find_thread_local(o, address, vma, &e, &place)) {
        ;
    } else if (vma == NULL && find_ended_thread(o, address, &e)) {
        ;
    } else if (vma == NULL) {
        e.id = number(o, PROFILE_OBJECT_UNKNOWN, "unknown", "", 0, 0);
        e.is_zone = 1;
    } else if (strcmp(vma->name, "[heap]") == 0) {
        e.id = number(o, PROFILE_OBJECT_HEAP, "heap", "", 0, 0);
        e.is_zone = e.is_heap = 1;
    } else if (strcmp(vma->name, "[stack]") == 0) {
        e.id = number(o, PROFILE_OBJECT_STACK, "main thread", "", 0, 0);
    } else if (is_anonymous(vma)) {
        if (!find_thread(o, address, vma, &e)) {
            e.id = number(o, PROFILE_OBJECT_ANONYMOUS, vma->name, "", 0, 0);
            e.is_zone = 1;
        }
    } else {
        e.id = number(o, PROFILE_OBJECT_FILE, vma->name, vma->name, 0, 0);
        find_file(o, address, &e);
    }
    e.low = place.low > e.low ? place.low : e.low;
    e.high = place.high < e.high ? place.high : e.high;
    return e;
}

static void note_thread(struct objects *o, const struct wire_desc *desc)
{
    for (uint32_t i = 0; i < o->nthreads; i++)
        if (o->threads[i].tid == desc->tid) {
            o->threads[i].fs_base = desc->fs_base;
            return;
        }
    for (uint32_t i = 0; i < o->nthreads; i++)
        if (o->threads[i].fs_base == desc->fs_base) { /* a later thread on the same stack */
            o->threads[i].tid = desc->tid;
            return;
        }
    if (o->nthreads < MOST_THREADS)
        o->threads[o->nthreads++] = (struct thread_stack){desc->tid, desc->fs_base};
}

void objects_make_room(struct objects *o)
{
    heap_make_room(o->heap, clock_ns(CLOCK_MONOTONIC));
}

void objects_buffer(struct objects *o, const struct wire_desc *desc)
{
    heap_take(o->heap, desc->heap_end, clock_ns(CLOCK_MONOTONIC));
    o->since = desc->heap_start;
    if (o->heap_id == 0) {
        o->numbering = 1;
        o->heap_id = number(o, PROFILE_OBJECT_HEAP, "heap", "", 0, 0);
        o->numbering = 0;
    }
    o->buffer++;
    memset(o->recent, 0, sizeof(o->recent));
    note_thread(o, desc);
    if (o->vmas != NULL && desc->end_ns - o->refreshed_ns > COLLECT_MAPS_NS) {
        vmas_refresh(o->vmas);
        o->refreshed_ns = desc->end_ns;
    }
}

static struct extent *extent_of(struct objects *o, uint64_t address)
{
    for (unsigned i = 0; i < RECENT; i++)
        if (address >= o->recent[i].low && address < o->recent[i].high)
            return &o->recent[i];
    struct extent *e = &o->recent[o->next++ % RECENT];
    *e = find_extent(o, address);
    return e;
}

/* With its object's number. */
static struct extent *numbered(struct objects *o, struct extent *e, uint64_t address)
{
    if (e->id == 0) {
        o->numbering = 1;
        *e = find_extent(o, address);
        o->numbering = 0;
    }
    return e;
}

/* The variable that has most of a line or part, or otherwise the object that has most of it. Only this one
 * gets a number. */
static const struct extent *extent_of_most(struct objects *o, uint64_t low, uint64_t bytes_of_all,
                                           int *is_shared)
{
    uint64_t high = low + bytes_of_all, most = 0, best = low;
    for (uint64_t at = low; at < high;) {
        const struct extent *e = extent_of(o, at);
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
    return numbered(o, extent_of(o, best), best);
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
        heap_find(o->heap, at, o->since, &here);
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
    if (e->is_zone)
        heap_find(o->heap, address, o->since, &place);
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
    struct extent zone = {.id = p->id, .is_zone = p->is_zone, .is_heap = p->is_heap};
    l->buffer = o->buffer;
    l->id = p->id;
    l->weight = p->weight;
    l->is_shared = 0;
    if (p->id == 0) { /* there is more than one in the page */
        zone = *extent_of_most(o, address, bytes, &l->is_shared);
        l->id = zone.id;
    }
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

uint32_t objects_find(struct objects *o, uint64_t line, unsigned part, uint32_t site)
{
    const struct line *l = known(o, line, OBJECTS_WHOLE_LINE);
    if (l->is_shared && part != OBJECTS_WHOLE_LINE)
        l = known(o, line, part);
    if (l->weight > 0)
        remember(o, site, l->id, l->weight);
    return l->weight >= 0 ? l->id : recall(o, site, l->id);
}

uint32_t objects_find_at(struct objects *o, uint64_t address, uint32_t site)
{
    const struct extent *e = numbered(o, extent_of(o, address), address);
    struct heap_place place = {0};
    if (e->is_variable)
        return e->id;
    if (e->is_zone)
        heap_find(o->heap, address, o->since, &place);
    return place.weight > 0
               ? place.object
               : objects_find(o, address >> o->line_shift, objects_part(address, o->line_shift), site);
}

int objects_offset(struct objects *o, uint64_t address, uint32_t object, uint64_t *offset)
{
    const struct extent *e = numbered(o, extent_of(o, address), address);
    uint64_t low = e->begin;
    int found = e->is_variable && e->id == object;
    if (e->is_zone) {
        struct heap_place place;
        heap_find(o->heap, address, o->since, &place);
        low = place.begin;
        found = place.object == object && place.object != 0;
    }
    *offset = address - low;
    return found ? 0 : -1;
}
