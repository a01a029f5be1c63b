/* SPDX-License-Identifier: Apache-2.0 */
/* collapsed.c - a table of hotspots as collapsed stacks: "module;function;inlined;a.c:7 1234", as
 * flamegraph.pl and speedscope read them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "report/hotspots.h"
#include "report/report.h"

/* The numbers: millionths of all misses. */
#define MISSES 1e6
#define MOST_FRAMES 64u

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* One frame: without what separates frames. */
static void put_name(FILE *out, const char *name)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", name);
    for (char *at = text; (at = strchr(at, ';')) != NULL;)
        *at = ':';
    report_plain(out, text);
}

/* From the outermost to the innermost one; of more than that, which only a damaged profile has, the
 * innermost. */
static void put_frames(FILE *out, const struct analysis_hotspots *h, const struct profile_frame *frame)
{
    const struct profile_frame *frames[MOST_FRAMES];
    size_t n = 0;
    for (; frame && n < MOST_FRAMES; frame = analysis_caller(h, frame))
        frames[n++] = frame;
    while (n-- > 0) {
        putc(';', out);
        put_name(out, *frames[n]->function ? frames[n]->function : "[unknown]");
    }
}

static void put_row(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row)
{
    char object[1024];
    const char *separator = "";
    if (row->image) {
        put_name(out, *row->image->path ? base_name(row->image->path) : "[unknown]");
        separator = ";";
    }
    if (row->rest)
        fputs(";[rest]", out);
    else if (row->frame)
        put_frames(out, h, row->frame);
    else if (row->outer)
        put_frames(out, h, row->outer);
    if (row->frame && *row->frame->file) {
        putc(';', out);
        put_name(out, base_name(row->frame->file));
        fprintf(out, ":%" PRIu32, row->frame->line);
    }
    if (row->offset != PROFILE_SITE_REST)
        fprintf(out, ";+0x%" PRIx64, row->offset);
    if (h->objects) {
        report_object_name(row->object, object, sizeof object);
        fputs(separator, out);
        put_name(out, object);
    }
    fprintf(out, " %.0f\n", round(MISSES * row->shares.misses_share));
}

void report_hotspots_collapsed(FILE *out, const struct analysis_hotspots *h)
{
    for (size_t i = 0; i < h->n; i++)
        if (round(MISSES * h->rows[i].shares.misses_share) > 0)
            put_row(out, h, &h->rows[i]);
}
