/* SPDX-License-Identifier: Apache-2.0 */
/*
 * references.h - from an agent's buffers of records (wire.h) to whole references, for traces.
 *
 * decode.h gives line ids, which is all that the profile needs and faster; this gives every reference
 * with its address, size, direction and program counter. As there, nothing in the memory that is shared
 * with the target is trusted.
 */
#ifndef CACHEGRAM_REFERENCES_H
#define CACHEGRAM_REFERENCES_H

#include <stdint.h>
#include "base/error.h"
#include "collect/records/decode.h"
#include "trace/trace.h"

struct references; /* the templates of one process */

/* Takes a batch in program order, without segments; what is negative stops the decoding. */
typedef int references_sink(void *ctx, const struct trace_batch *batch);

/* NULL when memory is short (err says so). */
struct references *references_new(const struct decode_source *source, struct error *err);
void references_free(struct references *r);

/*
 * Decodes words[0 .. n) as described by desc (fs_base, last_insns); n is already checked to lie in the
 * buffer. *instructions grows by those that were executed. What makes no sense is left out. 0, -ENOMEM, or
 * what the sink returned.
 *
 * A masked operand is one reference, from its first active element to its last; a gather or scatter has one
 * for each element.
 */
int references_decode(struct references *r, const struct wire_desc *desc, const uint64_t *words, uint64_t n,
                      references_sink *sink, void *ctx, uint64_t *instructions);

#endif
