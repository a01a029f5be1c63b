/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharing.h - lines that several threads of a process use by turns while one of them writes: whether they
 * use the same bytes (true sharing) or different ones (false sharing).
 */
#ifndef CACHEGRAM_SHARING_H
#define CACHEGRAM_SHARING_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "collect/objects/objects.h"
#include "collect/records/decode.h"
#include "trace/trace.h"

struct sharing; /* of one process */

/* NULL when memory is short (err says so). */
struct sharing *sharing_new(const struct decode_source *source, unsigned line_bytes, struct error *err);
void sharing_free(struct sharing *s); /* NULL is allowed */
/*
 * Takes a piece of a buffer's records, once the process has two threads: of every buffer of a burst, in full
 * mode of some. references: of the whole buffer. objects NULL: data objects are not identified. 0, or
 * -ENOMEM.
 */
int sharing_buffer(struct sharing *s, const struct wire_desc *desc, const uint64_t *words, uint64_t n,
                   uint64_t references, struct objects *objects);
/* Successive references of a thread, at most SHARING_PIECE; sharing_buffer calls this. ns: at any clock. 0,
 * or -ENOMEM. */
#define SHARING_PIECE 2048u
int sharing_piece(struct sharing *s, uint32_t tid, uint64_t ns, const struct trace_batch *piece,
                  struct objects *objects);

/* References of an instruction to lines of an object that another thread writes by turns. */
#define SHARING_OFFSETS 8u
struct sharing_refs {
    uint64_t pc;
    uint32_t object;      /* number; 0: not known */
    uint64_t apart, same; /* the other thread writes other bytes only, or some of these: in pieces */
    /* Of `inside` of those apart the place in the object is known: a random sample of the distances from the
     * beginning of the variable or block. */
    uint32_t inside, noffsets;
    uint64_t offsets[SHARING_OFFSETS];
};
/* [0 .. *n); those whose pc is 0 are empty. */
const struct sharing_refs *sharing_refs(const struct sharing *s, size_t *n);
/* The references that one of a piece represents. */
double sharing_scale(const struct sharing *s);
/* References of all buffers. */
uint64_t sharing_total(const struct sharing *s);

#endif
