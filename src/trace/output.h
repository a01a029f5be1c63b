/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - bytes into a file or pipe, in order. */
#ifndef CACHEGRAM_TRACE_OUTPUT_H
#define CACHEGRAM_TRACE_OUTPUT_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct trace_output {
    char *path; /* owned */
    int fd;
    int is_stdout;
    int made; /* there was no such file before: it may be deleted */
    uint8_t *buffer;
    size_t used;
    uint64_t bytes; /* gone into the file */
};

/* path "-": stdout. 0, or negative with err filled; nothing has to be closed then. */
int trace_output_open(struct trace_output *out, const char *path, struct error *err);
/* Buffered; what does not fit any more goes out. */
int trace_output_put(struct trace_output *out, const void *data, size_t n, struct error *err);
/* Sends the buffer on its way. */
int trace_output_flush(struct trace_output *out, struct error *err);
/* A second file beside the output, without a name, for data that must be read again. -1 with err filled. */
int trace_output_scratch(const struct trace_output *out, struct error *err);
/* Flushes and closes. 0, or negative with err filled. */
int trace_output_close(struct trace_output *out, struct error *err);
/* Closes, throws the buffer away, and deletes the file. */
void trace_output_abandon(struct trace_output *out);

#endif
