/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collapsed.c - a table of hotspots as collapsed stacks: "module;function;inlined;a.c:7 1234", with calls
 * "main;caller;function;inlined;a.c:7 1234", as flamegraph.pl and speedscope read them.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/base-name.h"
#include "report/calls.h"
#include "report/hotspot-names.h"
#include "report/hotspots.h"
#include "report/report.h"

/* The numbers: millionths of all misses. */
#define MISSES 1e6
#define MOST_FRAMES 64u

struct stack {
    FILE *out;
    size_t n; /* frames so far */
};

/* One frame: without what separates frames. */
static void put_frame(struct stack *s, const char *name)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", name);
    for (char *at = text; (at = strchr(at, ';')) != NULL;)
        *at = ':';
    if (s->n++ > 0)
        putc(';', s->out);
    report_plain(s->out, text);
}

/* A frame, after those that it is inlined into. Only a damaged profile has more than MOST_FRAMES; then the
 * innermost ones. */
static void put_frames(struct stack *s, const struct analysis_hotspots *h, const struct profile_frame *frame)
{
    const struct profile_frame *frames[MOST_FRAMES];
    size_t n = 0;
    for (; frame && n < MOST_FRAMES; frame = analysis_caller(h, frame))
        frames[n++] = frame;
    while (n-- > 0)
        put_frame(s, *frames[n]->function ? frames[n]->function : "[unknown]");
}

static void put_module(struct stack *s, const struct profile_image *image)
{
    put_frame(s, image && *image->path ? base_name(image->path) : "[unknown]");
}

/* What of a row was reached by that path. */
static void put_row(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                    const struct report_call_path *path)
{
    char text[1024];
    struct stack s = {.out = out};
    const struct profile_frame *frame = row->frame ? row->frame : row->outer;
    for (size_t i = path->n; i > 0; i--) {
        if (path->calls[i - 1]->frame)
            put_frames(&s, h, path->calls[i - 1]->frame);
        else
            put_module(&s, path->calls[i - 1]->image);
    }
    if (row->image && (h->ncalls == 0 || row->rest || !frame))
        put_module(&s, row->image);
    if (row->rest)
        put_frame(&s, "[rest]");
    else
        put_frames(&s, h, frame);
    if (row->frame && *row->frame->file) {
        snprintf(text, sizeof text, "%s:%" PRIu32, base_name(row->frame->file), row->frame->line);
        put_frame(&s, text);
    }
    if (row->offset != PROFILE_SITE_REST) {
        snprintf(text, sizeof text, "+0x%" PRIx64, row->offset);
        put_frame(&s, text);
    }
    if (h->objects) {
        report_object_name(row->object, text, sizeof text);
        put_frame(&s, text);
    }
    fprintf(out, " %.0f\n", round(MISSES * row->shares.misses_share * path->share));
}

void report_hotspots_collapsed(FILE *out, const struct analysis_hotspots *h)
{
    for (size_t i = 0; i < h->n; i++) {
        struct report_call_path path;
        for (size_t next = 0; report_next_path(h, &h->rows[i], &next, &path);)
            if (round(MISSES * h->rows[i].shares.misses_share * path.share) > 0)
                put_row(out, h, &h->rows[i], &path);
    }
}
