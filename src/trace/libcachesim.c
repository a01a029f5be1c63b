/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcachesim.c - writes two formats that libCacheSim reads: its binary "oracleGeneral", and CSV. They
 * contain requests of objects. Here an object is a line, its id is the line's number, and a reference that
 * straddles lines is a request for each.
 *
 * oracleGeneral: records of 24 bytes without gaps, { uint32 time, uint64 object, uint32 size, int64 next },
 * where next is the number of the next request of the same object, counted from 0, or -1. It is known only
 * later: if the record is no longer in memory then, it is changed in the file. Time is in millions of
 * requests, since a trace has no other time.
 *
 * CSV: a header line and time,obj_id,obj_size; read it with
 * time-col=1,obj-id-col=2,obj-size-col=3,has-header=true,delimiter=,
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/formats.h"
#include "trace/text.h"

#define RECORD_BYTES 24u
#define NEXT_OFFSET 16u
/* Requests kept in memory: nearly all objects are requested again within so many. 24 MB. */
#define WINDOW (UINT32_C(1) << 20)
#define TIME_UNIT 1000000u
#define FIRST_CAPACITY (UINT64_C(1) << 16)

struct entry {
    uint64_t line;
    uint64_t last; /* number of its last request, plus one; 0: empty */
};

struct oracle {
    uint8_t *window; /* records base .. base + n - 1 */
    uint64_t base;
    uint32_t n;
    struct entry *table; /* open addressing, at most half full */
    uint64_t capacity, lines;
};

static int no_memory(struct error *err)
{
    return error_set(err, -ENOMEM, "out of memory for writing a trace");
}

/* --- lines of references --- */

typedef int put_line(struct trace_writer *w, uint64_t line, struct error *err);

static int put_lines(struct trace_writer *w, const struct trace_batch *b, put_line *put, struct error *err)
{
    unsigned shift = (unsigned)__builtin_ctz(w->line_bytes);
    int status = 0;
    for (size_t i = 0; i < b->n && status == 0; i++) {
        uint64_t line = b->address[i] >> shift, last_byte = b->address[i] + (b->size[i] - 1u);
        uint64_t last = last_byte < b->address[i] ? line : last_byte >> shift;
        for (status = put(w, line, err); line < last && status == 0;)
            status = put(w, ++line, err);
    }
    return status;
}

/* --- oracleGeneral --- */

static struct entry *find(const struct oracle *o, uint64_t line)
{
    uint64_t h = line * UINT64_C(0x9e3779b97f4a7c15);
    for (h = (h ^ h >> 32) & (o->capacity - 1);; h = (h + 1) & (o->capacity - 1))
        if (o->table[h].last == 0 || o->table[h].line == line)
            return &o->table[h];
}

static int grow(struct oracle *o)
{
    struct oracle larger = {.capacity = o->capacity != 0 ? 2 * o->capacity : FIRST_CAPACITY};
    larger.table = calloc(larger.capacity, sizeof(*larger.table));
    if (larger.table == NULL)
        return -ENOMEM;
    for (uint64_t i = 0; i < o->capacity; i++)
        if (o->table[i].last != 0)
            *find(&larger, o->table[i].line) = o->table[i];
    free(o->table);
    o->table = larger.table;
    o->capacity = larger.capacity;
    return 0;
}

static int oracle_open(struct trace_writer *w, struct error *err)
{
    struct oracle *o = calloc(1, sizeof(*o));
    w->state = o;
    if (o == NULL || (o->window = malloc((size_t)WINDOW * RECORD_BYTES)) == NULL || grow(o) < 0)
        return no_memory(err);
    if (!w->out.made)
        return error_set(err, -ESPIPE, "oracleGeneral must go into a file: it is not written in order");
    return 0;
}

static int write_window(struct trace_writer *w, struct error *err)
{
    struct oracle *o = w->state;
    int status = trace_output_put(&w->out, o->window, (size_t)o->n * RECORD_BYTES, err);
    if (status == 0)
        status = trace_output_flush(&w->out, err);
    o->base += o->n;
    o->n = 0;
    return status;
}

/* Sets the number of the request that follows request i. */
static int set_next(struct trace_writer *w, uint64_t i, int64_t next, struct error *err)
{
    struct oracle *o = w->state;
    if (i >= o->base) {
        memcpy(o->window + (i - o->base) * RECORD_BYTES + NEXT_OFFSET, &next, sizeof(next));
        return 0;
    }
    off_t offset = (off_t)(i * RECORD_BYTES + NEXT_OFFSET);
    if (pwrite(w->out.fd, &next, sizeof(next), offset) != (ssize_t)sizeof(next))
        return error_set(err, -errno, "cannot write %s: %s", w->out.path, strerror(errno));
    return 0;
}

static int oracle_put(struct trace_writer *w, uint64_t line, struct error *err)
{
    struct oracle *o = w->state;
    int status = o->n == WINDOW ? write_window(w, err) : 0;
    if (status == 0 && 2 * o->lines >= o->capacity && grow(o) < 0)
        status = no_memory(err);
    if (status < 0)
        return status;
    uint64_t number = o->base + o->n;
    struct entry *e = find(o, line);
    if (e->last != 0)
        status = set_next(w, e->last - 1, (int64_t)number, err);
    else
        o->lines++;
    *e = (struct entry){.line = line, .last = number + 1};
    uint8_t *record = o->window + (size_t)o->n++ * RECORD_BYTES;
    uint32_t now = (uint32_t)(number / TIME_UNIT), size = w->line_bytes;
    int64_t none = -1;
    memcpy(record, &now, 4);
    memcpy(record + 4, &line, 8);
    memcpy(record + 12, &size, 4);
    memcpy(record + NEXT_OFFSET, &none, 8);
    return status;
}

static int oracle_write(struct trace_writer *w, const struct trace_batch *b, struct error *err)
{
    return put_lines(w, b, oracle_put, err);
}

static void oracle_close(struct trace_writer *w)
{
    struct oracle *o = w->state;
    if (o == NULL)
        return;
    free(o->window);
    free(o->table);
    free(o);
}

const struct trace_format trace_format_oracle = {
    .name = "oracleGeneral",
    .help = "libCacheSim, binary, lines",
    .open_write = oracle_open,
    .write = oracle_write,
    .flush = write_window,
    .finish = write_window,
    .close_write = oracle_close,
};

/* --- CSV --- */

static int csv_open(struct trace_writer *w, struct error *err)
{
    w->state = calloc(1, sizeof(uint64_t));
    if (w->state == NULL)
        return no_memory(err);
    return trace_text_put(w, err, "time,obj_id,obj_size\n");
}

static int csv_put(struct trace_writer *w, uint64_t line, struct error *err)
{
    uint64_t *number = w->state;
    return trace_text_put(w, err, "%llu,%llu,%u\n", (unsigned long long)(*number)++, (unsigned long long)line,
                          w->line_bytes);
}

static int csv_write(struct trace_writer *w, const struct trace_batch *b, struct error *err)
{
    return put_lines(w, b, csv_put, err);
}

const struct trace_format trace_format_libcachesim_csv = {
    .name = "libcachesim-csv",
    .help = "libCacheSim, CSV, lines",
    .open_write = csv_open,
    .write = csv_write,
};
