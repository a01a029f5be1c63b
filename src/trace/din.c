/* SPDX-License-Identifier: Apache-2.0 */
/*
 * din.c - the traditional format of the Dinero simulators. Each line has a label and a hexadecimal address
 * without prefix; the rest of the line is a comment.
 *
 *     0 1000            data read
 *     1 70f60888        data write
 *     2 0               instruction fetch: the program counter of the following references
 *     3, 4              escapes: ignored
 *
 * A reference has no size; a word of 4 bytes is assumed, as in those simulators. Only labels 0 and 1 are
 * written: a trace lacks the instructions that make no reference, so that fetches would be incomplete.
 */
#include <errno.h>
#include <stdlib.h>

#include "trace/formats.h"
#include "trace/text.h"

#define WORD_BYTES 4u

struct din {
    uint64_t pc;
};

/* The label '0' .. '4' and the address; 0: an empty line, -1: not of this format. */
static int parse(const char *line, const char *end, uint64_t *address)
{
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    if (line == end)
        return 0;
    int label = *line++;
    if (label < '0' || label > '4' || line == end || (*line != ' ' && *line != '\t'))
        return -1;
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    if (trace_text_number(&line, end, 16, address) < 0 || (line < end && *line != ' ' && *line != '\t'))
        return -1;
    return label;
}

static int probe_line(const char *line, const char *end)
{
    uint64_t address;
    int label = parse(line, end, &address);
    return label > 0 ? 1 : label;
}

static int probe(const uint8_t *start, size_t n)
{
    return trace_text_probe(start, n, probe_line);
}

static int open_read(struct trace_reader *r, struct error *err)
{
    r->state = calloc(1, sizeof(struct din));
    return r->state != NULL ? trace_threads_set(&r->threads, 0, (struct trace_thread){0})
                            : error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
}

static int use_line(struct trace_reader *r, const char *line, const char *end)
{
    struct din *d = r->state;
    uint64_t address;
    int label = parse(line, end, &address);
    if (label < 0)
        return -1;
    if (label == '0' || label == '1')
        trace_arrays_add(r->arrays, address, d->pc, WORD_BYTES, label == '0' ? TRACE_LOAD : TRACE_STORE, 0,
                         0);
    if (label == '2') {
        d->pc = address;
        r->info.instructions++;
    }
    return 1;
}

static int write_batch(struct trace_writer *w, const struct trace_batch *b, struct error *err)
{
    int status = 0;
    for (size_t i = 0; i < b->n && status == 0; i++)
        status =
            trace_text_put(w, err, "%d %llx\n", b->rw[i] == TRACE_STORE, (unsigned long long)b->address[i]);
    return status;
}

const struct trace_format trace_format_din = {
    .name = "din",
    .help = "Dinero: label and address",
    .probe = probe,
    .open_read = open_read,
    .next = trace_text_next,
    .take_line = use_line,
    .write = write_batch,
};
