/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgtrace.c - reads cachegram's format: docs/trace-format.md.
 *
 * Nothing in the file is trusted. A block is checked and decompressed completely before its first reference
 * is returned, so that either all of a block is used or nothing. Blocks are read in order. Of the index at
 * the end only the number of references is used; it is missing in a pipe and if the recorder was killed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/leb128.h"
#include "trace/formats.h"
#include "trace/cgtrace-layout.h"
#include "trace/cgtrace-write.h"

struct cgtrace_reader {
    struct column_decoder *decoder;
    ZSTD_DCtx *zstd;
    char *source;
    uint64_t start; /* offset of the first block */
    uint8_t *expanded;
    size_t expanded_capacity;
    const uint8_t *segments, *segments_end; /* stream of the block, from the read position to its end */
    struct trace_segment segment;           /* the current one; begin..end: what remains */
    uint32_t left;                          /* remaining references of the block */
    uint64_t next;                          /* number of the next reference */
};

static int cgtrace_probe(const uint8_t *start, size_t n)
{
    return n >= 8 && memcmp(start, CGTRACE_MAGIC, 8) == 0;
}

static int read_header(struct trace_reader *r, struct error *err)
{
    struct cgtrace_reader *o = r->state;
    struct cgtrace_header header;
    int64_t have = trace_input_need(&r->in, sizeof(header), err);
    if (have < 0)
        return (int)have;
    if ((size_t)have < sizeof(header))
        return error_set(err, -EBADMSG, "%s is truncated in its header", r->in.path);
    memcpy(&header, r->in.buffer + r->in.at, sizeof(header));
    if (header.version > CGTRACE_VERSION)
        return error_set(err, -EPROTO,
                         "%s is of version %u of the format, this program reads up to %u: update cachegram",
                         r->in.path, header.version, CGTRACE_VERSION);
    if (header.source_bytes > CGTRACE_SOURCE_MAX)
        return error_set(err, -EBADMSG, "%s is damaged in its header", r->in.path);
    have = trace_input_need(&r->in, sizeof(header) + header.source_bytes, err);
    if (have < 0)
        return (int)have;
    const uint8_t *text = r->in.buffer + r->in.at + sizeof(header);
    uint32_t check = cgtrace_check(CGTRACE_CHECK_START, &header, offsetof(struct cgtrace_header, check));
    if ((size_t)have < sizeof(header) + header.source_bytes ||
        cgtrace_check(check, text, header.source_bytes) != header.check)
        return error_set(err, -EBADMSG, "%s is damaged in its header", r->in.path);
    o->source = malloc(header.source_bytes + 1u);
    if (o->source == NULL)
        return error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
    memcpy(o->source, text, header.source_bytes);
    o->source[header.source_bytes] = '\0';
    r->in.at += sizeof(header) + header.source_bytes;
    r->info.source = o->source;
    r->info.sampled = (header.flags & CGTRACE_SAMPLED) != 0;
    o->start = trace_input_offset(&r->in);
    return 0;
}

/* Reads n bytes at that offset of the file. */
static int read_at(const struct trace_reader *r, void *data, size_t n, uint64_t offset)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(r->in.fd, (uint8_t *)data + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -EIO;
        done += (size_t)got;
    }
    return 0;
}

/* Reads the index at the file's end, if it is there and complete. -ENOMEM, or 0. */
static int read_index(struct trace_reader *r)
{
    struct cgtrace_reader *o = r->state;
    struct cgtrace_end end;
    struct cgtrace_index index;
    uint64_t size = r->in.file_bytes;
    if (size < o->start + sizeof(end) + sizeof(index) ||
        read_at(r, &end, sizeof(end), size - sizeof(end)) < 0 ||
        memcmp(end.magic, CGTRACE_END_MAGIC, sizeof(end.magic)) != 0 || end.index_offset < o->start ||
        end.index_offset > size - sizeof(end) - sizeof(index) ||
        read_at(r, &index, sizeof(index), end.index_offset) < 0)
        return 0;
    uint64_t bytes = size - sizeof(end) - sizeof(index) - end.index_offset;
    if (index.magic != CGTRACE_INDEX || bytes % sizeof(struct cgtrace_entry) != 0 ||
        index.blocks != bytes / sizeof(struct cgtrace_entry))
        return 0;
    struct cgtrace_entry *entries = malloc(bytes + 1);
    if (entries == NULL)
        return -ENOMEM;
    size_t checked_from = offsetof(struct cgtrace_index, references);
    uint32_t check = cgtrace_check(CGTRACE_CHECK_START, (const uint8_t *)&index + checked_from,
                                   sizeof(index) - checked_from);
    if (read_at(r, entries, bytes, end.index_offset + sizeof(index)) == 0 &&
        cgtrace_check(check, entries, bytes) == index.check)
        r->info.references = index.references;
    free(entries);
    return 0;
}

static int cgtrace_open_read(struct trace_reader *r, struct error *err)
{
    struct cgtrace_reader *o = calloc(1, sizeof(*o));
    r->state = o;
    if (o == NULL || (o->decoder = column_decoder_new()) == NULL || (o->zstd = ZSTD_createDCtx()) == NULL)
        return error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
    int status = read_header(r, err);
    if (status == 0 && r->in.file_bytes != 0 && read_index(r) < 0)
        status = error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
    return status;
}

static void cgtrace_close_read(struct trace_reader *r)
{
    struct cgtrace_reader *o = r->state;
    if (o == NULL)
        return;
    column_decoder_free(o->decoder);
    ZSTD_freeDCtx(o->zstd);
    free(o->source);
    free(o->expanded);
    free(o);
}

/* --- blocks --- */

static uint64_t frame_bytes(const struct cgtrace_block *b)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < CGTRACE_STREAMS; i++)
        sum += b->stream_bytes[i];
    return sum;
}

static int block_is_sound(const struct cgtrace_block *b)
{
    size_t checked_from = offsetof(struct cgtrace_block, first);
    return b->magic == CGTRACE_BLOCK &&
           b->check == cgtrace_check(CGTRACE_CHECK_START, (const uint8_t *)b + checked_from,
                                     sizeof(*b) - checked_from) &&
           b->references > 0 && b->references <= COLUMNS_REFERENCES && frame_bytes(b) <= CGTRACE_PAYLOAD_MAX;
}

/* Decompresses the block's frames, which are in the input; 0 or -EBADMSG, -ENOMEM. */
static int expand(struct trace_reader *r, const struct cgtrace_block *b,
                  struct column_bytes streams[CGTRACE_STREAMS])
{
    struct cgtrace_reader *o = r->state;
    const uint8_t *frames = r->in.buffer + r->in.at + sizeof(*b), *frame = frames;
    size_t total = 0, used = 0;
    for (unsigned i = 0; i < CGTRACE_STREAMS; frame += b->stream_bytes[i++]) {
        unsigned long long n = ZSTD_getFrameContentSize(frame, b->stream_bytes[i]);
        if (n == ZSTD_CONTENTSIZE_UNKNOWN || n == ZSTD_CONTENTSIZE_ERROR || n > CGTRACE_STREAM_MAX)
            return -EBADMSG;
        streams[i].n = (size_t)n;
        total += (size_t)n;
    }
    if (total > o->expanded_capacity) {
        free(o->expanded);
        o->expanded_capacity = total + total / 4;
        if ((o->expanded = malloc(o->expanded_capacity)) == NULL) {
            o->expanded_capacity = 0;
            return -ENOMEM;
        }
    }
    frame = frames;
    for (unsigned i = 0; i < CGTRACE_STREAMS; frame += b->stream_bytes[i++]) {
        uint8_t *to = o->expanded + used;
        if (ZSTD_decompressDCtx(o->zstd, to, streams[i].n, frame, b->stream_bytes[i]) != streams[i].n)
            return -EBADMSG;
        streams[i].data = to;
        used += streams[i].n;
    }
    return 0;
}

/* Reads the next segment of the block, and its thread. 0, -EBADMSG, -ENOMEM. */
static int next_segment(struct trace_reader *r)
{
    struct cgtrace_reader *o = r->state;
    uint64_t count, number, pid, tid;
    const uint8_t **at = &o->segments, *end = o->segments_end;
    if (leb128_take(at, end, &count) < 0 || leb128_take(at, end, &number) < 0 ||
        leb128_take(at, end, &pid) < 0 || leb128_take(at, end, &tid) < 0 || count >> 1 == 0 ||
        count >> 1 > o->left || number >= TRACE_THREADS_MAX || pid > UINT32_MAX || tid > UINT32_MAX)
        return -EBADMSG;
    o->segment = (struct trace_segment){
        .end = (uint32_t)(count >> 1), .thread = (uint32_t)number, .burst = (uint32_t)count & 1};
    struct trace_thread thread = {.pid = (uint32_t)pid, .tid = (uint32_t)tid};
    if (number < r->threads.n && memcmp(&r->threads.thread[number], &thread, sizeof(thread)) == 0)
        return 0;
    return trace_threads_set(&r->threads, (uint32_t)number, thread);
}

/* 1: a block was begun, 0: the end (damaged or not), negative: an error. */
static int begin_block(struct trace_reader *r, struct error *err)
{
    struct cgtrace_reader *o = r->state;
    struct cgtrace_block b;
    struct column_bytes streams[CGTRACE_STREAMS];
    unsigned long long offset = trace_input_offset(&r->in);
    int64_t have = trace_input_need(&r->in, sizeof(uint32_t), err);
    if (have < 0)
        return (int)have;
    if (have == 0)
        return trace_damaged(r, "truncated after reference %llu: its recording did not complete",
                             (unsigned long long)o->next);
    if ((size_t)have >= sizeof(uint32_t) &&
        memcmp(r->in.buffer + r->in.at, &(uint32_t){CGTRACE_INDEX}, 4) == 0)
        return 0;
    have = trace_input_need(&r->in, sizeof(b), err);
    if (have < 0)
        return (int)have;
    if ((size_t)have < sizeof(b))
        return trace_damaged(r, "truncated at byte %llu, after reference %llu", offset,
                             (unsigned long long)o->next);
    memcpy(&b, r->in.buffer + r->in.at, sizeof(b));
    if (!block_is_sound(&b) || b.first != o->next)
        return trace_damaged(r, "damaged at byte %llu, after reference %llu", offset,
                             (unsigned long long)o->next);
    size_t n = sizeof(b) + (size_t)frame_bytes(&b);
    have = trace_input_need(&r->in, n, err);
    if (have < 0)
        return (int)have;
    if ((size_t)have < n)
        return trace_damaged(r, "truncated at byte %llu, after reference %llu", offset,
                             (unsigned long long)o->next);
    int status = expand(r, &b, streams);
    if (status == -ENOMEM)
        return error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
    if (status < 0)
        return trace_damaged(r, "damaged at byte %llu, after reference %llu", offset,
                             (unsigned long long)o->next);
    r->in.at += n;
    column_decoder_begin(o->decoder, streams + 1);
    o->segments = streams[CGTRACE_SEGMENTS].data;
    o->segments_end = o->segments + streams[CGTRACE_SEGMENTS].n;
    o->segment = (struct trace_segment){0};
    o->left = b.references;
    r->info.instructions = b.instructions;
    return 1;
}

/* Decodes references of the current block until the arrays are full. */
static int decode(struct trace_reader *r, size_t limit)
{
    struct cgtrace_reader *o = r->state;
    struct trace_arrays *a = r->arrays;
    size_t n = o->left < limit ? o->left : limit;
    while (a->n < n) {
        if (o->segment.begin == o->segment.end) {
            int status = next_segment(r);
            if (status < 0)
                return status;
        }
        size_t begin = a->n, count = o->segment.end - o->segment.begin;
        if (count > n - begin)
            count = n - begin;
        a->n += count;
        a->segment[a->nsegments++] = (struct trace_segment){.begin = (uint32_t)begin,
                                                            .end = (uint32_t)a->n,
                                                            .thread = o->segment.thread,
                                                            .burst = o->segment.burst};
        o->segment.begin += (uint32_t)count;
        o->segment.burst = 0;
    }
    int status = column_decode(o->decoder, n, a->address, a->pc, a->size, a->rw);
    o->left -= (uint32_t)n;
    o->next += n;
    return status;
}

static int cgtrace_next(struct trace_reader *r, struct error *err)
{
    struct cgtrace_reader *o = r->state;
    if (o->left == 0) {
        int status = begin_block(r, err);
        if (status <= 0)
            return status;
    }
    uint64_t before = o->next;
    int status = decode(r, TRACE_BATCH);
    if (status == -ENOMEM)
        return error_set(err, -ENOMEM, "out of memory for reading %s", r->in.path);
    if (status < 0) { /* despite valid check sums: a forged file */
        r->arrays->n = r->arrays->nsegments = 0;
        return trace_damaged(r, "damaged after reference %llu", (unsigned long long)before);
    }
    return 1;
}

const struct trace_format trace_format_cachegram = {
    .name = "cachegram",
    .help = "cachegram's format: small, with check sums",
    .probe = cgtrace_probe,
    .open_read = cgtrace_open_read,
    .next = cgtrace_next,
    .close_read = cgtrace_close_read,
    .open_write = cgtrace_open_write,
    .write = cgtrace_write,
    .flush = cgtrace_flush,
    .finish = cgtrace_finish,
    .close_write = cgtrace_close_write,
};
