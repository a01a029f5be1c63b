/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects.h - the data object to which a line of a process' memory belongs: a variable, a stack, a file, ...
 * The object of a line is the one that has most of it; where several share it, that of the touched part of
 * it.
 */
#ifndef CACHEGRAM_OBJECTS_H
#define CACHEGRAM_OBJECTS_H

#include <stdint.h>
#include "base/error.h"
#include "collect/objects/frames.h"
#include "collect/objects/table.h"
#include "wire/wire.h"

struct objects; /* those of one process */

/* The process' slot is not owned; of it, what the agent reports of allocations is taken. NULL when memory is
 * short (err says so). */
struct objects *objects_new(struct object_table *table, struct wire_proc *proc, uint32_t pid,
                            unsigned line_bytes, struct error *err);
void objects_free(struct objects *o); /* NULL is allowed */
/* The process is a copy of that one, made by fork, with its blocks and mappings. 0 or -ENOMEM. */
int objects_inherit(struct objects *o, struct objects *of);
/* The process has executed another program by now: the mappings that it has are not those of this one. If it
 * does so after objects_new, these are gone, as if it had ended. */
void objects_replaced(struct objects *o);
/* Reads all mappings of the process now, since it may have ended later. */
void objects_look(struct objects *o);
/* Likewise with the process' first buffer, and later if some time has passed since: it has mapped more by
 * then, and may end before the buffers are reduced. */
void objects_look_again(struct objects *o);
/* Takes the oldest of the agent's reports of allocations, if there is not much room for more. */
void objects_make_room(struct objects *o);
/* The following lines were touched by that buffer's thread. */
void objects_buffer(struct objects *o, const struct wire_desc *desc);
/* Whether the line is on a thread's stack, where only frames_note says more. */
int objects_is_on_stack(struct objects *o, uint64_t line);
/* The beginning of a part of a line. */
uint64_t objects_address(const struct objects *o, uint64_t line, unsigned part);
/* Of the process' stacks, the caller's to note them. */
struct frames *objects_frames(struct objects *o);
/*
 * Number in the table of the object that the line has in one of its OBJECTS_PARTS parts. Of small blocks of
 * the heap only a sample is known; a part without one is attributed to the object of one that the same site
 * (decode.h) touched, at random in proportion to the blocks that those represent.
 */
uint32_t objects_find(struct objects *o, uint64_t line, unsigned part, uint32_t site);
#define OBJECTS_PARTS_SHIFT 3u
#define OBJECTS_PARTS (1u << OBJECTS_PARTS_SHIFT)
#define OBJECTS_WHOLE_LINE UINT32_MAX /* as part: it is not known */
static inline unsigned objects_part(uint64_t address, unsigned line_shift)
{
    return (unsigned)(address >> (line_shift - OBJECTS_PARTS_SHIFT)) % OBJECTS_PARTS;
}
/* Likewise of a byte: of the variable or known block that has it, or else of its part of the line. */
uint32_t objects_find_at(struct objects *o, uint64_t address, uint32_t site);
/* Prefetches what objects_find of the line needs first. */
void objects_fetch(const struct objects *o, uint64_t line);
/* Distance of an address of this buffer from the beginning of the variable or block that contains it. 0, or
 * -1: none is known, or it is not of that object. */
int objects_offset(struct objects *o, uint64_t address, uint32_t object, uint64_t *offset);
/* The site of touches whose site is not known: they are drawn from each other. */
#define OBJECTS_NO_SITE UINT32_MAX

#endif
