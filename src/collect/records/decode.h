/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - from an agent's buffers of records (wire.h) to the line ids that were touched.
 *
 * Pure: memory in, line ids out; no processes, no files. The target may have overwritten everything that is
 * read, so nothing is trusted: invalid records are counted in decode_counts.bad_records and skipped.
 *
 * There are two decoders, for two purposes. This one handles every reference of every burst, and gives lines
 * only. references.h gives each reference with its address, size and instruction, for traces (tee.h). They
 * share no code; tests/unit/test_references.c compares them with each other and with the agent's decoder
 * (agent/watch/touched.c).
 */
#ifndef CACHEGRAM_DECODE_H
#define CACHEGRAM_DECODE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "sim/stackdist.h"
#include "wire/wire.h"

struct decoder; /* the compiled templates of one process */

/* Location of a process' templates: its template area and wire_proc.block_offset. Not owned. */
struct decode_source {
    const void *templates;
    uint64_t template_bytes;
    const uint32_t *block_offset; /* WIRE_MAX_BLOCKS elements */
};

struct decode_counts {
    uint64_t references; /* loads + stores; one that straddles lines is one reference */
    uint64_t loads, stores;
    uint64_t touches; /* line ids passed to the sink; a straddling reference touches each of its lines */
    uint64_t steps;   /* references, but a repeated string instruction counts one for each operand */
    uint64_t instructions;
    uint64_t records;
    uint64_t bad_records; /* invalid records; not or not completely decoded */
};

/* Lines of a call of the sink, at most. */
#define DECODE_BATCH_ROOM 16392u

/* Receives n line ids (address >> log2(line_bytes)) in program order; a negative result ends the decoding. */
typedef int decode_sink(void *ctx, const uint64_t *lines, size_t n);

/*
 * The code that made the touches, as sites. A site is a reference of a block; one that is read and written is
 * two. Its number is DECODE_SITE(block, reference); all references from the 256th on have the same number.
 */
#define DECODE_SITE_BITS 8u
#define DECODE_SITE(block, reference) ((uint32_t)(block) << DECODE_SITE_BITS | (uint32_t)(reference))
/*
 * What is recorded of a line's touch: its site, and above that the part of the line where the reference
 * begins (0 if that is in the line before), an eighth: blocks of the heap may share a line.
 */
#define DECODE_PART_SHIFT 29u
#define DECODE_PARTS_SHIFT 3u /* 2^3 parts */
_Static_assert(DECODE_SITE(WIRE_MAX_BLOCKS, 0) <= 1u << DECODE_PART_SHIFT,
               "room for the part above each site");
static inline uint32_t decode_touch_site(uint32_t touch)
{
    return touch & ((1u << DECODE_PART_SHIFT) - 1);
}
static inline unsigned decode_touch_part(uint32_t touch)
{
    return touch >> DECODE_PART_SHIFT;
}
struct decode_sites {
    /* By block, WIRE_MAX_BLOCKS of them, initially 0: how often each of its sites made one touch. */
    uint32_t *executions;
    /* Blocks with executions in the order of their first one: nexecuted of them; one more element than
     * WIRE_MAX_BLOCKS. The reader resets both to 0. */
    uint32_t *executed;
    size_t nexecuted;
    /* All other touches of a site, including elements that decoder_strings leaves out. */
    void (*more)(void *ctx, uint32_t site, uint64_t touches);
    void *ctx;
};

/* line_bytes: a power of two, 8 .. 4096. NULL if it is not, or if memory is short (err says which). */
struct decoder *decoder_new(unsigned line_bytes, const struct decode_source *source, struct error *err);
void decoder_free(struct decoder *d);
/* How elements of repeated string instructions touch lines. The others make instructions with millions of
 * elements fast. */
enum decode_strings {
    DECODE_STRINGS_ALL,    /* like any other reference */
    DECODE_STRINGS_REPEAT, /* those that touch the same lines as the element before: decoder_repeats */
    DECODE_STRINGS_LINES   /* those in the line that the same operand touched last touch nothing */
};
/* From now on; at first DECODE_STRINGS_ALL. 0 or -ENOMEM. */
int decoder_strings(struct decoder *d, enum decode_strings how);
struct filter;
/* The agent filters lines, and only lines that pass reach the sink; decode_counts.touches are all of them,
 * those that touch two lines estimated. To be called before the first buffer is decoded. Not owned. 0 or
 * -ENOMEM. */
int decoder_filter(struct decoder *d, const struct filter *filter);
/* To be called in the sink, with DECODE_STRINGS_REPEAT: touches that are not among the batch's lines. */
const struct stackdist_repeat *decoder_repeats(const struct decoder *d, size_t *n);

/*
 * From now on lines and what is recorded of their touches are written there, to DECODE_BATCH_ROOM elements
 * each, the caller's; NULL: to the decoder's own memory again. In the sink: the lines after those of this
 * call.
 */
void decoder_write_to(struct decoder *d, uint64_t *lines, uint32_t *touches);
/* From now on sites are counted too, while there is a sink. Not owned; NULL: no longer. */
void decoder_note_sites(struct decoder *d, struct decode_sites *sites);
/* To be called in the sink, if sites are counted: of each line, the site and part (decode_touch_site). */
const uint32_t *decoder_touches(const struct decoder *d);
/* Of a site that was seen: the address of its instruction, and its module (wire_block.module). Nonzero if
 * there is no such site. */
int decoder_site_code(const struct decoder *d, uint32_t site, uint64_t *pc, uint32_t *module);

/* A call or a return, in the order of execution. */
struct decode_turn {
    size_t at;        /* touches of the batch before it; its own are among them */
    uint64_t slot;    /* where the return address is on the stack */
    uint64_t returns; /* of a call: the return address; 0: a return */
    uint32_t module;  /* of the code (wire_block.module) */
};
/* From now on these are noted; to be called before the first buffer is decoded. 0 or -ENOMEM. */
int decoder_note_turns(struct decoder *d);
/* To be called in the sink: those of the batch. */
const struct decode_turn *decoder_turns(const struct decoder *d, size_t *n);

/* Words of the whole records within the first `most` of n words; n if there are no more words than that. */
uint64_t decode_whole_records(const uint64_t *words, uint64_t n, uint64_t most);

/*
 * Decodes words[0 .. n) as described by desc (fs_base, last_insns); the caller has checked that n is within
 * the buffer, desc->words is not used. Adds to *counts. 0, -ENOMEM, or the sink's result. With sink NULL only
 * references are counted, not touches.
 */
int decode_buffer(struct decoder *d, const struct wire_desc *desc, const uint64_t *words, uint64_t n,
                  decode_sink *sink, void *ctx, struct decode_counts *counts);

#endif
