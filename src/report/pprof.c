/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof.c - writes profile.proto of pprof (https://github.com/google/pprof/blob/main/proto/profile.proto).
 *
 * A message is a sequence of fields, each a key (number * 8 + type) and a value: type 0 is a varint, type 2 a
 * length and so many bytes. Order does not matter. Nested messages are written to a buffer first, as their
 * length comes before them.
 */
#include "report/calls.h"
#include "report/export.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define PER_REFERENCES 1e9

enum { VARINT = 0, BYTES = 2 };

struct buffer {
    uint8_t *data;
    size_t n, capacity;
    int failed; /* out of memory */
};

static void put_byte(struct buffer *b, uint8_t byte)
{
    if (ARRAY_GROW(b->data, b->n, b->capacity) < 0)
        b->failed = 1;
    else
        b->data[b->n++] = byte;
}

static void put_varint(struct buffer *b, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        put_byte(b, (uint8_t)(value | 128));
    put_byte(b, (uint8_t)value);
}

static void put_number(struct buffer *b, unsigned field, uint64_t value)
{
    put_varint(b, field * 8 + VARINT);
    put_varint(b, value);
}

static void put_bytes(struct buffer *b, unsigned field, const void *data, size_t n)
{
    const uint8_t *bytes = data;
    put_varint(b, field * 8 + BYTES);
    put_varint(b, n);
    for (size_t i = 0; i < n; i++)
        put_byte(b, bytes[i]);
}

/* Appends a nested message, and empties it. */
static void put_message(struct buffer *b, unsigned field, struct buffer *message)
{
    put_bytes(b, field, message->data, message->n);
    b->failed |= message->failed;
    message->n = 0;
}

struct writing {
    const struct analysis_hotspots *h;
    struct buffer all, message, inner;
    uint64_t nstrings;
};

/* The index of a new entry of the table of strings. Invalid UTF-8, which protobuf does not allow, becomes
 * '?'. */
static uint64_t add_string(struct writing *w, const char *text)
{
    char *plain = strdup(text);
    if (plain) {
        report_make_plain(plain);
        put_bytes(&w->all, 6, plain, strlen(plain));
    }
    w->all.failed |= !plain;
    free(plain);
    return w->nstrings++;
}

static void add_value_type(struct writing *w, const char *type, const char *unit)
{
    uint64_t type_index = add_string(w, type), unit_index = add_string(w, unit);
    put_number(&w->message, 1, type_index);
    put_number(&w->message, 2, unit_index);
    put_message(&w->all, 1, &w->message);
}

/* Ids of mappings and functions are places of images and frames in the tables, from 1. */
static void add_images(struct writing *w)
{
    for (size_t i = 0; i < w->h->nimages; i++) {
        uint64_t path = add_string(w, w->h->images[i].path),
                 build_id = add_string(w, w->h->images[i].build_id);
        put_number(&w->message, 1, i + 1);
        put_number(&w->message, 5, path);
        put_number(&w->message, 6, build_id);
        /* Functions, files, lines and inlined functions are in the profile: pprof need not look them up. */
        for (unsigned has = 7; has <= 10; has++)
            put_number(&w->message, has, 1);
        put_message(&w->all, 3, &w->message);
    }
}

static void add_frames(struct writing *w)
{
    for (size_t i = 0; i < w->h->nframes; i++) {
        const struct profile_frame *frame = &w->h->frames[i];
        uint64_t name = add_string(w, *frame->function ? frame->function : "[unknown]"),
                 file = add_string(w, frame->file);
        put_number(&w->message, 1, i + 1);
        /* Without a mangled name: pprof takes one that is equal for a sign that it has to shorten the name
         * itself, as one of C++, which leaves "::fold" of <Iter<T> as Iterator>::fold. */
        put_number(&w->message, 2, name);
        put_number(&w->message, 4, file);
        put_message(&w->all, 5, &w->message);
    }
}

static void add_location(struct writing *w, uint64_t id, const struct profile_image *image, uint64_t offset,
                         const struct profile_frame *frame)
{
    size_t most = w->h->nframes; /* of a damaged profile frames may form a circle */
    put_number(&w->message, 1, id);
    if (image)
        put_number(&w->message, 2, (uint64_t)(image - w->h->images) + 1);
    if (offset != PROFILE_SITE_REST)
        put_number(&w->message, 3, offset);
    for (; frame && most > 0; frame = analysis_caller(w->h, frame), most--) {
        put_number(&w->inner, 1, (uint64_t)(frame - w->h->frames) + 1);
        put_number(&w->inner, 2, frame->line);
        put_message(&w->message, 4, &w->inner);
    }
    put_message(&w->all, 4, &w->message);
}

/* Locations are the rows, then the calls, from 1. A row has a sample for each path of calls; its references
 * are divided like its misses. */
static void add_row(struct writing *w, size_t i, double scale)
{
    const struct analysis_hotspot *row = &w->h->rows[i];
    struct report_call_path path;
    add_location(w, i + 1, row->image, row->offset, row->frame ? row->frame : row->outer);
    for (size_t next = 0; report_next_path(w->h, row, &next, &path);) {
        put_varint(&w->inner, i + 1);
        for (size_t k = 0; k < path.n; k++)
            put_varint(&w->inner, w->h->n + 1 + (uint64_t)(path.calls[k] - w->h->calls));
        put_message(&w->message, 1, &w->inner);
        put_varint(&w->inner, (uint64_t)round(row->shares.misses * scale * path.share));
        put_varint(&w->inner, (uint64_t)round(row->shares.references * scale * path.share));
        put_message(&w->message, 2, &w->inner);
        put_message(&w->all, 2, &w->message);
    }
}

int report_pprof(FILE *out, const struct analysis_hotspots *h)
{
    struct writing w = {.h = h};
    const char *unit = h->full ? "count" : "per_1e9_references";
    double scale = h->full || !(h->total.references > 0) ? 1 : PER_REFERENCES / h->total.references;
    add_string(&w, ""); /* required to be the first one */
    add_value_type(&w, "misses", unit);
    add_value_type(&w, "references", unit);
    add_images(&w);
    add_frames(&w);
    for (size_t i = 0; i < h->n; i++)
        add_row(&w, i, scale);
    for (size_t i = 0; i < h->ncalls; i++)
        add_location(&w, h->n + 1 + i, h->calls[i].image, h->calls[i].offset, h->calls[i].frame);
    put_number(&w.all, 14, add_string(&w, "misses"));
    int failed = w.all.failed;
    if (!failed)
        fwrite(w.all.data, 1, w.all.n, out);
    free(w.all.data);
    free(w.message.data);
    free(w.inner.data);
    return failed ? -ENOMEM : 0;
}
