/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - sequential writing to a file or pipe. */
#ifndef CACHEGRAM_TRACE_OUTPUT_H
#define CACHEGRAM_TRACE_OUTPUT_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct trace_output {
    char *path; /* owned */
    int fd;
    int made; /* we created the file, and may delete it */
    uint8_t *buffer;
    size_t used;
    uint64_t bytes; /* written to the file */
};

/* path "-": stdout. 0, or negative with err filled; nothing has to be closed then. */
int trace_output_open(struct trace_output *out, const char *path, struct error *err);
/* Buffered; written when the buffer is full. */
int trace_output_put(struct trace_output *out, const void *data, size_t n, struct error *err);
/* Writes the buffer. */
int trace_output_flush(struct trace_output *out, struct error *err);
/* Flushes and closes. 0, or negative with err filled. */
int trace_output_close(struct trace_output *out, struct error *err);
/* Closes, discards the buffer, and deletes the file. */
void trace_output_abandon(struct trace_output *out);

#endif
