/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usf.c - the sample files of the Uppsala architecture research team (libusf, version 0.2 of the format,
 * according to its published sources), if they contain traces. All numbers have the byte order of the writer,
 * here little endian.
 *
 *     "USF1" and a zero byte
 *     uint32 length of the header that follows
 *     uint16 version, 2 for 0.2, uint16 compression (0 none, 1 bzip2), uint32 flags,
 *     uint64 begin, uint64 end (seconds since 1970), uint32 line sizes, uint32 argc
 *     argc strings, each ended by a zero byte
 *
 * Flags: 1 accesses only, 2 bursts, 4 delta coding, 0x80 byte order of the writer. With flag 1 the rest is
 * accesses; otherwise each is an event: a byte (0 sample, 1 dangling, 2 burst, 3 trace) and its data. An
 * access is { uint64 pc, address, time; uint16 thread, length; uint8 type (0 read, 1 write, 2 both) }, 29
 * bytes. With delta coding a byte of flags comes first, and only differences to the previous access are
 * stored: bits 0, 1, 2: pc, address, time are a signed byte to be added; bits 4, 5, 6: thread, length, type
 * are unchanged.
 *
 * A file of samples (events 0 and 1) is not a trace and is refused here: see usf-samples.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trace/usf-format.h"

/* --- reading --- */

static int probe(const uint8_t *start, size_t n)
{
    return n >= USF_MAGIC_BYTES && memcmp(start, USF_MAGIC, USF_MAGIC_BYTES) == 0;
}

/* Joins the arguments with blanks. */
static char *join(const uint8_t *text, size_t n)
{
    char *command = malloc(n + 1);
    for (size_t i = 0; command != NULL && i < n; i++)
        command[i] = text[i] == '\0' || text[i] == '\n' ? ' ' : (char)text[i];
    while (n > 0 && command != NULL && command[n - 1] == ' ')
        n--;
    if (command != NULL)
        command[n] = '\0';
    return command;
}

static int open_read(struct trace_reader *r, struct error *err)
{
    struct usf *u = calloc(1, sizeof(*u));
    uint32_t length;
    uint16_t version, compression;
    r->state = u;
    if (u == NULL)
        return error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
    int64_t have = trace_input_need(&r->in, USF_MAGIC_BYTES + sizeof(length), err);
    if (have < 0)
        return (int)have;
    const uint8_t *at = r->in.buffer + r->in.at;
    if ((size_t)have < USF_MAGIC_BYTES + sizeof(length) || !probe(at, USF_MAGIC_BYTES))
        return error_set(err, -EBADMSG, "%s is not a USF file", r->in.path);
    memcpy(&length, at + USF_MAGIC_BYTES, sizeof(length));
    size_t whole = USF_MAGIC_BYTES + sizeof(length) + (size_t)length;
    if (length < USF_HEADER_BYTES || length > USF_HEADER_MAX)
        return error_set(err, -EBADMSG,
                         "%s is damaged in its header, or comes from a machine of another byte order",
                         r->in.path);
    have = trace_input_need(&r->in, whole, err);
    if (have < 0)
        return (int)have;
    if ((size_t)have < whole)
        return error_set(err, -EBADMSG, "%s is truncated in its header", r->in.path);
    at = r->in.buffer + r->in.at + USF_MAGIC_BYTES + sizeof(length);
    memcpy(&version, at, 2);
    memcpy(&compression, at + 2, 2);
    memcpy(&u->flags, at + 4, 4);
    if ((u->flags & USF_FLAG_NATIVE_ENDIAN) == 0)
        return error_set(err, -EBADMSG, "%s comes from a machine of another byte order", r->in.path);
    if (version != USF_VERSION)
        return error_set(err, -EPROTO, "%s is of version %u of the format, this program reads 0.2",
                         r->in.path, version);
    if (compression != 0)
        return error_set(err, -EPROTO, "%s contains compressed data: convert it with 'usf2usf -c none'",
                         r->in.path);
    if ((u->command = join(at + USF_HEADER_BYTES, length - USF_HEADER_BYTES)) == NULL)
        return error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
    r->info.source = u->command;
    r->info.sampled = (u->flags & USF_FLAG_BURST) != 0;
    r->in.at += whole;
    return 0;
}

/* Size of a delta-coded access with this first byte (of flags). */
static size_t delta_bytes(uint8_t flags)
{
    size_t n = 1;
    for (unsigned i = 0; i < 3; i++)
        n += (flags >> i & 1) != 0 ? 1 : 8;
    return n + ((flags & 0x10) != 0 ? 0 : 2) + ((flags & 0x20) != 0 ? 0 : 2) + ((flags & 0x40) != 0 ? 0 : 1);
}

static void get_delta(struct usf_access *a, const uint8_t *at)
{
    uint8_t flags = *at++;
    for (unsigned i = 0; i < 3; i++) {
        if ((flags >> i & 1) != 0) {
            a->number[i] += (uint64_t)(int64_t)(int8_t)*at++;
        } else {
            memcpy(&a->number[i], at, 8);
            at += 8;
        }
    }
    if ((flags & 0x10) == 0) {
        memcpy(&a->thread, at, 2);
        at += 2;
    }
    if ((flags & 0x20) == 0) {
        memcpy(&a->length, at, 2);
        at += 2;
    }
    if ((flags & 0x40) == 0)
        a->type = *at;
}

int usf_get_access(struct trace_reader *r, struct error *err)
{
    struct usf *u = r->state;
    unsigned long long offset = trace_input_offset(&r->in);
    size_t n = USF_ACCESS_BYTES;
    int64_t have = trace_input_need(&r->in, (u->flags & USF_FLAG_DELTA) != 0 ? 1 : n, err);
    if (have > 0 && (u->flags & USF_FLAG_DELTA) != 0) {
        n = delta_bytes(r->in.buffer[r->in.at]);
        have = trace_input_need(&r->in, n, err);
    }
    if (have < 0)
        return (int)have;
    if (have == 0 && (u->flags & USF_FLAG_TRACE) != 0)
        return 0;
    if ((size_t)have < n)
        return trace_damaged(r, "truncated at byte %llu", offset);
    const uint8_t *at = r->in.buffer + r->in.at;
    if ((u->flags & USF_FLAG_DELTA) != 0) {
        get_delta(&u->last, at);
    } else {
        memcpy(u->last.number, at, 24);
        memcpy(&u->last.thread, at + 24, 2);
        memcpy(&u->last.length, at + 26, 2);
        u->last.type = at[28];
    }
    if (u->last.type >= USF_TYPES)
        return trace_damaged(r, "damaged at byte %llu: no access has type %u", offset, u->last.type);
    r->in.at += n;
    return 1;
}

/* 1: an access is in u->last; 0: the end, or damage. */
static int get_event(struct trace_reader *r, struct error *err)
{
    struct usf *u = r->state;
    if ((u->flags & USF_FLAG_TRACE) != 0)
        return usf_get_access(r, err);
    for (;;) {
        unsigned long long offset = trace_input_offset(&r->in);
        int64_t have = trace_input_need(&r->in, 1, err);
        if (have <= 0)
            return (int)have;
        uint8_t type = r->in.buffer[r->in.at];
        if (type < USF_EVENT_BURST)
            return trace_damaged(
                r, "holds samples from byte %llu on, not a trace: 'cachegram sample' takes them", offset);
        if (type > USF_EVENT_TRACE)
            return trace_damaged(r, "damaged at byte %llu: no event has type %u", offset, type);
        r->in.at++;
        if (type == USF_EVENT_TRACE)
            return usf_get_access(r, err);
        have = trace_input_need(&r->in, 8, err);
        if (have < 0)
            return (int)have;
        if (have < 8)
            return trace_damaged(r, "truncated at byte %llu", offset);
        r->in.at += 8; /* the time */
        u->burst = 1;
    }
}

static int next(struct trace_reader *r, struct error *err)
{
    struct usf *u = r->state;
    while (r->arrays->n + 2 <= TRACE_BATCH) {
        int status = get_event(r, err);
        if (status < 0)
            return status;
        if (status == 0)
            break;
        const struct usf_access *a = &u->last;
        if (a->type > USF_BOTH)
            continue; /* prefetches, instructions */
        int64_t thread = trace_threads_number(&r->threads, (struct trace_thread){.tid = a->thread});
        if (thread < 0)
            return error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
        uint64_t size = a->length == USF_LENGTH_UNKNOWN ? 1 : a->length;
        if (a->type != USF_WRITE) {
            trace_arrays_add(r->arrays, a->number[1], a->number[0], size, TRACE_LOAD, (uint32_t)thread,
                             u->burst);
            u->burst = 0;
        }
        if (a->type != USF_READ) {
            trace_arrays_add(r->arrays, a->number[1], a->number[0], size, TRACE_STORE, (uint32_t)thread,
                             u->burst);
            u->burst = 0;
        }
    }
    return r->arrays->n > 0;
}

static void close_read(struct trace_reader *r)
{
    struct usf *u = r->state;
    if (u != NULL)
        free(u->command);
    free(u);
}

/* --- writing --- */

static int open_write(struct trace_writer *w, struct error *err)
{
    struct usf *u = calloc(1, sizeof(*u));
    uint8_t header[USF_HEADER_BYTES] = {0};
    w->state = u;
    if (u == NULL)
        return error_set(err, -ENOMEM, "out of memory for writing a trace");
    u->flags = USF_FLAG_NATIVE_ENDIAN | USF_FLAG_DELTA | (w->sampled ? USF_FLAG_BURST : USF_FLAG_TRACE);
    size_t text = strlen(w->source);
    if (text > USF_HEADER_MAX / 2)
        text = USF_HEADER_MAX / 2;
    uint32_t argc = text > 0, length = (uint32_t)(USF_HEADER_BYTES + (text > 0 ? text + 1 : 0));
    uint16_t version = USF_VERSION;
    uint64_t now = (uint64_t)time(NULL);
    memcpy(header, &version, 2);
    memcpy(header + 4, &u->flags, 4);
    memcpy(header + 8, &now, 8);
    memcpy(header + 16, &now, 8);
    memcpy(header + 28, &argc, 4);
    int status = trace_output_put(&w->out, USF_MAGIC, USF_MAGIC_BYTES, err);
    if (status == 0)
        status = trace_output_put(&w->out, &length, sizeof(length), err);
    if (status == 0)
        status = trace_output_put(&w->out, header, sizeof(header), err);
    if (status == 0 && text > 0)
        status = trace_output_put(&w->out, w->source, text, err);
    if (status == 0 && text > 0)
        status = trace_output_put(&w->out, "", 1, err);
    return status;
}

/* Writes a delta-coded access to `to`, which has space for an access and its flags; returns its length. */
static size_t put_delta(struct usf_access *last, const struct usf_access *a, uint8_t *to)
{
    uint8_t *at = to + 1;
    uint8_t flags = 0;
    for (unsigned i = 0; i < 3; i++) {
        int64_t delta = (int64_t)(a->number[i] - last->number[i]);
        if (delta == (int8_t)delta) {
            flags |= (uint8_t)(1u << i);
            *at++ = (uint8_t)delta;
        } else {
            memcpy(at, &a->number[i], 8);
            at += 8;
        }
    }
    if (a->thread == last->thread) {
        flags |= 0x10;
    } else {
        memcpy(at, &a->thread, 2);
        at += 2;
    }
    if (a->length == last->length) {
        flags |= 0x20;
    } else {
        memcpy(at, &a->length, 2);
        at += 2;
    }
    if (a->type == last->type)
        flags |= 0x40;
    else
        *at++ = a->type;
    *to = flags;
    *last = *a;
    return (size_t)(at - to);
}

static int put_one(struct trace_writer *w, const struct trace_batch *b, size_t i, uint32_t thread, int burst,
                   struct error *err)
{
    struct usf *u = w->state;
    uint8_t bytes[1 + 8 + 1 + 1 + USF_ACCESS_BYTES];
    size_t n = 0;
    if (w->sampled && burst) {
        bytes[n++] = USF_EVENT_BURST;
        memcpy(bytes + n, &u->time, 8);
        n += 8;
    }
    if (w->sampled)
        bytes[n++] = USF_EVENT_TRACE;
    struct usf_access a = {.number = {b->pc[i], b->address[i], u->time++},
                           .thread = (uint16_t)thread,
                           .length = b->size[i],
                           .type = b->rw[i] == TRACE_STORE ? USF_WRITE : USF_READ};
    n += put_delta(&u->last, &a, bytes + n);
    return trace_output_put(&w->out, bytes, n, err);
}

static int write_batch(struct trace_writer *w, const struct trace_batch *b, struct error *err)
{
    int status = 0;
    for (size_t s = 0; s < b->nsegments; s++) {
        const struct trace_segment *segment = &b->segment[s];
        for (size_t i = segment->begin; i < segment->end && status == 0; i++)
            status = put_one(w, b, i, segment->thread, segment->burst && i == segment->begin, err);
    }
    return status;
}

const struct trace_format trace_format_usf = {
    .name = "usf",
    .help = "Uppsala sample files that contain traces",
    .probe = probe,
    .open_read = open_read,
    .next = next,
    .close_read = close_read,
    .open_write = open_write,
    .write = write_batch,
};
