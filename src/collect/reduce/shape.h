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
struct shape_buffer {
    const struct wire_desc *desc;
    const uint64_t *words;
    uint64_t n, steps, misses; /* misses: of a cache of SYMBOLS_USE_LINES */
    double represents;         /* so many steps of the run (records/decode.h) */
    int in_burst;              /* it is a burst's */
};
/* Takes a buffer's records, or a piece of them, or nothing (collect/tunables.h). objects NULL: data objects
 * are not identified. 0, or -ENOMEM. */
int shape_buffer(struct shape *s, const struct shape_buffer *b, struct objects *objects);

#define SHAPE_OFFSETS 16u

/* Lines of an object that an instruction brought into the small cache, and how many of their bytes were used.
 * Numbers in the run, estimated from the pieces, each of which counts for what it represents. */
struct shape_lines {
    uint64_t pc;
    uint32_t object; /* number; 0: not known */
    uint32_t whole;  /* in pieces, not estimated: lines of which one shows the whole use */
    double lines;
    /* Of these, those whose whole use is shown; those that were still in use at the piece's end although it
     * shows much of them; and what those that are shown represent, with their used bytes. */
    double ended, open, shown, bytes;
    /* Of `inside` of these lines the byte that was touched first is known to be in the object: a random
     * sample of its distances from the beginning of the variable or block. */
    double inside;
    uint32_t noffsets;
    uint64_t offsets[SHAPE_OFFSETS];
};
/* References of an instruction to lines of an object that a cache of 64 sets of 8 lines does not hold any
 * more, although one of as many lines without sets would. */
struct shape_conflicts {
    uint64_t pc;
    uint32_t object;   /* number; 0: not known */
    double references; /* estimated, as above */
};
/* Differences of successive addresses of an instruction. */
struct shape_stride {
    uint64_t pc;
    int64_t bytes;      /* the most frequent one, if it is more than half of them */
    uint32_t all, same; /* differences; those equal to it (a lower bound) */
};
/* [0 .. *n). */
const struct shape_lines *shape_lines(const struct shape *s, size_t *n);
/* Likewise; *of: of so many references. */
const struct shape_conflicts *shape_conflicts(const struct shape *s, size_t *n, double *of);
/* Number i. NULL: there are not so many. */
const struct shape_stride *shape_stride(const struct shape *s, size_t i);
/* Likewise of those addresses by which it touched lines first. */
const struct shape_stride *shape_fetch_stride(const struct shape *s, size_t i);

#endif
