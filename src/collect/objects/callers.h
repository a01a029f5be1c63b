/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callers.h - from a copy of the top of a thread's stack to its callers, by the unwind information of the
 * files that the code is from; where there is none, as in code of a JIT compiler, by frame pointers.
 *
 * What was found for an address is remembered, so that a frame usually costs one look into a table.
 */
#ifndef CACHEGRAM_CALLERS_H
#define CACHEGRAM_CALLERS_H

#include <stdint.h>
#include "collect/objects/table.h"
#include "wire/wire.h"

struct callers; /* of one process */

/* modules, nmodules: as the agent reports them, in shared memory. They and the table must live longer. NULL
 * when memory is short. */
struct callers *callers_new(struct object_table *table, const struct wire_module *modules,
                            const uint32_t *nmodules);
void callers_free(struct callers *c); /* NULL is allowed */

/* Words of a stack, from the stack pointer on. */
struct callers_stack {
    uint64_t sp, nwords;
    const uint64_t *words;
};
/* A function that has called another one and will continue at pc, with these registers. */
struct callers_frame {
    uint64_t pc, sp, rbp;
    uint64_t slot; /* where pc is on the stack; set by callers_next */
};
/* Replaces a frame by its caller's. 0, or -1: not known. For the innermost function of a thread that was
 * interrupted, pc is that of its next instruction, plus 1. */
int callers_next(struct callers *c, const struct callers_stack *stack, struct callers_frame *frame);

/* The canonical frame address of a function, if its caller is not known. 0, or -1: it is not known either. */
int callers_cfa(struct callers *c, const struct callers_stack *stack, const struct callers_frame *frame,
                uint64_t *cfa);

/* The call that returns to an address. */
struct callers_place {
    uint32_t file;   /* number in the table; UINT32_MAX: from no file */
    uint64_t offset; /* in the file, of the last byte of the call */
    int library;     /* in a library of C or C++, or an allocator: its caller is of more interest */
    int agent;       /* in the agent, which calls signal handlers */
};
struct callers_place callers_place(struct callers *c, uint64_t address);

/* Whether that call is in a function of a standard library which is compiled into the program, such as one of
 * std::vector in code that is not optimized. */
int callers_is_inner(struct callers *c, uint64_t address);

#endif
