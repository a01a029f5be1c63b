/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/convert.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sizes.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "trace/trace.h"

void convert_list_formats(int written)
{
    for (const struct trace_format_name *f = trace_formats(); f->name != NULL; f++)
        if (written ? f->writes : f->reads)
            printf("  %-16s %s\n", f->name, f->help);
}

int convert_writes(const char *format)
{
    const struct trace_format_name *f = trace_formats();
    while (f->name != NULL && !(f->writes && strcmp(f->name, format) == 0))
        f++;
    return f->name != NULL;
}

/* Adds the reader's threads to the writer; *known of them are in the table. */
static int map_threads(const struct trace_reader *r, struct trace_writer *w, uint32_t **numbers,
                       uint32_t *known, struct error *err)
{
    uint32_t n = trace_threads(r);
    if (n <= *known)
        return 0;
    uint32_t *larger = realloc(*numbers, n * sizeof *larger);
    if (!larger)
        return error_set(err, -ENOMEM, "out of memory for the trace's threads");
    *numbers = larger;
    while (*known < n) {
        int64_t number = trace_writer_thread(w, trace_thread(r, *known), err);
        if (number < 0)
            return (int)number;
        larger[(*known)++] = (uint32_t)number;
    }
    return 0;
}

/* Copies until the end of the input, or an interrupt. 0 or negative. */
static int copy(struct trace_reader *r, struct trace_writer *w, const char *what, struct error *err)
{
    static struct trace_segment segments[TRACE_BATCH];
    struct progress progress = progress_begin(what);
    struct trace_batch batch;
    uint32_t *numbers = NULL, known = 0;
    uint64_t instructions = 0;
    int status = 0;
    while (!cli_interrupted() && (status = trace_next(r, &batch, err)) > 0) {
        if ((status = map_threads(r, w, &numbers, &known, err)) < 0)
            break;
        for (size_t i = 0; i < batch.nsegments; i++) {
            segments[i] = batch.segment[i];
            segments[i].thread = numbers[segments[i].thread];
        }
        batch.segment = segments;
        trace_writer_instructions(w, trace_info(r)->instructions - instructions);
        instructions = trace_info(r)->instructions;
        if ((status = trace_write(w, &batch, err)) < 0)
            break;
        progress_show(&progress, trace_progress(r), trace_written_references(w));
    }
    progress_end(&progress);
    free(numbers);
    return status;
}

static int is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return strcmp(a, "-") != 0 && strcmp(b, "-") != 0 && stat(a, &one) == 0 && stat(b, &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static void print_amount(const struct convert_options *o, const struct trace_reader *r, uint64_t references,
                         uint64_t bytes)
{
    char text[SIZE_TEXT];
    fprintf(stderr, "cachegram: %" PRIu64 " references, %s: %s\n", references, size_format(bytes, text),
            strcmp(o->output, "-") == 0 ? "stdout" : o->output);
    if (trace_info(r)->skipped != 0)
        fprintf(stderr, "cachegram: warning: %" PRIu64 " lines were not references and were skipped\n",
                trace_info(r)->skipped);
}

/* Checks after copying whether the input was complete: 0, or the exit status after a message. */
static int check_input_end(const struct convert_options *o, const struct trace_reader *r, uint64_t references)
{
    const char *kept = o->partial
                           ? "the references before that were kept"
                           : "nothing was written; with --partial, the references before that are kept";
    struct error err;
    if (cli_interrupted()) {
        fprintf(stderr, "cachegram: interrupted after %" PRIu64 " references; %s\n", references, kept);
        return cli_interrupt_status();
    }
    if (trace_damage(r)) {
        error_set(&err, -EBADMSG, "%s; %s", trace_damage(r)->text, kept);
        return cli_fail(&err);
    }
    if (references == 0) {
        error_set(&err, -ENODATA, "%s holds no references", o->input);
        return cli_fail(&err);
    }
    return 0;
}

int convert(const struct convert_options *o)
{
    struct error err;
    struct trace_reader *r = trace_open(o->input, o->from, &err);
    if (!r)
        return cli_fail(&err);
    if (is_same_file(o->input, o->output)) {
        trace_close(r);
        error_set(&err, -EINVAL, "input and output are the same file, %s", o->input);
        return cli_fail(&err);
    }
    const struct trace_create_options create = {.format = o->to,
                                                .source = trace_info(r)->source,
                                                .sampled = trace_info(r)->sampled,
                                                .line_bytes = o->line_bytes};
    struct trace_writer *w = trace_create(o->output, &create, &err);
    if (!w) {
        trace_close(r);
        return cli_fail(&err);
    }
    cli_catch_interrupts();
    int code = 0;
    if (copy(r, w, o->to, &err) < 0) {
        trace_abandon(w);
        code = cli_fail(&err);
    } else {
        uint64_t references = trace_written_references(w);
        code = check_input_end(o, r, references);
        if (code != 0 && (!o->partial || references == 0)) {
            trace_abandon(w);
        } else {
            uint64_t bytes;
            if (trace_finish(w, &bytes, &err) < 0)
                code = cli_fail(&err);
            else
                print_amount(o, r, references, bytes);
        }
    }
    trace_close(r);
    return code;
}
