/* SPDX-License-Identifier: Apache-2.0 */
/*
 * references.h - from an agent's buffers of records (wire.h) to complete references, for traces.
 *
 * decode.h gives line ids, which is all that the profile needs, and faster. This gives every reference with
 * its address, size, direction and program counter. Here too, nothing in shared memory is trusted.
 */
#ifndef CACHEGRAM_REFERENCES_H
#define CACHEGRAM_REFERENCES_H

#include <stdint.h>
#include "base/error.h"
#include "collect/records/decode.h"
#include "trace/trace.h"

struct references; /* the templates of one process */

/* Receives a batch in program order, without segments; a negative result ends the decoding. */
typedef int references_sink(void *ctx, const struct trace_batch *batch);

/* NULL when memory is short (err says so). */
struct references *references_new(const struct decode_source *source, struct error *err);
void references_free(struct references *r);

/*
 * Decodes words[0 .. n) as described by desc (fs_base, last_insns); the caller has checked that n is within
 * the buffer. Adds the executed instructions to *instructions. Invalid records are skipped. 0, -ENOMEM, or
 * the sink's result.
 *
 * A masked operand is one reference, from its first active element to its last; a gather or scatter is one
 * reference per element.
 */
int references_decode(struct references *r, const struct wire_desc *desc, const uint64_t *words, uint64_t n,
                      references_sink *sink, void *ctx, uint64_t *instructions);

#endif
