/* SPDX-License-Identifier: Apache-2.0 */
/*
 * internal.h - the interface of a format. One file per format; a new format is a new file and a line in the
 * table in trace.c.
 */
#ifndef CACHEGRAM_TRACE_INTERNAL_H
#define CACHEGRAM_TRACE_INTERNAL_H

#include <stdio.h>
#include "trace/input.h"
#include "trace/output.h"
#include "trace/trace.h"

/* Threads by number, and numbers by thread. */
struct trace_threads {
    struct trace_thread *thread;
    uint32_t n, capacity;
    uint32_t newest; /* the last one requested: usually requested again */
};
/* Bounds the memory that a damaged file can make us allocate. */
#define TRACE_THREADS_MAX (UINT32_C(1) << 20)
int64_t trace_threads_find(struct trace_threads *t, struct trace_thread thread);        /* or -ENOENT */
int64_t trace_threads_number(struct trace_threads *t, struct trace_thread thread);      /* or -ENOMEM */
int trace_threads_set(struct trace_threads *t, uint32_t i, struct trace_thread thread); /* 0 or -ENOMEM */

/* Arrays of a batch; readers fill them. */
struct trace_arrays {
    uint64_t address[TRACE_BATCH];
    uint64_t pc[TRACE_BATCH];
    uint16_t size[TRACE_BATCH];
    uint8_t rw[TRACE_BATCH];
    size_t n;
    struct trace_segment segment[TRACE_BATCH];
    size_t nsegments;
};
/* Appends one reference; the caller has checked the space. */
void trace_arrays_add(struct trace_arrays *a, uint64_t address, uint64_t pc, uint64_t size, uint8_t rw,
                      uint32_t thread, int burst);
static inline struct trace_batch trace_arrays_batch(const struct trace_arrays *a)
{
    return (struct trace_batch){a->n, a->address, a->pc, a->size, a->rw, a->nsegments, a->segment};
}

struct trace_reader {
    const struct trace_format *format;
    struct trace_input in;
    struct trace_info info;
    struct trace_threads threads;
    struct trace_arrays *arrays;
    uint64_t delivered; /* references, for info.references at the end */
    int damaged, ended;
    struct error damage;
    uint64_t line; /* text formats: number of the last line that was read */
    void *state;   /* the format's */
};
/* Ends the trace here with this sentence; returns 0, so that `next` can return it. */
int trace_damaged(struct trace_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct trace_writer {
    const struct trace_format *format;
    struct trace_output out;
    struct trace_threads threads;
    const char *source; /* valid in open() only */
    int sampled;
    unsigned line_bytes;
    uint64_t references, instructions;
    uint64_t stored; /* references that a reader would find if nothing more were written; cachegram's format
                        only */
    struct trace_background *background; /* NULL: none */
    int failed;                          /* code of the first failure, with its text */
    struct error failure;
    void *state;
};

/* Functions return 0 or a negative errno value with err filled, unless stated otherwise. */
struct trace_format {
    const char *name, *help;
    /* Reading. From the first n bytes: 1 if the file can only be of this format, 2 if it may be, 0 if not. */
    int (*probe)(const uint8_t *start, size_t n);
    int (*open_read)(struct trace_reader *r,
                     struct error *err); /* sets r->state; on failure close is called */
    /*
     * Fills r->arrays (empty at the call): 1, or 0 at the end. References before damage are returned first.
     */
    int (*next)(struct trace_reader *r, struct error *err);
    /* If next is trace_text_next (text.h): parses a line. 1: it was used (or is irrelevant); 0: it is not of
     * this format (output of some program); -1: it should be, but is invalid: the trace ends before it. */
    int (*take_line)(struct trace_reader *r, const char *line, const char *end);
    void (*close_read)(struct trace_reader *r); /* NULL: frees r->state */
    /* Writing. */
    int (*open_write)(struct trace_writer *w,
                      struct error *err); /* NULL: nothing to do; on failure close is called */
    int (*write)(struct trace_writer *w, const struct trace_batch *batch, struct error *err);
    int (*flush)(struct trace_writer *w, struct error *err);  /* NULL: only the output buffer */
    int (*finish)(struct trace_writer *w, struct error *err); /* NULL: only the output buffer */
    void (*close_write)(struct trace_writer *w);              /* NULL: frees w->state */
};

/* background.c: a thread that calls `write` of the format. */
struct trace_background *trace_background_new(struct trace_writer *w, struct error *err);
/* Copies the batch into the queue; waits while that is full. */
int trace_background_write(struct trace_background *b, const struct trace_batch *batch, struct error *err);
/* Waits until all is written. */
int trace_background_wait(struct trace_background *b, struct error *err);
/* Discards the queue, ends the thread, frees. */
void trace_background_free(struct trace_background *b);

#endif
