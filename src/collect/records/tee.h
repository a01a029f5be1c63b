/* SPDX-License-Identifier: Apache-2.0 */
/* tee.h - `record --trace`: writes the recorded references to a trace as well. */
#ifndef CACHEGRAM_TEE_H
#define CACHEGRAM_TEE_H

#include <stdint.h>
#include "base/error.h"
#include "collect/records/references.h"

struct tee;

/*
 * Creates the trace; an existing file is kept as PATH.old. full: all references are written as one segment;
 * otherwise every buffer is a burst. NULL with err filled.
 */
struct tee *tee_new(const char *path, const char *source, int full, struct error *err);
/*
 * Writes a buffer of a process. *references belongs to the process, NULL at first, and must be freed with
 * references_free. An error in writing is remembered, and nothing is written from then on; the profile does
 * not suffer.
 */
void tee_buffer(struct tee *t, struct references **references, const struct decode_source *source,
                uint32_t pid, const struct wire_desc *desc, const uint64_t *words, uint64_t n);
/* References in the file; of all buffers only after tee_flush. */
uint64_t tee_references(const struct tee *t);
/* Makes all that was written so far readable, whatever happens later. */
void tee_flush(struct tee *t);
/* Completes the trace and frees. 0, or negative with err filled: why the trace is incomplete. */
int tee_finish(struct tee *t, struct error *err);
/* The trace will not be abandoned: removes an earlier PATH.old, kept until now for that case. */
void tee_keep(struct tee *t);
/* Removes the trace, restores an existing file, and frees. NULL is allowed. */
void tee_abandon(struct tee *t);

#endif
