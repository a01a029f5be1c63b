/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - reference traces: one reader for all formats, one writer for all formats.
 *
 * A trace is a sequence of data references, each with its address, size, direction, program counter and
 * thread. Readers return it, and writers take it, in batches: arrays of references, divided into segments of
 * one thread. So a consumer's inner loop runs over plain arrays:
 *
 *     struct trace_reader *r = trace_open("app.trace", NULL, &err);
 *     struct trace_batch batch;
 *     int status;
 *     while ((status = trace_next(r, &batch, &err)) > 0)
 *         for (size_t s = 0; s < batch.nsegments; s++)
 *             for (size_t i = batch.segment[s].begin; i < batch.segment[s].end; i++)
 *                 use(batch.segment[s].thread, batch.address[i], batch.size[i], batch.rw[i]);
 *     if (trace_damage(r) != NULL) ...      references before the damage were returned
 *     trace_close(r);
 *
 * cachegram's own format is described in docs/trace-format.md. Nothing here prints; a reader or a writer may
 * be used by one thread at a time.
 */
#ifndef CACHEGRAM_TRACE_H
#define CACHEGRAM_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

#define TRACE_LOAD 1u
#define TRACE_STORE 2u

/* Most references of a batch, also in one call of trace_write. */
#define TRACE_BATCH 8192u

/* Threads are numbered 0, 1, ... in the order in which a trace first names them. */
struct trace_thread {
    uint32_t pid; /* 0: the trace does not distinguish processes */
    uint32_t tid;
};

/* References begin .. end-1 of a batch belong to one thread. */
struct trace_segment {
    uint32_t begin, end; /* begin < end; the first begins at 0, each where the previous one ended */
    uint32_t thread;
    uint32_t burst; /* nonzero: a new burst begins here; references before it were not recorded */
};

/* Each is a load or a store; a read-modify-write is two, load first. Bytes [address, address + size). */
struct trace_batch {
    size_t n; /* references, 1 .. TRACE_BATCH */
    const uint64_t *address;
    const uint64_t *pc;   /* of the instruction; 0: unknown */
    const uint16_t *size; /* bytes, at least 1 */
    const uint8_t *rw;    /* TRACE_LOAD or TRACE_STORE */
    size_t nsegments;
    const struct trace_segment *segment;
};

#define TRACE_UNKNOWN UINT64_MAX

struct trace_info {
    const char *format;    /* its name, one of trace_formats() */
    const char *source;    /* description of the traced program, one line, or "" */
    int sampled;           /* contains bursts, not all references */
    uint64_t references;   /* in the whole trace; if not stored in the file, TRACE_UNKNOWN until the end is
                              reached */
    uint64_t instructions; /* executed by all threads in the part read so far; 0: unknown */
    uint64_t skipped; /* text formats: lines so far that are not of the format, such as a program's output */
};

struct trace_reader;

/*
 * Opens a trace. path "-" is stdin; pipes can be read like files. format NULL: recognised from the first
 * bytes. NULL with err filled: no such file, not a trace, an unknown format, memory is short.
 */
struct trace_reader *trace_open(const char *path, const char *format, struct error *err);
/*
 * Reads the next batch, which is valid until the next call on this reader. 1; 0 at the end, where
 * trace_damage says whether it was the regular end; negative with err filled if reading failed for another
 * reason (a read error, memory).
 */
int trace_next(struct trace_reader *r, struct trace_batch *batch, struct error *err);
/* After trace_next returned 0: NULL, or a sentence that says where the trace is damaged or truncated. */
const struct error *trace_damage(const struct trace_reader *r);
/* Valid until the reader is closed; `references` and `instructions` may change with every call of trace_next.
 */
const struct trace_info *trace_info(const struct trace_reader *r);
/* Threads named so far, and one of them (i < trace_threads(r)). */
uint32_t trace_threads(const struct trace_reader *r);
struct trace_thread trace_thread(const struct trace_reader *r, uint32_t i);
/* Share of the trace that was read, 0..1, for a progress bar; NaN if its length is unknown (pipes). */
double trace_progress(const struct trace_reader *r);
void trace_close(struct trace_reader *r); /* NULL is allowed */

struct trace_writer;

struct trace_create_options {
    const char *format;  /* NULL: "cachegram" */
    const char *source;  /* description of the traced program; NULL is "". Only some formats store it */
    int sampled;         /* bursts will be written, not all references */
    int background;      /* cachegram's format: compress and write in a separate thread */
    unsigned line_bytes; /* formats of lines instead of references: line size; 0: 64 */
};

/*
 * Creates the file; "-" is stdout. cachegram's format is written to `path` itself, so that complete blocks
 * can be read even if the writer is killed. NULL with err filled on failure.
 */
struct trace_writer *trace_create(const char *path, const struct trace_create_options *options,
                                  struct error *err);
/* Returns the number of a thread for use in segments; the same for the same thread. Negative: memory is
 * short. */
int64_t trace_writer_thread(struct trace_writer *w, struct trace_thread thread, struct error *err);
/*
 * Appends a batch, whose arrays remain the caller's; its threads are the writer's numbers. 0, or negative
 * with err filled: the disk is full or memory is short (with `background`, a later call may report it); then
 * every later call fails in the same way.
 */
int trace_write(struct trace_writer *w, const struct trace_batch *batch, struct error *err);
/* Adds to the number of executed instructions, for formats that store it. */
void trace_writer_instructions(struct trace_writer *w, uint64_t count);
/*
 * Makes everything written so far readable, whatever happens to the writer. cachegram's format: ends a block.
 */
int trace_flush(struct trace_writer *w, struct error *err);
/* References written so far. */
uint64_t trace_written_references(const struct trace_writer *w);
/* cachegram's format: number of these that the file contains in any case; after trace_flush, even if it
 * failed. */
uint64_t trace_stored_references(const struct trace_writer *w);
/*
 * Completes the file and frees the writer. *bytes (NULL is allowed) is set to the length of the file. 0, or
 * negative with err filled: the file is incomplete.
 */
int trace_finish(struct trace_writer *w, uint64_t *bytes, struct error *err);
/* Frees the writer without completing the file, and deletes it. NULL is allowed. */
void trace_abandon(struct trace_writer *w);

/* All formats, in the order of the help; ends with a NULL name. */
struct trace_format_name {
    const char *name;
    const char *help; /* a short description */
    int reads, writes;
};
const struct trace_format_name *trace_formats(void);

#endif
