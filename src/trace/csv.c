/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - comma-separated values with a header line that names the columns, in any order:
 *
 *     address    required; hexadecimal with 0x, otherwise decimal
 *     size       bytes (default 1)
 *     rw         load or store, or l, s, r, w, in upper or lower case (default load)
 *     pc         as address (default 0, unknown)
 *     pid, tid   numbers (default 0)
 *     burst      1 where a burst begins, otherwise 0 or empty
 *
 * Other columns are ignored. All of these are written, in this order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "trace/formats.h"
#include "trace/text.h"

enum column_name { ADDRESS, SIZE, RW, PC, PID, TID, BURST, NAMES };
static const char *const names[NAMES] = {"address", "size", "rw", "pc", "pid", "tid", "burst"};
#define COLUMNS_MAX 32u
#define OTHER NAMES

struct csv {
    unsigned column[COLUMNS_MAX]; /* kind of each column, by position */
    unsigned columns;
};

/* Returns the field at *at without surrounding blanks and quotes; *at moves past the comma, or is NULL at the
 * end. */
static void next_field(const char **at, const char *end, const char **field, size_t *n)
{
    const char *comma = memchr(*at, ',', (size_t)(end - *at)), *stop = comma != NULL ? comma : end;
    const char *start = *at;
    *at = comma != NULL ? comma + 1 : NULL;
    while (start < stop && strchr(" \t\"", *start) != NULL)
        start++;
    while (stop > start && strchr(" \t\"", stop[-1]) != NULL)
        stop--;
    *field = start;
    *n = (size_t)(stop - start);
}

static int is_word(const char *field, size_t n, const char *word)
{
    return n == strlen(word) && strncasecmp(field, word, n) == 0;
}

/* 0, or -1 if there is no address column. */
static int parse_header(const char *line, const char *end, struct csv *c)
{
    int found = 0;
    c->columns = 0;
    while (line != NULL && c->columns < COLUMNS_MAX) {
        const char *field;
        size_t n;
        unsigned name = 0;
        next_field(&line, end, &field, &n);
        while (name < NAMES && !is_word(field, n, names[name]))
            name++;
        c->column[c->columns++] = name;
        found |= name == ADDRESS;
    }
    return found ? 0 : -1;
}

static int probe(const uint8_t *start, size_t n)
{
    struct csv c;
    const uint8_t *end = memchr(start, '\n', n);
    if (end == NULL || memchr(start, '\0', (size_t)(end - start)) != NULL)
        return 0;
    size_t length = (size_t)(end - start);
    length -= length > 0 && start[length - 1] == '\r';
    return parse_header((const char *)start, (const char *)start + length, &c) == 0 ? 1 : 0;
}

static int open_read(struct trace_reader *r, struct error *err)
{
    struct csv *c = calloc(1, sizeof(*c));
    const char *line;
    r->state = c;
    if (c == NULL)
        return error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
    int64_t n = trace_input_line(&r->in, &line, err);
    if (n < -1)
        return (int)n;
    n -= n > 0 && line[n - 1] == '\r';
    r->line = 1;
    if (n < 0 || parse_header(line, line + n, c) < 0)
        return error_set(err, -EBADMSG, "%s has no header line with a column 'address'", r->in.path);
    for (unsigned i = 0; i < c->columns; i++)
        r->info.sampled |= c->column[i] == BURST;
    return 0;
}

static int parse_number(const char *field, size_t n, uint64_t *value)
{
    const char *end = field + n;
    unsigned base = 10;
    if (n > 2 && field[0] == '0' && (field[1] == 'x' || field[1] == 'X')) {
        field += 2;
        base = 16;
    }
    return trace_text_number(&field, end, base, value) == 0 && field == end ? 0 : -1;
}

static int parse_rw(const char *field, size_t n)
{
    static const char *const words[] = {"load", "l", "r", "read", "store", "s", "w", "write"};
    for (int i = 0; i < 8; i++)
        if (is_word(field, n, words[i]))
            return i < 4 ? TRACE_LOAD : TRACE_STORE;
    return -1;
}

static int use_line(struct trace_reader *r, const char *line, const char *end)
{
    struct csv *c = r->state;
    uint64_t value[NAMES] = {[SIZE] = 1, [RW] = TRACE_LOAD};
    int have_address = 0;
    if (line == end)
        return 1;
    for (unsigned i = 0; i < c->columns && line != NULL; i++) {
        const char *field;
        size_t n;
        next_field(&line, end, &field, &n);
        unsigned name = c->column[i];
        if (name == OTHER || n == 0)
            continue;
        if (name == RW) {
            int rw = parse_rw(field, n);
            if (rw < 0)
                return -1;
            value[RW] = (uint64_t)rw;
        } else if (parse_number(field, n, &value[name]) < 0) {
            return -1;
        }
        have_address |= name == ADDRESS;
    }
    if (!have_address || value[SIZE] == 0 || value[SIZE] > UINT16_MAX || value[PID] > UINT32_MAX ||
        value[TID] > UINT32_MAX)
        return -1;
    int64_t thread = trace_threads_number(
        &r->threads, (struct trace_thread){.pid = (uint32_t)value[PID], .tid = (uint32_t)value[TID]});
    if (thread < 0)
        return -1;
    trace_arrays_add(r->arrays, value[ADDRESS], value[PC], value[SIZE], (uint8_t)value[RW], (uint32_t)thread,
                     value[BURST] != 0);
    return 1;
}

static int open_write(struct trace_writer *w, struct error *err)
{
    /* the column exists only if it has information */
    return trace_text_put(w, err, "address,size,rw,pc,pid,tid%s\n", w->sampled ? ",burst" : "");
}

static int write_batch(struct trace_writer *w, const struct trace_batch *b, struct error *err)
{
    int status = 0;
    for (size_t s = 0; s < b->nsegments; s++) {
        const struct trace_segment *segment = &b->segment[s];
        struct trace_thread thread = w->threads.thread[segment->thread];
        for (size_t i = segment->begin; i < segment->end && status == 0; i++) {
            const char *burst = !w->sampled ? "" : i == segment->begin && segment->burst ? ",1" : ",0";
            status =
                trace_text_put(w, err, "0x%llx,%u,%s,0x%llx,%u,%u%s\n", (unsigned long long)b->address[i],
                               b->size[i], b->rw[i] == TRACE_LOAD ? "load" : "store",
                               (unsigned long long)b->pc[i], thread.pid, thread.tid, burst);
        }
    }
    return status;
}

const struct trace_format trace_format_csv = {
    .name = "csv",
    .help = "address,size,rw,pc,pid,tid with a header line",
    .probe = probe,
    .open_read = open_read,
    .next = trace_text_next,
    .take_line = use_line,
    .open_write = open_write,
    .write = write_batch,
};
