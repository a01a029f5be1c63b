/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots-json.c - a table of hotspots as JSON: an object with the table's properties and an array of rows,
 * of which the members that name code and data are there only if the table is by these.
 */
#include "report/hotspots-internal.h"

#include <inttypes.h>
#include <math.h>

#include "report/calls.h"
#include "report/hotspot-names.h"

static void put_json_frame(FILE *out, const struct profile_frame *frame)
{
    report_json_member_string(out, "{", "function", *frame->function ? frame->function : NULL);
    if (*frame->file) {
        report_json_member_string(out, ", ", "file", frame->file);
        fprintf(out, ", \"line\": %" PRIu32 ", \"line_guessed\": %s", frame->line,
                frame->guessed ? "true" : "false");
    }
    putc('}', out);
}

static void put_json_code(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row)
{
    char text[REPORT_NAME_ROOM];
    report_json_member_string(out, "", "module", row->image->path);
    if (*row->image->build_id)
        report_json_member_string(out, ", ", "build_id", row->image->build_id);
    if (h->by != ANALYSIS_BY_MODULE) {
        const struct profile_frame *frame = report_hotspot_frame(h, row);
        report_hotspot_function(h, row, text);
        report_json_member_string(out, ", ", "function", text);
        if (frame && h->by != ANALYSIS_BY_FUNCTION) {
            fputs(", \"frames\": [", out);
            for (int first = 1; frame; frame = analysis_caller(h, frame), first = 0) {
                fputs(first ? "" : ", ", out);
                put_json_frame(out, frame);
            }
            putc(']', out);
        }
    }
    if (row->offset != PROFILE_SITE_REST)
        fprintf(out, ", \"offset\": %" PRIu64, row->offset);
}

static void put_json_object(FILE *out, const struct profile_object *object)
{
    char text[REPORT_NAME_ROOM];
    report_object_name(object, text, sizeof text);
    report_json_member_string(out, "", "object", text);
    fprintf(out, ", \"object_kind\": \"%s\"",
            profile_object_kind(object ? object->kind : PROFILE_OBJECT_UNKNOWN));
    if (object && *object->module)
        report_json_member_string(out, ", ", "object_module", object->module);
    if (object && report_object_has_offset(object))
        fprintf(out, ", \"object_offset\": %" PRIu64, object->offset);
    if (object && object->size)
        fprintf(out, ", \"object_size\": %" PRIu64, object->size);
}

void report_hotspot_json_name(FILE *out, const struct analysis_hotspots *h,
                              const struct analysis_hotspot *row)
{
    if (h->by != ANALYSIS_BY_NOTHING)
        put_json_code(out, h, row);
    if (h->objects && h->by != ANALYSIS_BY_NOTHING)
        fputs(", ", out);
    if (h->objects)
        put_json_object(out, row->object);
    if (row->field) {
        report_json_member_string(out, ", ", "field", report_field_name(row->field));
        if (*row->field->type)
            report_json_member_string(out, ", ", "field_type", row->field->type);
    }
}

static void put_json_row(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row)
{
    const struct shares_result *s = &row->shares;
    putc('{', out);
    report_hotspot_json_name(out, h, row);
    report_json_member_number(out, ", ", "refs_share", s->references_share);
    report_json_member_number(out, ", ", "miss_ratio", s->miss_ratio);
    report_json_member_number(out, ", ", "miss_share", s->misses_share);
    report_json_member_number(out, ", ", "stall_share", row->stall);
    report_json_member_number(out, ", ", "misses_per_1000_refs",
                              h->total.references > 0 ? 1000 * s->misses / h->total.references : NAN);
    report_json_member_number(out, ", ", "miss_share_low", s->enough ? s->share_low : NAN);
    report_json_member_number(out, ", ", "miss_share_high", s->enough ? s->share_high : NAN);
    report_json_member_number(out, ", ", "miss_ratio_low", s->enough ? s->ratio_low : NAN);
    report_json_member_number(out, ", ", "miss_ratio_high", s->enough ? s->ratio_high : NAN);
    report_json_member_number(out, ", ", "line_used_share", row->used_share);
    report_json_member_number(out, ", ", "stride_bytes", row->stride ? (double)row->stride : NAN);
    report_json_member_number(out, ", ", "conflict_share", row->conflicts);
    fprintf(out, ", \"recorded_refs\": %" PRIu64 ", \"enough_samples\": %s", s->recorded,
            s->enough ? "true" : "false");
    if (row->ncalls > 0) {
        fputs(", \"calls\": ", out);
        report_calls_json(out, h, row);
    }
    putc('}', out);
}

void report_hotspots_json(FILE *out, const struct analysis_hotspots *h, size_t left_out)
{
    report_json_member_string(out, "{\n  ", "profile", h->profile);
    fprintf(out, ",\n  \"mode\": \"%s\",\n  \"by\": \"%s\",\n  \"size_bytes\": %.0f,\n  \"line_bytes\": %u",
            h->full ? "full" : "burst", h->by == ANALYSIS_BY_INSN ? "insn" : report_by_names[h->by],
            h->size_bytes, h->line_bytes);
    if (h->separate)
        fputs(",\n  \"threads\": \"separate\"", out);
    fprintf(out, ",\n  \"bursts\": %zu,\n  \"bursts_without_code\": %zu,\n  \"rows_left_out\": %zu",
            h->bursts, h->other_bursts, left_out);
    if (h->phase)
        fprintf(out, ",\n  \"phase\": %" PRIu32 ",\n  \"phase_in_part\": %s", h->phase,
                h->part_left_out ? "true" : "false");
    report_json_member_number(out, ",\n  ", "miss_ratio", h->total.miss_ratio);
    fputs(",\n  \"rows\": [", out);
    for (size_t i = 0; i < h->n; i++) {
        fputs(i ? ",\n    " : "\n    ", out);
        put_json_row(out, h, &h->rows[i]);
    }
    fputs(h->n ? "\n  ]\n}\n" : "]\n}\n", out);
}
