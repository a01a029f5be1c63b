/* SPDX-License-Identifier: Apache-2.0 */
/* tee.h - `record --trace`: what the agents hand over goes into a trace, too. */
#ifndef CACHEGRAM_TEE_H
#define CACHEGRAM_TEE_H

#include <stdint.h>
#include "base/error.h"
#include "collect/records/references.h"

struct tee;

/*
 * Makes the trace; an existing file is kept as PATH.old. full: all references are written, in one
 * stretch; else every buffer is a burst. NULL with err filled.
 */
struct tee *tee_new(const char *path, const char *source, int full, struct error *err);
/*
 * A buffer of a process; *references is the process' own, NULL at first, and to be freed with
 * references_free. When the trace cannot be written any more that is remembered, and nothing is written
 * from then on: the profile does not suffer.
 */
void tee_buffer(struct tee *t, struct references **references, const struct decode_source *source,
                uint32_t pid, const struct wire_desc *desc, const uint64_t *words, uint64_t n);
/* References in the file; of all that were taken, after tee_flush. */
uint64_t tee_references(const struct tee *t);
/* What was written so far can be read, whatever happens. */
void tee_flush(struct tee *t);
/* Completes the trace and frees. 0, or negative with err filled: why the trace is incomplete. */
int tee_finish(struct tee *t, struct error *err);
/* It will not be abandoned: an earlier PATH.old, kept for that till now, goes. */
void tee_keep(struct tee *t);
/* Puts things back as they were, and frees. NULL is allowed. */
void tee_abandon(struct tee *t);

#endif
