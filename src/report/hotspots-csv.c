/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots-csv.c - a table of hotspots as CSV. Every row has the same columns, whatever the table is by; what
 * it does not have is empty. With calls, a row has a line for each path of calls by which it was reached.
 */
#include "report/hotspots-internal.h"

#include <inttypes.h>
#include <math.h>

#include "report/calls.h"
#include "report/hotspot-names.h"

/* The last columns. */
static void put_csv_use(FILE *out, const struct analysis_hotspot *row)
{
    report_csv_next_plain(out, row->field ? report_field_name(row->field) : "");
    report_csv_next_plain(out, row->field ? row->field->type : "");
    report_csv_next_number(out, row->used_share);
    putc(',', out);
    if (row->stride)
        fprintf(out, "%" PRId64, row->stride);
    report_csv_next_number(out, row->conflicts);
}

/* The rest of a line: what of the row was reached by a path of calls. */
static void put_csv_path(FILE *out, const struct analysis_hotspots *h, const struct report_call_path *path)
{
    char text[REPORT_NAME_ROOM];
    if (h->with_calls) {
        report_path_text(h, path, text, sizeof text);
        report_csv_next_plain(out, text);
        report_csv_next_number(out, path->share);
    }
    putc('\n', out);
}

static void put_csv_row(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row)
{
    char text[REPORT_NAME_ROOM];
    const struct shares_result *s = &row->shares;
    const struct profile_frame *frame = report_hotspot_frame(h, row);
    const struct profile_object *object = row->object;
    text[0] = '\0';
    if (h->by != ANALYSIS_BY_MODULE && h->by != ANALYSIS_BY_NOTHING)
        report_hotspot_function(h, row, text);
    report_csv_plain(out, text);
    putc(',', out);
    if (h->by != ANALYSIS_BY_FUNCTION && frame && *frame->file) {
        report_csv_plain(out, frame->file);
        fprintf(out, ",%" PRIu32, frame->line);
    } else {
        putc(',', out);
    }
    putc(',', out);
    if (h->objects)
        report_object_name(object, text, sizeof text);
    report_csv_plain(out, h->objects ? text : "");
    report_csv_next_number(out, s->references_share);
    fprintf(out, ",%.0f,", h->size_bytes);
    report_csv_number(out, s->miss_ratio);
    report_csv_next_number(out, s->misses_share);
    report_csv_next_number(out, row->stall);
    report_csv_next_plain(out, row->image ? row->image->path : "");
    putc(',', out);
    if (row->offset != PROFILE_SITE_REST)
        fprintf(out, "%" PRIu64, row->offset);
    putc(',', out);
    report_inlined_into(h, h->by == ANALYSIS_BY_FUNCTION ? NULL : frame, text);
    report_csv_plain(out, text);
    report_csv_next_number(out, h->total.references > 0 ? 1000 * s->misses / h->total.references : NAN);
    fprintf(out, ",%" PRIu64 ",", s->recorded);
    const double ends[] = {s->share_low, s->share_high, s->ratio_low, s->ratio_high};
    for (size_t k = 0; k < 4; k++) {
        report_csv_number(out, s->enough ? ends[k] : NAN);
        putc(',', out);
    }
    fprintf(out, "%d,%s,", s->enough, object ? profile_object_kind(object->kind) : "");
    report_csv_plain(out, object ? object->module : "");
    if (object && report_object_has_offset(object))
        fprintf(out, ",%" PRIu64 ",", object->offset);
    else
        fputs(",,", out);
    if (object && object->size)
        fprintf(out, "%" PRIu64, object->size);
    put_csv_use(out, row);
}

void report_hotspots_csv(FILE *out, const struct analysis_hotspots *h)
{
    fputs(
        "function,file,line,object,refs_share,size_bytes,miss_ratio,miss_share,stall_share,module,offset,"
        "inlined_into,misses_per_1000_refs,recorded_refs,miss_share_low,miss_share_high,miss_ratio_low,"
        "miss_ratio_high,enough_samples,object_kind,object_module,object_offset,object_size,field,field_type,"
        "line_used_share,stride_bytes,conflict_share",
        out);
    fputs(h->with_calls ? ",call_path,call_share\n" : "\n", out);
    for (size_t i = 0; i < h->n; i++) {
        struct report_call_path path;
        for (size_t next = 0; report_next_path(h, &h->rows[i], &next, &path);) {
            put_csv_row(out, h, &h->rows[i]);
            put_csv_path(out, h, &path);
        }
    }
}
