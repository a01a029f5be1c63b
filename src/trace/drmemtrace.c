/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drmemtrace.c - reads the final ("canonical") offline traces of DynamoRIO's drmemtrace, decompressed: a
 * sequence of records of 12 bytes, { uint16 type, uint16 size, uint64 value } (trace_entry.h of that project,
 * versions 2 to 5 of the format). A data record belongs to the previous instruction record, and to the thread
 * and process named last. The raw traces, before post-processing, require the program's binaries and cannot
 * be read.
 *
 * Such traces are stored compressed; decompress them in a pipe: `zcat x.trace.gz | cachegram import - ...`,
 * or `unzip -p x.trace.zip | ...`.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/formats.h"

#define RECORD_BYTES 12u

/* Types of records; the values are those of the format. */
enum {
    READ = 0,
    WRITE = 1,
    INSTR = 10, /* .. INSTR_RETURN: instructions of all kinds */
    INSTR_RETURN = 16,
    INSTR_BUNDLE = 17, /* `size` more instructions after the previous one */
    THREAD = 22,
    PID = 24,
    HEADER = 25,
    MARKER = 28,
    INSTR_NO_FETCH = 29, /* further iterations of a repeated string instruction */
    INSTR_MAYBE_FETCH = 30,
    INSTR_SYSENTER = 31,
    INSTR_TAKEN_JUMP = 48,
    INSTR_UNTAKEN_JUMP = 49,
    TYPES_KNOWN = 100 /* later versions may have more, which are ignored */
};
#define MARKER_WINDOW 14u /* `size` of a marker: a new tracing window has begun */
#define VERSION_MIN 2u
#define VERSION_MAX 63u

struct drmemtrace {
    uint64_t pc, window;
    struct trace_thread thread;
    int64_t number; /* of the thread; -1: not looked up yet */
    int burst;      /* the next reference begins one */
};

struct record {
    uint16_t type, size;
    uint64_t value;
};

static struct record get(const uint8_t *at)
{
    struct record record;
    memcpy(&record.type, at, 2);
    memcpy(&record.size, at + 2, 2);
    memcpy(&record.value, at + 4, 8);
    return record;
}

static int probe(const uint8_t *start, size_t n)
{
    if (n < 2 * RECORD_BYTES)
        return 0;
    struct record first = get(start), second = get(start + RECORD_BYTES);
    return first.type == HEADER && first.value >= VERSION_MIN && first.value <= VERSION_MAX &&
           second.type < TYPES_KNOWN;
}

static int open_read(struct trace_reader *r, struct error *err)
{
    struct drmemtrace *d = calloc(1, sizeof(*d));
    r->state = d;
    if (d == NULL)
        return error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
    d->number = -1;
    if (!probe(r->in.buffer + r->in.at, r->in.end - r->in.at))
        return error_set(err, -EBADMSG, "%s is not a decompressed final trace of drmemtrace", r->in.path);
    return 0;
}

static int is_instruction(unsigned type)
{
    return (type >= INSTR && type <= INSTR_RETURN) || type == INSTR_SYSENTER || type == INSTR_TAKEN_JUMP ||
           type == INSTR_UNTAKEN_JUMP;
}

static int use(struct trace_reader *r, const struct record *record)
{
    struct drmemtrace *d = r->state;
    if (is_instruction(record->type) || record->type == INSTR_NO_FETCH || record->type == INSTR_MAYBE_FETCH) {
        d->pc = record->value;
        r->info.instructions += is_instruction(record->type) ? 1 : 0;
    } else if (record->type == INSTR_BUNDLE) {
        r->info.instructions += record->size;
    } else if (record->type == THREAD) {
        d->thread.tid = (uint32_t)record->value;
        d->number = -1;
    } else if (record->type == PID) {
        d->thread.pid = (uint32_t)record->value;
        d->number = -1;
    } else if (record->type == MARKER && record->size == MARKER_WINDOW && record->value != d->window) {
        d->window = record->value;
        d->burst = 1;
        r->info.sampled = 1;
    } else if (record->type == READ || record->type == WRITE) {
        if (d->number < 0 && (d->number = trace_threads_number(&r->threads, d->thread)) < 0)
            return -ENOMEM;
        trace_arrays_add(r->arrays, record->value, d->pc, record->size,
                         record->type == READ ? TRACE_LOAD : TRACE_STORE, (uint32_t)d->number, d->burst);
        d->burst = 0;
    }
    return 0;
}

static int next(struct trace_reader *r, struct error *err)
{
    while (r->arrays->n < TRACE_BATCH) {
        unsigned long long offset = trace_input_offset(&r->in);
        int64_t have = trace_input_need(&r->in, RECORD_BYTES, err);
        if (have < 0)
            return (int)have;
        if (have == 0)
            break;
        if (have < (int64_t)RECORD_BYTES) {
            trace_damaged(r, "truncated at byte %llu", offset);
            break;
        }
        struct record record = get(r->in.buffer + r->in.at);
        if (record.type >= TYPES_KNOWN) {
            trace_damaged(r, "damaged at byte %llu: no record has type %u", offset, record.type);
            break;
        }
        if (use(r, &record) < 0)
            return error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
        r->in.at += RECORD_BYTES;
    }
    return r->arrays->n > 0;
}

const struct trace_format trace_format_drmemtrace = {
    .name = "drmemtrace",
    .help = "DynamoRIO, final offline traces, decompressed",
    .probe = probe,
    .open_read = open_read,
    .next = next,
};
