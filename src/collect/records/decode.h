/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - from an agent's buffers of records (wire.h) to the line ids that were touched.
 *
 * Pure: memory in, line ids out; no processes, no files. Everything that is read may have been
 * scribbled over by the target, so nothing in it is trusted: what does not make sense is counted
 * in decode_counts.bad_records and left out.
 *
 * There are two decoders, for two questions: this one, which every reference of every burst passes, tells
 * lines only; references.h tells each reference with its address, size and instruction, for traces (tee.h).
 * They share no code; tests/unit/test_references.c compares them, and the agent's own
 * (agent/watch/touched.c).
 */
#ifndef CACHEGRAM_DECODE_H
#define CACHEGRAM_DECODE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "wire/wire.h"

struct decoder; /* the compiled templates of one process */

/* Where a process' templates are: its template area and wire_proc.block_offset. Not owned. */
struct decode_source {
    const void *templates;
    uint64_t template_bytes;
    const uint32_t *block_offset; /* WIRE_MAX_BLOCKS of them */
};

struct decode_counts {
    uint64_t references; /* loads + stores; one that straddles lines is one reference */
    uint64_t loads, stores;
    uint64_t touches; /* line ids handed to the sink; a straddling reference touches each of its lines */
    uint64_t steps;   /* references, but one of each operand of a repeated string instruction */
    uint64_t instructions;
    uint64_t records;
    uint64_t bad_records; /* made no sense; not decoded, or not completely */
};

/*
 * Takes n line ids (address >> log2(line_bytes)) in program order; what is negative stops the decoding.
 */
typedef int decode_sink(void *ctx, const uint64_t *lines, size_t n);

/*
 * What made the touches: sites. A site is a reference of a block; one that is read and written is two. Its
 * number is DECODE_SITE(block, reference), the last reference standing for all from the 256th on.
 */
#define DECODE_SITE_BITS 8u
#define DECODE_SITE(block, reference) ((uint32_t)(block) << DECODE_SITE_BITS | (uint32_t)(reference))
struct decode_sites {
    /* By block, WIRE_MAX_BLOCKS of them, all 0 at first: how often each of its sites made one touch. */
    uint32_t *executions;
    /* Blocks with executions, in the order of the first one: nexecuted of them. Room for one more than
     * WIRE_MAX_BLOCKS. Who takes both sets them back to 0. */
    uint32_t *executed;
    size_t nexecuted;
    /* All other touches of a site; elements that decoder_skip_string_hits leaves out are among them. */
    void (*more)(void *ctx, uint32_t site, uint64_t touches);
    void *ctx;
};

/* line_bytes: a power of two, 8 .. 4096. NULL when it is not or memory is short (err says which). */
struct decoder *decoder_new(unsigned line_bytes, const struct decode_source *source, struct error *err);
void decoder_free(struct decoder *d);
/* From now on, elements of a repeated string instruction that lie in the line that its same operand touched
 * last are counted as references, but touch nothing: instructions with millions of elements are quick then.
 */
void decoder_skip_string_hits(struct decoder *d);

/* From now on sites are noted, too, as long as there is a sink. Not owned; NULL: no longer. */
void decoder_note_sites(struct decoder *d, struct decode_sites *sites);
/* In the sink, if sites are noted: that of each line. */
const uint32_t *decoder_line_sites(const struct decoder *d);
/* Of a site that was seen: the address of its instruction, and its module (wire_block.module). Nonzero if
 * there is none of that number. */
int decoder_site_code(const struct decoder *d, uint32_t site, uint64_t *pc, uint32_t *module);

/*
 * Decodes words[0 .. n) as described by desc (fs_base, last_insns); n is already checked to lie in
 * the buffer, desc->words is not looked at. Adds to *counts. 0, -ENOMEM, or what the sink returned. With
 * sink NULL references are only counted, and touches are not.
 */
int decode_buffer(struct decoder *d, const struct wire_desc *desc, const uint64_t *words, uint64_t n,
                  decode_sink *sink, void *ctx, struct decode_counts *counts);

#endif
