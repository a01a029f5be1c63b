/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.h - the large local variables on the stacks of a process.
 *
 * Which function has which part of a stack is found by following calls and returns (reduce/call-paths.h), and
 * noted here; what lies where in it is in the debug information (symbols/locals.h). What was noted remains
 * until something else is noted for the same memory, or the function has returned for a while: one that is
 * called again and again has the same frame as a rule.
 */
#ifndef CACHEGRAM_OBJECT_FRAMES_H
#define CACHEGRAM_OBJECT_FRAMES_H

#include <stdint.h>
#include "collect/objects/table.h"

/* Smaller ones, in bytes, have no large variables. */
#define STACK_FRAME_BYTES 256u

/* The part of a stack that a function uses. */
struct stack_frame {
    uint32_t tid;
    uint32_t file;     /* number in the table; UINT32_MAX: none, or the frame is small */
    uint64_t offset;   /* in the file: of code of the function that is executed, or was when it called */
    uint64_t low, cfa; /* [low, cfa); the innermost function may have more below low */
    uint64_t sp;       /* the stack pointer while it calls others; 0: not known */
};

struct frames;

/* The table must live longer. NULL when memory is short. */
struct frames *frames_new(struct object_table *table);
void frames_free(struct frames *f); /* NULL is allowed */
void frames_note(struct frames *f, const struct stack_frame *frame);
/* A batch of touches begins, with the innermost call of that thread in a function whose frame begins at low.
 * Frames below that have ended, and are forgotten unless they were noted since the last batch. */
void frames_batch(struct frames *f, uint32_t tid, uint64_t low);
/* Nothing is known of that thread's stack any more. */
void frames_forget(struct frames *f, uint32_t tid);
/* The object of the variable at the address, and its beginning, UINT64_MAX if that is not known; 0: none is
 * known. */
uint32_t frames_find(struct frames *f, uint64_t address, uint64_t *begin);

#endif
