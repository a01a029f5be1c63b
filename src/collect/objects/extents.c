/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extents.c - what is at an address: the object there, and from where to where that is so.
 *
 * Three facts are used: the mapping that contains the address (areas.h), whether it is in the segments of an
 * ELF file whose code is mapped (wire_proc.module), and what the agent reported (heap.h). Variables are found
 * by the second, since the zeroed part of a data segment has no name among the mappings. Of anonymous
 * mappings, those that hold a thread's descriptor are its stack.
 */
#include "collect/objects/extents.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collect/tunables.h"

/* glibc's thread descriptor, from the FS base on, is at the end of a thread's stack. Size of it, and of what
 * may lie below. */
#define TCB_BYTES 2304u
#define TLS_BYTES 4096u

struct module {
    uint64_t low, high, bias;
    char path[sizeof(((struct wire_module *)0)->path)];
    struct symbols_data *data; /* the table's */
};

int extents_init(struct extents *x, struct object_table *table, struct wire_proc *proc, struct heap *heap,
                 uint32_t pid)
{
    x->table = table;
    x->proc = proc;
    x->heap = heap;
    x->pid = pid;
    areas_init(&x->areas, pid, proc->stack_top);
    x->modules = calloc(WIRE_MAX_MODULES, sizeof(*x->modules));
    return x->modules != NULL ? 0 : -ENOMEM;
}

void extents_clear(struct extents *x)
{
    areas_clear(&x->areas);
    free(x->modules);
}

static uint64_t page_end(uint64_t address)
{
    return (address + WIRE_PAGE - 1) / WIRE_PAGE * WIRE_PAGE;
}

static void take_module(struct extents *x, const struct wire_module *shared)
{
    struct module *m = &x->modules[x->nmodules];
    uint64_t start = shared->start, offset = shared->file_offset, low, high, address;
    memcpy(m->path, shared->path, sizeof(m->path)); /* the target may change its own */
    m->path[sizeof(m->path) - 1] = '\0';
    m->data = object_table_data(x->table, m->path);
    if (m->data == NULL || symbols_data_address(m->data, offset, &address) != 0)
        return;
    symbols_data_span(m->data, &low, &high);
    m->bias = start - address;
    m->low = m->bias + low;
    m->high = page_end(m->bias + high); /* the dynamic loader uses the rest of its last page */
    if (m->low >= m->high)
        return;
    x->nmodules++;
    if (x->program == NULL && symbols_data_tls(m->data, &low) > 0)
        x->program = m;
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
static const struct module *find_module(struct extents *x, uint64_t address, const struct vma *vma)
{
    const struct module *unloaded = NULL;
    uint32_t n = __atomic_load_n(&x->proc->nmodules, __ATOMIC_ACQUIRE);
    while (x->modules_seen < n && x->modules_seen < WIRE_MAX_MODULES)
        take_module(x, &x->proc->module[x->modules_seen++]);
    for (uint32_t i = x->nmodules; i > 0; i--) {
        const struct module *m = &x->modules[i - 1];
        if (address < m->low || address >= m->high)
            continue;
        if (is_anonymous(vma) || is_mapping_of(m, vma))
            return m;
        if (unloaded == NULL && vma->name[0] == '/')
            unloaded = m;
    }
    return unloaded;
}

static uint32_t number(struct extents *x, enum profile_object_kind kind, const char *name, const char *module,
                       uint64_t offset, uint64_t size)
{
    if (!x->numbering)
        return 0;
    return object_table_find(
        x->table,
        &(struct profile_object){
            .kind = kind, .name = (char *)name, .module = (char *)module, .offset = offset, .size = size});
}

static void find_variable(struct extents *x, const struct module *m, uint64_t address, struct extent *extent)
{
    struct symbols_variable v;
    symbols_data_find(m->data, address - m->bias, &v);
    extent->low = v.low + m->bias > m->low ? v.low + m->bias : m->low;
    extent->high = v.high < m->high - m->bias ? v.high + m->bias : m->high;
    extent->begin = v.low + m->bias;
    extent->is_variable = v.name != NULL;
    if (v.name != NULL)
        extent->id = number(x, PROFILE_OBJECT_VARIABLE, v.name, m->path, v.low, v.high - v.low);
    else
        extent->id = number(x, PROFILE_OBJECT_SECTION, v.section, m->path, v.section_low, 0);
}

/* Whether a thread's stack, or the main thread's variables, are there: in an anonymous mapping, which may
 * continue above as another thread's stack. If not, the extent is set to the surroundings of the address
 * between these. */
static int find_thread(struct extents *x, uint64_t address, const struct vma *vma, struct extent *extent)
{
    char name[64];
    for (uint32_t i = 0; i < x->nthreads; i++) {
        const struct thread_stack *t = &x->threads[i];
        int is_main = t->tid == x->pid;
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
        for (uint32_t k = 0; k < x->nthreads; k++) {
            uint64_t end = page_end(x->threads[k].fs_base + TCB_BYTES);
            if (k != i && x->threads[k].fs_base < t->fs_base && end <= t->fs_base && end > low)
                low = end;
        }
        if (address < low)
            continue;
        snprintf(name, sizeof(name), "thread %u", t->tid);
        extent->low = low;
        extent->high = high;
        extent->id = is_main ? number(x, PROFILE_OBJECT_TLS, "main thread", "", 0, 0)
                             : number(x, PROFILE_OBJECT_STACK, name, "", 0, 0);
        extent->is_stack = !is_main;
        return 1;
    }
    return 0;
}

/* Whether the program's thread-local data is there: a variable, or, in a stripped file, any. *place is cut to
 * that, or to what is between such. */
static int find_thread_local(struct extents *x, uint64_t address, const struct vma *vma,
                             struct extent *extent, struct heap_place *place)
{
    uint64_t below, bytes = x->program != NULL ? symbols_data_tls(x->program->data, &below) : 0;
    for (uint32_t i = 0; bytes > 0 && i < x->nthreads; i++) {
        uint64_t fs_base = x->threads[i].fs_base, begin = fs_base - below;
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
        symbols_data_find_tls(x->program->data, address - begin, &v);
        uint64_t low = begin + v.low, high = v.high < bytes ? begin + v.high : begin + bytes;
        place->low = low > place->low ? low : place->low;
        place->high = high < place->high ? high : place->high;
        extent->begin = low;
        extent->is_variable = v.name != NULL;
        if (v.name != NULL)
            extent->id =
                number(x, PROFILE_OBJECT_THREAD_LOCAL, v.name, x->program->path, v.low, v.high - v.low);
        else
            extent->id = number(x, PROFILE_OBJECT_SECTION, "thread-local data", x->program->path, 0, 0);
        return 1;
    }
    return 0;
}

/* Likewise, where no mapping is known: the process has ended before they were read. The address may be on the
 * stack of the thread with the next descriptor above it. */
static int find_ended_thread(struct extents *x, uint64_t address, struct extent *extent)
{
    const struct thread_stack *next = NULL;
    char name[64];
    for (uint32_t i = 0; i < x->nthreads; i++) {
        const struct thread_stack *t = &x->threads[i];
        if (address < t->fs_base + TCB_BYTES && (next == NULL || t->fs_base < next->fs_base))
            next = t;
    }
    if (next == NULL || next->tid == x->pid || next->fs_base + TCB_BYTES - address > COLLECT_THREAD_STACK)
        return 0;
    if (areas_end_between(&x->areas, address, next->fs_base))
        return 0; /* another mapping lies in between */
    snprintf(name, sizeof(name), "thread %u", next->tid);
    extent->id = number(x, PROFILE_OBJECT_STACK, name, "", 0, 0);
    extent->is_stack = 1;
    return 1;
}

/*
 * Whether the module was at the address when the buffer was filled; it may have been unloaded before or
 * since. A block or mapping that the agent had reported by then has taken its place. *place: the surroundings
 * for which that is so.
 */
static int has_module(struct extents *x, const struct module *m, uint64_t address, const struct vma *vma,
                      struct heap_place *place)
{
    *place = (struct heap_place){.high = UINT64_MAX};
    if (is_mapping_of(m, vma))
        return 1;
    heap_find(x->heap, address, x->since, place);
    return place->object == 0;
}

/* A file is mapped at the address. Another one, or the same under another name, may have been there when the
 * buffer was filled: that is in the agent's reports. */
static void find_file(struct extents *x, uint64_t address, struct extent *extent)
{
    struct heap_place place;
    heap_find(x->heap, address, x->since, &place);
    extent->low = place.low > extent->low ? place.low : extent->low;
    extent->high = place.high < extent->high ? place.high : extent->high;
    extent->is_zone = place.object != 0;
}

static struct extent find_extent(struct extents *x, uint64_t address)
{
    const struct vma *vma = areas_find(&x->areas, address);
    const struct module *m = find_module(x, address, vma);
    struct extent e = {.low = vma != NULL ? vma->start : address & ~(uint64_t)(WIRE_PAGE - 1)};
    struct heap_place place = {.high = UINT64_MAX};
    e.high = vma != NULL ? vma->end : e.low + WIRE_PAGE;
    if (m != NULL && has_module(x, m, address, vma, &place)) {
        struct extent v = {0};
        find_variable(x, m, address, &v);
        e.low = v.low > e.low || vma == NULL ? v.low : e.low;
        e.high = v.high < e.high || vma == NULL ? v.high : e.high;
        e.id = v.id;
        e.begin = v.begin;
        e.is_variable = v.is_variable;
    } else if (is_anonymous(vma) && find_thread_local(x, address, vma, &e, &place)) {
        ;
    } else if (vma == NULL && find_ended_thread(x, address, &e)) {
        ;
    } else if (vma == NULL) {
        e.id = number(x, PROFILE_OBJECT_UNKNOWN, "unknown", "", 0, 0);
        e.is_zone = 1;
    } else if (strcmp(vma->name, "[heap]") == 0) {
        e.id = number(x, PROFILE_OBJECT_HEAP, "heap", "", 0, 0);
        e.is_zone = e.is_heap = 1;
    } else if (strcmp(vma->name, "[stack]") == 0) {
        e.id = number(x, PROFILE_OBJECT_STACK, "main thread", "", 0, 0);
        e.is_stack = 1;
    } else if (is_anonymous(vma)) {
        if (!find_thread(x, address, vma, &e)) {
            e.id = number(x, PROFILE_OBJECT_ANONYMOUS, vma->name, "", 0, 0);
            e.is_zone = 1;
        }
    } else {
        e.id = number(x, PROFILE_OBJECT_FILE, vma->name, vma->name, 0, 0);
        find_file(x, address, &e);
    }
    e.low = place.low > e.low ? place.low : e.low;
    e.high = place.high < e.high ? place.high : e.high;
    return e;
}

static void note_thread(struct extents *x, const struct wire_desc *desc)
{
    for (uint32_t i = 0; i < x->nthreads; i++)
        if (x->threads[i].tid == desc->tid) {
            x->threads[i].fs_base = desc->fs_base;
            return;
        }
    for (uint32_t i = 0; i < x->nthreads; i++)
        if (x->threads[i].fs_base == desc->fs_base) { /* a later thread on the same stack */
            x->threads[i].tid = desc->tid;
            return;
        }
    if (x->nthreads < EXTENTS_THREADS)
        x->threads[x->nthreads++] = (struct thread_stack){desc->tid, desc->fs_base};
}

void extents_buffer(struct extents *x, const struct wire_desc *desc)
{
    x->since = desc->heap_start;
    memset(x->recent, 0, sizeof(x->recent));
    note_thread(x, desc);
    areas_buffer(&x->areas, desc->end_ns);
}

struct extent *extents_find(struct extents *x, uint64_t address)
{
    for (unsigned i = 0; i < EXTENTS_RECENT; i++)
        if (address >= x->recent[i].low && address < x->recent[i].high)
            return &x->recent[i];
    struct extent *e = &x->recent[x->next++ % EXTENTS_RECENT];
    *e = find_extent(x, address);
    return e;
}

struct extent *extents_number(struct extents *x, struct extent *e, uint64_t address)
{
    if (e->id == 0) {
        x->numbering = 1;
        *e = find_extent(x, address);
        x->numbering = 0;
    }
    return e;
}

uint32_t extents_heap_id(struct extents *x)
{
    x->numbering = 1;
    uint32_t id = number(x, PROFILE_OBJECT_HEAP, "heap", "", 0, 0);
    x->numbering = 0;
    return id;
}
