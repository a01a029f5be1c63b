/* SPDX-License-Identifier: Apache-2.0 */
#include "report/shorten.h"
#include "report/calls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"

/* In text: */
#define LEAST_SHARE 0.05 /* of the row's */
#define NAME_ROOM 1024
#define NAME_MOST 90 /* bytes of a function's name in text */
#define INDENT 20

/* Appends "f a.c:7", and what that was inlined into: " < g b.c:9". most: bytes of each name. */
static void add_call_text(const struct analysis_hotspots *h, const struct analysis_call *call, size_t most,
                          char *text, size_t size)
{
    size_t used = strlen(text);
    const char *before = used ? " < " : "";
    if (!call->frame) {
        if (call->image && *call->image->path)
            snprintf(text + used, size - used, "%s%s+0x%" PRIx64, before, base_name(call->image->path),
                     call->offset);
        else
            snprintf(text + used, size - used, "%s[unknown]", before);
        return;
    }
    for (const struct profile_frame *f = call->frame; f && used + 1 < size; f = analysis_caller(h, f)) {
        char name[REPORT_NAME_ROOM];
        report_fit_name(name, sizeof name, *f->function ? f->function : "[unknown]");
        report_shorten(name, most);
        snprintf(text + used, size - used, "%s%s", before, name);
        used = strlen(text);
        if (*f->file)
            snprintf(text + used, size - used, " %s:%s%" PRIu32, base_name(f->file), f->guessed ? "~" : "",
                     f->line);
        used = strlen(text);
        before = " < ";
    }
}

void report_call_text(const struct analysis_hotspots *h, const struct analysis_call *call, char *text,
                      size_t size)
{
    *text = '\0';
    add_call_text(h, call, REPORT_NAME_ROOM, text, size);
}

/* Index after the last node below node i, of nodes that end at `end`. */
static size_t after(const struct analysis_hotspots *h, size_t i, size_t end)
{
    size_t next = i + 1;
    while (next < end && h->calls[next].depth > h->calls[i].depth)
        next++;
    return next;
}

/* --- text --- */

/* In the compiled function main. */
static int is_in_main(const struct analysis_hotspots *h, const struct profile_frame *frame)
{
    for (const struct profile_frame *f = frame; f; f = analysis_caller(h, f))
        if (strcmp(f->function, "main") == 0)
            return 1;
    return 0;
}

int report_call_is_main(const struct analysis_hotspots *h, const struct analysis_call *call)
{
    return is_in_main(h, call->frame);
}

/* The only caller that is shown, of node i; `end`: there are several, or none. */
static size_t only_caller(const struct analysis_hotspots *h, size_t i, size_t end)
{
    size_t found = end, last = after(h, i, end);
    for (size_t k = i + 1; k < last; k = after(h, k, last)) {
        if (h->calls[k].share < LEAST_SHARE)
            continue;
        if (found != end)
            return end;
        found = k;
    }
    return found;
}

/* Nodes [i, end) and what is below them; a chain of single callers takes one line. */
static void put_nodes(FILE *out, const struct analysis_hotspots *h, size_t i, size_t end, unsigned indent)
{
    for (size_t next; i < end; i = next) {
        char text[NAME_ROOM] = "";
        next = after(h, i, end);
        if (h->calls[i].share < LEAST_SHARE)
            continue;
        size_t node = i, caller;
        add_call_text(h, &h->calls[node], NAME_MOST, text, sizeof text);
        /* A part of the misses may have come from a caller that is not known: then the line ends. */
        while (!report_call_is_main(h, &h->calls[node]) && (caller = only_caller(h, node, next)) != next &&
               h->calls[caller].share >= (1 - LEAST_SHARE) * h->calls[node].share)
            add_call_text(h, &h->calls[node = caller], NAME_MOST, text, sizeof text);
        fprintf(out, "%*s%6.2f%%  < ", (int)indent, "", 100 * h->calls[i].share);
        report_plain(out, text);
        putc('\n', out);
        if (!report_call_is_main(h, &h->calls[node]))
            put_nodes(out, h, node + 1, after(h, node, next), indent + 2);
    }
}

void report_calls_text(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row)
{
    if (row->shares.misses_share >= REPORT_CALLS_LEAST_ROW && !is_in_main(h, row->outer))
        put_nodes(out, h, row->call, row->call + row->ncalls, INDENT);
}

/* --- json --- */

static void put_json_nodes(FILE *out, const struct analysis_hotspots *h, size_t i, size_t end)
{
    putc('[', out);
    for (size_t next, first = i; i < end; i = next) {
        const struct analysis_call *call = &h->calls[i];
        next = after(h, i, end);
        report_json_member_string(out, i > first ? ", {" : "{", "function",
                                  call->frame ? call->frame->function : NULL);
        if (call->frame && *call->frame->file) {
            report_json_member_string(out, ", ", "file", call->frame->file);
            fprintf(out, ", \"line\": %" PRIu32, call->frame->line);
        }
        if (call->frame && analysis_caller(h, call->frame)) {
            char text[NAME_ROOM] = "";
            struct analysis_call inlined = {.frame = analysis_caller(h, call->frame)};
            add_call_text(h, &inlined, REPORT_NAME_ROOM, text, sizeof text);
            report_json_member_string(out, ", ", "inlined_into", text);
        }
        if (call->image) {
            report_json_member_string(out, ", ", "module", call->image->path);
            fprintf(out, ", \"offset\": %" PRIu64, call->offset);
        }
        report_json_member_number(out, ", ", "share", call->share);
        fputs(", \"callers\": ", out);
        put_json_nodes(out, h, i + 1, next);
        putc('}', out);
    }
    putc(']', out);
}

void report_calls_json(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row)
{
    put_json_nodes(out, h, row->call, row->call + row->ncalls);
}

/* --- paths --- */

/* What is left of node i's share when its callers are taken away: there the path ends. */
static double share_that_ends(const struct analysis_hotspots *h, size_t i, size_t end)
{
    double share = h->calls[i].share;
    size_t last = after(h, i, end);
    for (size_t k = i + 1; k < last; k = after(h, k, last))
        share -= h->calls[k].share;
    return share;
}

int report_next_path(const struct analysis_hotspots *h, const struct analysis_hotspot *row, size_t *next,
                     struct report_call_path *path)
{
    const size_t end = row->call + row->ncalls;
    if (*next == 0) {
        *path = (struct report_call_path){.share = 1};
        for (size_t i = row->call; i < end; i = after(h, i, end))
            path->share -= h->calls[i].share;
        *next = 1;
        if (path->share > 1e-9 || row->ncalls == 0)
            return 1;
    }
    for (; *next <= row->ncalls; (*next)++) {
        size_t i = row->call + *next - 1;
        double share = share_that_ends(h, i, end);
        if (!(share > 1e-9))
            continue;
        *path = (struct report_call_path){.share = share};
        unsigned depth = h->calls[i].depth;
        path->calls[depth] = &h->calls[i];
        path->n = (size_t)depth + 1;
        for (size_t k = i; k-- > row->call && depth > 0;)
            if (h->calls[k].depth + 1 == depth)
                path->calls[--depth] = &h->calls[k];
        (*next)++;
        return 1;
    }
    return 0;
}

void report_path_text(const struct analysis_hotspots *h, const struct report_call_path *path, char *text,
                      size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < path->n; i++)
        add_call_text(h, path->calls[i], REPORT_NAME_ROOM, text, size);
}
