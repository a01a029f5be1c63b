/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots-text.c - a table of hotspots for people. A row has its share of the misses with an interval, its
 * miss ratio, its share of the references, and what it is: code, with the functions that it was inlined into,
 * or data, or both. Arguments of templates are left out of long names. The brief table, which is part of a
 * report, has no notes and is cut at the width of the terminal.
 */
#include "report/hotspots-internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"
#include "base/sizes.h"
#include "report/calls.h"
#include "report/hotspot-names.h"

const char *const report_by_names[] = {"function", "line", "module", "instruction", ""};

/* Width of what is before the object: as the names need, but at least and at most. */
#define CODE_LEAST 30u
#define CODE_MOST 60u

static void put_place(FILE *out, const struct profile_frame *frame)
{
    if (!frame || !*frame->file)
        return;
    putc(' ', out);
    report_plain(out, base_name(frame->file));
    fprintf(out, ":%s%" PRIu32, frame->guessed ? "~" : "", frame->line);
}

/* The file of code or data. */
static void put_file(FILE *out, const char *name)
{
    fputs("  (", out);
    report_plain(out, name);
    putc(')', out);
}

/* Bytes of a name in text; what templates have for arguments is left out if it is longer. */
#define NAME_MOST 90
/* Likewise in a table that is cut at the terminal's width. */
#define BRIEF_MOST 30
/* Of all functions that code is inlined into, in a line of text: else those of libraries are left out. */
#define CALLERS_MOST 180

/* As report_inlined_into, for people. */
static void put_callers_briefly(FILE *out, const struct analysis_hotspots *h,
                                const struct profile_frame *frame)
{
    char text[REPORT_NAME_ROOM];
    const struct profile_frame *next;
    report_inlined_into(h, frame, text);
    int brief = strlen(text) > CALLERS_MOST, left_out = 0;
    for (frame = analysis_caller(h, frame); frame != NULL; frame = next) {
        next = analysis_caller(h, frame);
        if (brief && next && !analysis_is_own(frame)) {
            fputs(left_out++ ? "" : " < ...", out);
            continue;
        }
        left_out = 0;
        report_fit_name(text, sizeof text, *frame->function ? frame->function : "?");
        report_shorten(text, NAME_MOST);
        fputs(" < ", out);
        report_plain(out, text);
        if (*frame->file) {
            putc(' ', out);
            report_plain(out, base_name(frame->file));
            fprintf(out, ":%" PRIu32, frame->line);
        }
    }
}

static void put_code_name(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                          size_t most)
{
    char text[REPORT_NAME_ROOM];
    if (h->by == ANALYSIS_BY_MODULE) {
        report_plain(out, *row->image->path ? row->image->path : "[unknown]");
        return;
    }
    if (h->by == ANALYSIS_BY_INSN && row->offset != PROFILE_SITE_REST) {
        report_plain(out, report_image_name(row->image));
        fprintf(out, "+0x%" PRIx64 " ", row->offset);
    }
    report_hotspot_function(h, row, text);
    report_shorten(text, most);
    report_plain(out, text);
    if (h->by != ANALYSIS_BY_FUNCTION) {
        put_place(out, row->frame);
        if (row->frame)
            put_callers_briefly(out, h, row->frame);
    }
    if (h->by != ANALYSIS_BY_INSN && !row->rest && row->outer && *row->outer->function &&
        !report_hotspot_is_place(row))
        put_file(out, report_image_name(row->image));
}

static void put_object_name(FILE *out, const struct analysis_hotspot *row, size_t most)
{
    const struct profile_object *object = row->object;
    char text[REPORT_NAME_ROOM];
    report_hotspot_data(row, text);
    report_shorten(text, most);
    report_plain(out, text);
    if (object && (profile_object_is_variable(object) || object->kind == PROFILE_OBJECT_BLOCK) &&
        *object->module)
        put_file(out, base_name(object->module));
}

/* most: bytes of each name, if templates' arguments can be left out. The caller frees it; NULL: no memory. */
static char *code_name(const struct analysis_hotspots *h, const struct analysis_hotspot *row, size_t most)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return NULL;
    put_code_name(memory, h, row, most);
    if (fclose(memory) == 0)
        return text;
    free(text);
    return NULL;
}

static size_t columns_of(const char *text)
{
    return text ? report_columns(text, strlen(text)) : 0;
}

/* Columns of code in a table that has objects, too. */
static size_t code_columns(const struct analysis_hotspots *h, size_t most)
{
    size_t widest = CODE_LEAST;
    for (size_t i = 0; i < h->n && h->objects && h->by != ANALYSIS_BY_NOTHING; i++) {
        char *text = code_name(h, &h->rows[i], most);
        size_t columns = columns_of(text);
        widest = columns > widest ? columns : widest;
        free(text);
    }
    return widest < CODE_MOST ? widest : CODE_MOST;
}

/* most: as for code_name. width: of code, if an object follows. */
static void put_row_name(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                         size_t most, size_t width)
{
    if (h->objects && h->by != ANALYSIS_BY_NOTHING) {
        char *text = code_name(h, row, most);
        size_t columns = columns_of(text);
        fprintf(out, "%s%*s  ", text ? text : "", columns < width ? (int)(width - columns) : 0, "");
        free(text);
    } else if (h->by != ANALYSIS_BY_NOTHING) {
        put_code_name(out, h, row, most);
    }
    if (h->objects)
        put_object_name(out, row, most);
}

/* How the row uses lines. */
static void put_use(FILE *out, const struct analysis_hotspot *row, int with_stride)
{
    report_percent(out, "", 4, 0, row->used_share, "  ");
    if (with_stride && row->stride)
        fprintf(out, "%8" PRId64 "  ", row->stride);
    else if (with_stride)
        fprintf(out, "%8s  ", "-");
}

/* Which of the optional columns a table has. */
struct columns {
    int stall, used, stride;
    size_t most, code; /* see put_row_name */
};

static void put_row(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                    const struct columns *columns)
{
    const struct shares_result *s = &row->shares;
    fprintf(out, "%6.2f%%  ", 100 * s->misses_share);
    if (!h->full && s->enough)
        fprintf(out, "%6.2f to %6.2f%%  ", 100 * s->share_low, 100 * s->share_high);
    else if (!h->full)
        fprintf(out, "%16s  ", "few samples");
    if (columns->stall)
        fprintf(out, "%6.2f%%  ", 100 * row->stall);
    report_percent(out, "", 10, 3, s->miss_ratio, "  ");
    /* Data is known of a sample of the references only, and may have missed all of a row's. */
    report_percent(out, "", 7, 2,
                   s->references_share > 0 || !(s->misses_share > 0) ? s->references_share : NAN, "  ");
    if (columns->used)
        put_use(out, row, columns->stride);
    put_row_name(out, h, row, columns->most, columns->code);
    putc('\n', out);
    report_calls_text(out, h, row);
}

static void put_text(FILE *out, const struct analysis_hotspots *h, size_t left_out, int brief)
{
    char size[SIZE_TEXT], rows[32];
    struct columns columns = {.stall = h->n && !isnan(h->rows[0].stall),
                              .stride = h->by == ANALYSIS_BY_LINE || h->by == ANALYSIS_BY_INSN,
                              .most = brief ? BRIEF_MOST : NAME_MOST};
    for (size_t i = 0; i < h->n; i++)
        columns.used |= !isnan(h->rows[i].used_share);
    columns.code = code_columns(h, columns.most);
    snprintf(rows, sizeof rows, "%s%s%s", report_by_names[h->by],
             h->objects && *report_by_names[h->by] ? ", " : "",
             h->fields    ? "field"
             : h->objects ? "object"
                          : "");
    fprintf(out, "Misses by %s: ", rows);
    report_hotspots_cache(out, h);
    if (!brief) {
        report_hotspots_source(out, h);
        putc('\n', out);
    }
    fprintf(out, "%7s  %s%s%10s  %7s  %s%s", "misses", h->full ? "" : "    low to high   ",
            columns.stall ? "  stall  " : "", "miss ratio", "refs", columns.used ? "used  " : "",
            columns.used && columns.stride ? "  stride  " : "");
    if (h->objects && *report_by_names[h->by])
        fprintf(out, "%-*s  %s\n", (int)columns.code, report_by_names[h->by], h->fields ? "field" : "object");
    else
        fprintf(out, "%s\n", rows);
    for (size_t i = 0; i < h->n; i++)
        put_row(out, h, &h->rows[i], &columns);
    if (left_out && brief)
        fprintf(out, "and %zu more: cachegram hotspots --size %s%s\n", left_out,
                size_format((uint64_t)h->size_bytes, size), h->separate ? " --threads separate" : "");
    else if (left_out)
        fprintf(out, "and %zu more (--limit, --percent-limit)\n", left_out);
    if (!brief)
        report_hotspots_notes(out, h);
}

void report_hotspots_text(FILE *out, const struct analysis_hotspots *h, size_t left_out)
{
    put_text(out, h, left_out, 0);
}

/* In a narrower terminal, there would be no room for names beside all columns. */
#define BRIEF_COLUMNS 72u

/* At most so many characters of each line; a line that is cut ends with "...". */
static void put_cut(FILE *out, const char *text, unsigned width)
{
    while (*text) {
        size_t columns = report_columns(text, strcspn(text, "\n")),
               kept = columns > width ? width - 3 : columns;
        for (size_t column = 0; *text && *text != '\n'; text++) {
            column += report_columns(text, 1);
            if (column <= kept)
                putc(*text, out);
        }
        fputs(kept < columns ? "..." : "", out);
        if (*text)
            putc(*text++, out);
    }
}

/* Of each row, its share and its name. */
static void put_narrow(FILE *out, const struct analysis_hotspots *h, size_t left_out)
{
    char size[SIZE_TEXT];
    fprintf(out, "Misses by %s, cache of %s\n", report_by_names[h->by],
            size_format((uint64_t)h->size_bytes, size));
    for (size_t i = 0; i < h->n; i++) {
        fprintf(out, "%6.2f%%  ", 100 * h->rows[i].shares.misses_share);
        put_row_name(out, h, &h->rows[i], BRIEF_MOST, CODE_LEAST);
        putc('\n', out);
    }
    if (left_out)
        fprintf(out, "and %zu more: cachegram hotspots\n", left_out);
}

void report_hotspots_brief(FILE *out, const struct analysis_hotspots *h, size_t left_out, unsigned width)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return;
    if (width < BRIEF_COLUMNS)
        put_narrow(memory, h, left_out);
    else
        put_text(memory, h, left_out, 1);
    if (fclose(memory) == 0)
        put_cut(out, text, width);
    free(text);
}
