/* SPDX-License-Identifier: Apache-2.0 */
/* extents.h - what is at an address of a process: its object, and how far that reaches. */
#ifndef CACHEGRAM_EXTENTS_H
#define CACHEGRAM_EXTENTS_H

#include "collect/objects/areas.h"
#include "collect/objects/heap.h"
#include "collect/objects/table.h"
#include "wire/wire.h"

#define EXTENTS_RECENT 16u
#define EXTENTS_THREADS 1024u

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
    int is_stack;
};

struct extents {
    struct object_table *table;
    struct wire_proc *proc;
    struct heap *heap; /* not owned */
    uint64_t since;    /* position of the agent's reports at the start of the buffer */
    uint32_t pid;
    struct areas areas;
    struct module *modules;
    uint32_t nmodules, modules_seen;
    const struct module *program; /* one of these, which has thread-local variables; NULL: none is known */
    struct thread_stack threads[EXTENTS_THREADS];
    uint32_t nthreads;
    struct extent recent[EXTENTS_RECENT]; /* of this buffer, in no order */
    unsigned next;                        /* of recent[] */
    int numbering;                        /* extents get the number of their object */
};

/* Of zeroed memory. 0 or -ENOMEM; extents_clear in any case. */
int extents_init(struct extents *x, struct object_table *table, struct wire_proc *proc, struct heap *heap,
                 uint32_t pid);
void extents_clear(struct extents *x);
/* The next addresses are of that buffer. */
void extents_buffer(struct extents *x, const struct wire_desc *desc);
/* Valid until the next call. Its object has no number unless it was requested before. */
struct extent *extents_find(struct extents *x, uint64_t address);
/* Requests the number of the object of an extent at the address. Returns the extent. */
struct extent *extents_number(struct extents *x, struct extent *e, uint64_t address);
/* The object of blocks of the heap that are not known. */
uint32_t extents_heap_id(struct extents *x);

#endif
