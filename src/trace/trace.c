/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - the table of formats, and code common to all of them. */
#include "trace/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/formats.h"

static const struct trace_format *const formats[] = {
    &trace_format_cachegram,  &trace_format_lackey, &trace_format_din,    &trace_format_csv,
    &trace_format_drmemtrace, &trace_format_usf,    &trace_format_oracle, &trace_format_libcachesim_csv,
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))
#define PROBE_BYTES 4096u

const struct trace_format_name *trace_formats(void)
{
    static struct trace_format_name names[FORMATS + 1];
    for (size_t i = 0; i < FORMATS; i++)
        names[i] = (struct trace_format_name){.name = formats[i]->name,
                                              .help = formats[i]->help,
                                              .reads = formats[i]->next != NULL,
                                              .writes = formats[i]->write != NULL};
    return names;
}

static const struct trace_format *find_format(const char *name)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

/* --- reading --- */

/* Recognises the format of a file by its beginning. */
static const struct trace_format *recognize(const uint8_t *start, size_t n)
{
    const struct trace_format *maybe = NULL;
    for (size_t i = 0; i < FORMATS; i++) {
        int answer = formats[i]->probe != NULL ? formats[i]->probe(start, n) : 0;
        if (answer == 1)
            return formats[i];
        if (answer == 2 && maybe == NULL)
            maybe = formats[i];
    }
    return maybe;
}

static int is_database(const uint8_t *start, size_t n)
{
    static const char magic[] = "SQLite format 3"; /* 16 bytes, the last one is zero */
    return n >= sizeof(magic) && memcmp(start, magic, sizeof(magic)) == 0;
}

static int open_reader(struct trace_reader *r, const char *path, const char *format, struct error *err)
{
    if (format != NULL && ((r->format = find_format(format)) == NULL || r->format->next == NULL)) {
        r->format = NULL;
        return error_set(err, -EINVAL,
                         "'%s' is not a format that can be read; 'cachegram import --help' lists them",
                         format);
    }
    int status = trace_input_open(&r->in, path, err);
    if (status < 0)
        return status;
    int64_t have = trace_input_need(&r->in, PROBE_BYTES, err);
    if (have < 0)
        return (int)have;
    if (have == 0)
        return error_set(err, -ENODATA, "%s is empty", r->in.path);
    if (r->format == NULL) {
        r->format = recognize(r->in.buffer, (size_t)have);
        if (r->format == NULL && is_database(r->in.buffer, (size_t)have))
            return error_set(
                err, -EBADMSG,
                "%s is a profile, not a trace: 'cachegram mrc' and 'report' read it, and any SQLite client",
                r->in.path);
        if (r->format == NULL)
            return error_set(err, -EBADMSG, "%s is not a trace of a known format", r->in.path);
    }
    r->info = (struct trace_info){.format = r->format->name, .source = "", .references = TRACE_UNKNOWN};
    return r->format->open_read(r, err);
}

struct trace_reader *trace_open(const char *path, const char *format, struct error *err)
{
    struct trace_reader *r = calloc(1, sizeof(*r));
    if (r != NULL)
        r->in.fd = -1;
    if (r == NULL || (r->arrays = malloc(sizeof(*r->arrays))) == NULL) {
        error_set(err, -ENOMEM, "out of memory for reading %s", path);
        trace_close(r);
        return NULL;
    }
    if (open_reader(r, path, format, err) < 0) {
        trace_close(r);
        return NULL;
    }
    return r;
}

int trace_next(struct trace_reader *r, struct trace_batch *batch, struct error *err)
{
    struct trace_arrays *a = r->arrays;
    if (r->ended)
        return 0;
    a->n = a->nsegments = 0;
    int status = r->damaged ? 0 : r->format->next(r, err);
    if (status < 0)
        return status;
    if (status == 0 && a->n == 0) {
        r->ended = 1;
        if (r->info.references == TRACE_UNKNOWN && !r->damaged)
            r->info.references = r->delivered;
        return 0;
    }
    r->delivered += a->n;
    *batch = trace_arrays_batch(a);
    return 1;
}

const struct error *trace_damage(const struct trace_reader *r)
{
    return r->damaged ? &r->damage : NULL;
}

const struct trace_info *trace_info(const struct trace_reader *r)
{
    return &r->info;
}

uint32_t trace_threads(const struct trace_reader *r)
{
    return r->threads.n;
}

struct trace_thread trace_thread(const struct trace_reader *r, uint32_t i)
{
    return i < r->threads.n ? r->threads.thread[i] : (struct trace_thread){0};
}

double trace_progress(const struct trace_reader *r)
{
    if (r->in.file_bytes == 0)
        return NAN;
    if (r->ended)
        return 1; /* an index may remain */
    double share = (double)trace_input_offset(&r->in) / (double)r->in.file_bytes;
    return share < 1 ? share : 1;
}

void trace_close(struct trace_reader *r)
{
    if (r == NULL)
        return;
    if (r->format != NULL && r->info.format != NULL)
        r->format->close_read != NULL ? r->format->close_read(r) : free(r->state);
    trace_input_close(&r->in);
    free(r->threads.thread);
    free(r->arrays);
    free(r);
}

/* --- writing --- */

static void free_writer(struct trace_writer *w)
{
    trace_background_free(w->background);
    w->format->close_write != NULL ? w->format->close_write(w) : free(w->state);
    free(w->threads.thread);
    free(w);
}

struct trace_writer *trace_create(const char *path, const struct trace_create_options *options,
                                  struct error *err)
{
    const struct trace_format *format = find_format(options->format != NULL ? options->format : "cachegram");
    if (format == NULL || format->write == NULL) {
        error_set(err, -EINVAL,
                  "'%s' is not a format that can be written; 'cachegram export --help' lists them",
                  options->format);
        return NULL;
    }
    struct trace_writer *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        error_set(err, -ENOMEM, "out of memory for writing %s", path);
        return NULL;
    }
    w->format = format;
    w->source = options->source != NULL ? options->source : "";
    w->sampled = options->sampled;
    w->line_bytes = options->line_bytes != 0 ? options->line_bytes : 64;
    if (trace_output_open(&w->out, path, err) < 0) {
        free(w);
        return NULL;
    }
    if ((format->open_write != NULL && format->open_write(w, err) < 0) ||
        (options->background && (w->background = trace_background_new(w, err)) == NULL)) {
        trace_abandon(w);
        return NULL;
    }
    return w;
}

int64_t trace_writer_thread(struct trace_writer *w, struct trace_thread thread, struct error *err)
{
    int64_t number = trace_threads_find(&w->threads, thread);
    if (number >= 0)
        return number;
    /* The writing thread reads the table, which may be reallocated now. trace_write reports its errors. */
    if (w->background != NULL)
        trace_background_wait(w->background, NULL);
    number = trace_threads_number(&w->threads, thread);
    return number >= 0 ? number : error_set(err, -ENOMEM, "out of memory for a trace's threads");
}

/* Stores the first error only. */
static int fail(struct trace_writer *w, int status, const struct error *why, struct error *err)
{
    if (w->failed == 0) {
        w->failed = status;
        w->failure = *why;
    }
    return error_set(err, w->failed, "%s", w->failure.text);
}

static int call(struct trace_writer *w, int (*step)(struct trace_writer *, struct error *), struct error *err)
{
    struct error why;
    if (w->background != NULL && w->failed == 0) {
        int status = trace_background_wait(w->background, &why);
        if (status < 0)
            return fail(w, status, &why, err);
    }
    int status = w->failed != 0 ? w->failed : step != NULL ? step(w, &why) : 0;
    return status < 0 ? fail(w, status, &why, err) : 0;
}

int trace_write(struct trace_writer *w, const struct trace_batch *batch, struct error *err)
{
    struct error why;
    if (batch->n == 0 || batch->n > TRACE_BATCH || batch->nsegments == 0)
        return error_set(err, -EINVAL, "a batch of %zu references cannot be written", batch->n);
    int status = w->failed;
    if (status == 0)
        status = w->background != NULL ? trace_background_write(w->background, batch, &why)
                                       : w->format->write(w, batch, &why);
    if (status < 0)
        return fail(w, status, &why, err);
    w->references += batch->n;
    return 0;
}

void trace_writer_instructions(struct trace_writer *w, uint64_t count)
{
    __atomic_fetch_add(&w->instructions, count, __ATOMIC_RELAXED);
}

static int flush_output(struct trace_writer *w, struct error *err)
{
    return trace_output_flush(&w->out, err);
}

int trace_flush(struct trace_writer *w, struct error *err)
{
    int status = call(w, w->format->flush, err);
    return status < 0 ? status : call(w, flush_output, err);
}

uint64_t trace_written_references(const struct trace_writer *w)
{
    return w->references;
}

uint64_t trace_stored_references(const struct trace_writer *w)
{
    return w->stored;
}

int trace_finish(struct trace_writer *w, uint64_t *bytes, struct error *err)
{
    int status = call(w, w->format->finish, err);
    struct error why;
    if (bytes != NULL)
        *bytes = w->out.bytes + w->out.used;
    int closed = trace_output_close(&w->out, &why);
    if (status == 0 && closed < 0)
        status = error_set(err, closed, "%s", why.text);
    free_writer(w);
    return status;
}

void trace_abandon(struct trace_writer *w)
{
    if (w == NULL)
        return;
    trace_background_free(w->background);
    w->background = NULL;
    trace_output_abandon(&w->out);
    free_writer(w);
}
