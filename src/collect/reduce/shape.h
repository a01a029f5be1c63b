/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.h - how a process' references use lines: bytes of a line that are used before a small cache evicts
 * it, conflicts within the sets of a small cache, and strides. From pieces of the recorded references, in
 * which each has its address, size and instruction.
 */
#ifndef CACHEGRAM_SHAPE_H
#define CACHEGRAM_SHAPE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "collect/objects/objects.h"
#include "collect/records/decode.h"

struct shape;       /* of one process */
struct shape_piece; /* work space, which all processes share */

struct shape_piece *shape_piece_new(void);    /* NULL: no memory */
void shape_piece_free(struct shape_piece *p); /* NULL is allowed */
/* piece must live longer. NULL when memory is short (err says so). */
struct shape *shape_new(const struct decode_source *source, unsigned line_bytes, struct shape_piece *piece,
                        struct error *err);
void shape_free(struct shape *s); /* NULL is allowed */
/* Takes a buffer's records, or a piece of them, or nothing (collect/tunables.h). in_burst: it is a burst's.
 * objects NULL: data objects are not identified. 0, or -ENOMEM. */
int shape_buffer(struct shape *s, const struct wire_desc *desc, const uint64_t *words, uint64_t n,
                 int in_burst, struct objects *objects);

#define SHAPE_OFFSETS 16u

/* Lines that an instruction touched first in a piece, of one object, and how many of their bytes were used.
 */
struct shape_lines {
    uint64_t pc;
    uint32_t object; /* number; 0: not known */
    uint32_t lines;
    /* Of these, those that the piece shows from beginning to end, with their used bytes; and those that were
     * still in use at its end although it shows much of them. */
    uint32_t whole, open;
    uint64_t bytes;
    /* Of `inside` of these lines the byte that was touched first is known to be in the object: a random
     * sample of its distances from the beginning of the variable or block. */
    uint32_t inside, noffsets;
    uint64_t offsets[SHAPE_OFFSETS];
};
/* References of an instruction to lines of an object that a cache of 64 sets of 8 lines does not hold any
 * more, although one of as many lines without sets would. */
struct shape_conflicts {
    uint64_t pc;
    uint32_t object; /* number; 0: not known */
    uint32_t references;
};
/* Differences of successive addresses of an instruction. */
struct shape_stride {
    uint64_t pc;
    int64_t bytes;      /* the most frequent one, if it is more than half of them */
    uint32_t all, same; /* differences; those equal to it (a lower bound) */
};
/* [0 .. *n). */
const struct shape_lines *shape_lines(const struct shape *s, size_t *n);
/* Likewise; *of: the references that were looked at. */
const struct shape_conflicts *shape_conflicts(const struct shape *s, size_t *n, uint64_t *of);
/* Number i. NULL: there are not so many. */
const struct shape_stride *shape_stride(const struct shape *s, size_t i);
/* Likewise of those addresses by which it touched lines first. */
const struct shape_stride *shape_fetch_stride(const struct shape *s, size_t i);

#endif
