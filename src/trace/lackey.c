/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lackey.c - output of `valgrind --tool=lackey --trace-mem=yes`. One access per line, with a hexadecimal
 * address without prefix and a decimal size:
 *
 *     I  0023C790,2     instruction fetch
 *      S BE80199C,4     data store
 *      L BE801950,4     data load
 *      M 0025747C,1     data modify: a load and a store
 *
 * (Valgrind manual, "Lackey: an example tool".) Valgrind's own lines begin with ==PID== or --PID--. The
 * program's output may come between; it is skipped and counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/formats.h"
#include "trace/text.h"

struct lackey {
    uint64_t pc;
    /* writing: a load that becomes an M if the store follows */
    int pending;
    uint64_t address, size;
};

/* Returns 'I', 'L', 'S' or 'M' with address and size; 0: not such a line, -1: invalid. */
static int parse(const char *line, const char *end, uint64_t *address, uint64_t *size)
{
    if (end - line < 3)
        return 0;
    int kind = line[0] == 'I' && line[1] == ' ' && line[2] == ' ' ? 'I'
               : line[0] == ' ' && strchr("LSM", line[1]) != NULL && line[1] != '\0' && line[2] == ' '
                   ? line[1]
                   : 0;
    if (kind == 0)
        return 0;
    const char *at = line + 3;
    if (trace_text_number(&at, end, 16, address) < 0 || at == end || *at++ != ',' ||
        trace_text_number(&at, end, 10, size) < 0 || at != end || *size == 0 || *size > UINT16_MAX)
        return -1;
    return kind;
}

static int probe_line(const char *line, const char *end)
{
    uint64_t address, size;
    return parse(line, end, &address, &size) > 0;
}

static int probe(const uint8_t *start, size_t n)
{
    return trace_text_probe(start, n, probe_line);
}

static int open_read(struct trace_reader *r, struct error *err)
{
    struct lackey *l = calloc(1, sizeof(*l));
    r->state = l;
    return l != NULL ? trace_threads_set(&r->threads, 0, (struct trace_thread){0})
                     : error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
}

static int use_line(struct trace_reader *r, const char *line, const char *end)
{
    struct lackey *l = r->state;
    uint64_t address, size;
    int kind = parse(line, end, &address, &size);
    if (kind <= 0)
        return kind == 0 && line != end && strncmp(line, "==", 2) != 0 && strncmp(line, "--", 2) != 0 ? 0
               : kind < 0                                                                             ? -1
                                                                                                      : 1;
    if (kind == 'I') {
        l->pc = address;
        r->info.instructions++;
        return 1;
    }
    if (kind != 'S')
        trace_arrays_add(r->arrays, address, l->pc, size, TRACE_LOAD, 0, 0);
    if (kind != 'L')
        trace_arrays_add(r->arrays, address, l->pc, size, TRACE_STORE, 0, 0);
    return 1;
}

static int open_write(struct trace_writer *w, struct error *err)
{
    w->state = calloc(1, sizeof(struct lackey));
    return w->state != NULL ? 0 : error_set(err, -ENOMEM, "out of memory for writing a trace");
}

static int put_pending(struct trace_writer *w, char kind, struct error *err)
{
    struct lackey *l = w->state;
    if (!l->pending)
        return 0;
    l->pending = 0;
    return trace_text_put(w, err, " %c %08llx,%llu\n", kind, (unsigned long long)l->address,
                          (unsigned long long)l->size);
}

static int put_one(struct trace_writer *w, const struct trace_batch *b, size_t i, struct error *err)
{
    struct lackey *l = w->state;
    int status;
    if (b->rw[i] == TRACE_STORE && l->pending && b->pc[i] == l->pc && b->address[i] == l->address &&
        b->size[i] == l->size)
        return put_pending(w, 'M', err);
    if ((status = put_pending(w, 'L', err)) < 0)
        return status;
    if (b->pc[i] != l->pc) {
        /* The trace lacks the instructions' sizes. */
        l->pc = b->pc[i];
        if ((status = trace_text_put(w, err, "I  %08llx,1\n", (unsigned long long)l->pc)) < 0)
            return status;
    }
    l->pending = 1;
    l->address = b->address[i];
    l->size = b->size[i];
    return b->rw[i] == TRACE_STORE ? put_pending(w, 'S', err) : 0;
}

static int write_batch(struct trace_writer *w, const struct trace_batch *b, struct error *err)
{
    int status = 0;
    for (size_t i = 0; i < b->n && status == 0; i++)
        status = put_one(w, b, i, err);
    return status;
}

static int finish(struct trace_writer *w, struct error *err)
{
    return put_pending(w, 'L', err);
}

const struct trace_format trace_format_lackey = {
    .name = "lackey",
    .help = "valgrind --tool=lackey --trace-mem=yes",
    .probe = probe,
    .open_read = open_read,
    .next = trace_text_next,
    .take_line = use_line,
    .open_write = open_write,
    .write = write_batch,
    .flush = finish,
    .finish = finish,
};
