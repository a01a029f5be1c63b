/* SPDX-License-Identifier: Apache-2.0 */
/* input.h - sequential reading of a file or pipe, with look-ahead. */
#ifndef CACHEGRAM_TRACE_INPUT_H
#define CACHEGRAM_TRACE_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct trace_input {
    const char *path; /* for messages; not owned */
    int fd;
    uint8_t *buffer;
    size_t at, end, capacity;
    uint64_t end_offset; /* offset in the file of buffer[end] */
    uint64_t file_bytes; /* 0: not a regular file */
    int at_end;          /* no bytes after `end` */
};

/* path "-": stdin. 0, or negative with err filled. */
int trace_input_open(struct trace_input *in, const char *path, struct error *err);
void trace_input_close(struct trace_input *in);
/*
 * Tries to provide n bytes (at most TRACE_INPUT_MAX) at in->buffer + in->at. Returns how many there are,
 * fewer only at the end of the file. Negative: a read error, or memory is short.
 */
#define TRACE_INPUT_MAX (UINT32_C(1) << 27)
int64_t trace_input_need(struct trace_input *in, size_t n, struct error *err);
/*
 * Returns the length of the next line, without its end; *line is valid until the next call. -1 at the end of
 * the file; less than -1: an errno value with err filled. A line of more than 64 KB is split there.
 */
int64_t trace_input_line(struct trace_input *in, const char **line, struct error *err);
/* Offset in the file of in->buffer[in->at]. */
uint64_t trace_input_offset(const struct trace_input *in);

#endif
