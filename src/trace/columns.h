/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - encodes the references of one block of cachegram's format as eight streams of bytes, and
 * decodes them. docs/trace-format.md describes the streams, columns.c the method. Pure: no files.
 */
#ifndef CACHEGRAM_TRACE_COLUMNS_H
#define CACHEGRAM_TRACE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "trace/trace.h"

/*
 * Most references of a block. Every block starts with empty predictors, which costs some bytes per site; a
 * damaged block is lost completely. Measured on python3, bytes per reference: 0.58 with
 * 2^17, 0.43 with 2^20, 0.40 with 2^22.
 */
#define COLUMNS_REFERENCES (UINT32_C(1) << 20)
/* Most different (pc, size, direction) of a block, plus one: their numbers have 16 bits. */
#define COLUMNS_SITES (UINT32_C(1) << 16)

enum column {
    COLUMN_RUN,    /* predicted references before each event */
    COLUMN_KIND,   /* events: what was not predicted, and how it is encoded */
    COLUMN_SITE,   /* numbers of sites */
    COLUMN_NEW,    /* new sites */
    COLUMN_DELTA1, /* differences of addresses, by width */
    COLUMN_DELTA2,
    COLUMN_DELTA4,
    COLUMN_DELTA8,
    COLUMNS
};

struct column_bytes {
    const uint8_t *data;
    size_t n;
};

struct column_encoder;
struct column_encoder *column_encoder_new(void); /* NULL: memory is short */
void column_encoder_free(struct column_encoder *e);
/* Empties predictors and streams. */
void column_encoder_reset(struct column_encoder *e);
/*
 * Encodes references begin .. end-1 of a batch, or as many of them as fit into the block. Returns the index
 * of the first one that was not encoded. -EINVAL: reference number *bad has no size or no direction.
 */
int64_t column_encode(struct column_encoder *e, const struct trace_batch *batch, size_t begin, size_t end,
                      size_t *bad);
/* The streams so far; valid until the next call. */
void column_encoder_streams(const struct column_encoder *e, struct column_bytes streams[COLUMNS]);

struct column_decoder;
struct column_decoder *column_decoder_new(void); /* NULL: memory is short */
void column_decoder_free(struct column_decoder *d);
/* Begins a block; the streams must remain valid until it is decoded. */
void column_decoder_begin(struct column_decoder *d, const struct column_bytes streams[COLUMNS]);
/*
 * Decodes the next n references. 0, or -EBADMSG if the streams are invalid; any bytes are safe to decode. The
 * caller must not request more references than were encoded: they would have arbitrary values.
 */
int column_decode(struct column_decoder *d, size_t n, uint64_t *address, uint64_t *pc, uint16_t *size,
                  uint8_t *rw);

#endif
