/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - shared by readers and writers of text formats, in which one line is about one reference. */
#ifndef CACHEGRAM_TRACE_TEXT_H
#define CACHEGRAM_TRACE_TEXT_H

#include "trace/internal.h"

/*
 * Reads a hexadecimal (base 16, without prefix) or decimal (base 10) number at *at, which moves past it;
 * `end` is the end of the line. 0, or -1 if there is none or it has more than 64 bits.
 */
int trace_text_number(const char **at, const char *end, unsigned base, uint64_t *value);

/* `next` of a text format, which has take_line: reads lines until the arrays are full; a line may add two
 * references. */
int trace_text_next(struct trace_reader *r, struct error *err);
/* Checks the first line of the n bytes for which `parse_probe` returns 1 (yes) or -1 (no); lines with 0 are
 * skipped. */
int trace_text_probe(const uint8_t *start, size_t n, int (*parse_probe)(const char *line, const char *end));

/* Buffered, as printf; text of less than 512 bytes. */
int trace_text_put(struct trace_writer *w, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
