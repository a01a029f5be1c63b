/* SPDX-License-Identifier: Apache-2.0 */
#include "report/shorten.h"
#include "report/annotate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"
#include "base/fit-text.h"
#include "base/sizes.h"
#include "report/hotspot-names.h"
#include "report/hotspots.h"
#include "symbols/jit-map.h"

/* Lines shown around those with references, and the longest stretch between two that is shown. */
#define CONTEXT 2u
#define LONGEST_GAP 10u
#define TAB 8u
#define MOST_WIDTH 32u /* of a data object's name */
#define NAME_ROOM REPORT_NAME_ROOM

static double share(double value, double all)
{
    return all > 0 ? value / all : 0;
}

/* Those of which a row of hotspots has a share: more than all that were counted where bursts have more
 * elements of string instructions. */
static double all_references(const struct analysis_annotation *a)
{
    const struct analysis_hotspots *h = &a->insns;
    for (size_t i = 0; i < h->n; i++)
        if (h->rows[i].shares.references_share > 0)
            return h->rows[i].shares.references / h->rows[i].shares.references_share;
    return h->total.references;
}

static double ratio(double misses, double references)
{
    return references > 0 ? fmin(1, misses / references) : NAN;
}

/* With spaces for tabs; other control characters are replaced. */
static void put_source(FILE *out, const char *text)
{
    size_t size = strlen(text) * TAB + 1, used = 0;
    char *plain = malloc(size);
    if (!plain)
        return;
    for (; *text; text++) {
        if (*text != '\t')
            plain[used++] = *text;
        else
            do
                plain[used++] = ' ';
            while (used % TAB);
    }
    plain[used] = '\0';
    report_plain(out, plain);
    free(plain);
}

/* NULL: not known. */
static const char *source_line(const struct report_part *p, uint32_t line)
{
    return p->source && line >= 1 && line <= p->source->nlines ? p->source->lines[line - 1] : NULL;
}

/* --- text --- */

static void put_numbers(FILE *out, const struct analysis_annotation *a, double misses, double stall,
                        double references)
{
    double of_line = ratio(misses, references);
    fprintf(out, "%6.2f%%  ", 100 * share(misses, a->insns.total.misses));
    if (a->with_stall)
        fprintf(out, "%6.2f%%  ", 100 * stall);
    report_percent(out, "", 10, 3, of_line, "  ");
    fprintf(out, "%6.2f%%", 100 * share(references, all_references(a)));
}

/* The columns of numbers, with their heads or empty. */
static void put_words(FILE *out, const struct analysis_annotation *a, const char *misses, const char *stall,
                      const char *miss_ratio, const char *references)
{
    fprintf(out, "%7s  ", misses);
    if (a->with_stall)
        fprintf(out, "%7s  ", stall);
    fprintf(out, "%10s  %7s", miss_ratio, references);
}

/* Width of the column of data objects; 0: none is known. */
static int objects_width(const struct annotated *part)
{
    char text[NAME_ROOM];
    size_t width = 0;
    for (size_t i = 0; i < part->nlines; i++)
        if (part->lines[i].object && part->lines[i].misses > 0) {
            report_object_name(part->lines[i].object, text, sizeof text);
            width = strlen(text) > width ? strlen(text) : width;
        }
    return (int)(width > 0 && width < strlen("data") ? strlen("data")
                 : width < MOST_WIDTH                ? width
                                                     : MOST_WIDTH);
}

static void put_object(FILE *out, const struct annotated_line *line, int width)
{
    char text[NAME_ROOM] = "", cut[MOST_WIDTH + 1];
    if (line && line->object && line->misses > 0)
        report_object_name(line->object, text, sizeof text);
    fit_text(cut, (size_t)width + 1, "", text);
    fprintf(out, "  %-*s", width, report_make_plain(cut));
}

/* width: of the column of data objects. */
static void put_line(FILE *out, const struct analysis_annotation *a, const struct report_part *p, int width,
                     uint32_t number, const struct annotated_line *line)
{
    const char *text = source_line(p, number);
    if (line)
        put_numbers(out, a, line->misses, line->stall, line->references);
    else
        put_words(out, a, "", "", "", "");
    if (width)
        put_object(out, line, width);
    if (number)
        fprintf(out, "  %5" PRIu32 "  ", number);
    else
        fprintf(out, "      ?  ");
    put_source(out, text ? text : number ? "" : "(no line)");
    putc('\n', out);
}

static void put_lines(FILE *out, const struct analysis_annotation *a, const struct report_part *p, int width)
{
    const struct annotated *part = p->part;
    uint32_t shown = 0; /* the last one */
    for (size_t i = 0; i < part->nlines; i++) {
        const struct annotated_line *line = &part->lines[i];
        int first = shown == 0;
        if (p->source && line->line) {
            uint32_t from = first || line->line - shown > LONGEST_GAP ? line->line - CONTEXT : shown + 1;
            if (from > line->line || from == 0)
                from = 1;
            if (from <= shown)
                from = shown + 1;
            if (!first && from > shown + 1)
                fputs("    ...\n", out);
            for (uint32_t number = from; number < line->line; number++)
                put_line(out, a, p, width, number, NULL);
        }
        put_line(out, a, p, width, line->line, line);
        shown = line->line;
        if (!p->source || !shown)
            continue;
        /* After the last line before a long gap. */
        uint32_t next = i + 1 < part->nlines ? part->lines[i + 1].line : UINT32_MAX;
        if (next - shown > LONGEST_GAP)
            for (uint32_t number = shown + 1; number <= shown + CONTEXT && number <= p->source->nlines;
                 number++)
                put_line(out, a, p, width, number, NULL);
        if (next - shown > LONGEST_GAP)
            shown += CONTEXT;
    }
}

/* Lines are in their order. */
static const struct annotated_line *find_line(const struct annotated *part, uint32_t number)
{
    size_t low = 0, high = part->nlines;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (part->lines[middle].line < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < part->nlines && part->lines[low].line == number ? &part->lines[low] : NULL;
}

/* A line's numbers are printed where it occurs first: in a loop the compiler may divide it into several
 * places. */
static void put_insns(FILE *out, const struct analysis_annotation *a, const struct report_part *p, int width)
{
    uint32_t line = UINT32_MAX;
    char *printed =
        calloc(p->part->nlines + 1, 1); /* of each line, whether its numbers were; NULL: no memory */
    for (size_t i = 0; i < p->ninsns; i++) {
        const struct report_insn *insn = &p->insns[i];
        if (insn->after_gap && i > 0)
            fputs("    ...\n", out);
        if (insn->line != line && insn->line) {
            const struct annotated_line *counts = find_line(p->part, insn->line);
            char *before = counts && printed ? &printed[counts - p->part->lines] : NULL;
            put_line(out, a, p, width, insn->line, before && *before ? NULL : counts);
            if (before)
                *before = 1;
        }
        line = insn->line;
        if (insn->counts)
            put_numbers(out, a, insn->counts->misses, insn->counts->stall, insn->counts->references);
        else
            put_words(out, a, "", "", "", "");
        fprintf(out, "  %*s%8" PRIx64 ":  ", width ? width + 2 : 0, "", insn->address);
        report_plain(out, insn->text);
        putc('\n', out);
    }
    free(printed);
}

static void put_offsets(FILE *out, const struct analysis_annotation *a, const struct annotated *part)
{
    for (size_t i = 0; i < part->ninsns; i++) {
        put_numbers(out, a, part->insns[i].misses, part->insns[i].stall, part->insns[i].references);
        fprintf(out, "  ");
        report_plain(out, base_name(part->image->path));
        fprintf(out, "+0x%" PRIx64 "\n", part->insns[i].offset);
    }
}

static int is_made_at_run_time(const struct profile_image *image)
{
    uint32_t pid;
    return strcmp(image->path, "[jit]") == 0 || symbols_jit_map_is(image->path) ||
           symbols_jit_dump_is(image->path, &pid);
}

static void put_head(FILE *out, const struct analysis_annotation *a, const struct report_part *p)
{
    const struct annotated *part = p->part;
    const struct shares_result *whole = part->whole;
    double of_part = ratio(part->misses, part->references);
    putc('\n', out);
    report_plain(out, part->function ? part->function : part->file);
    fputs("  (", out);
    report_plain(out, *part->image->path ? base_name(part->image->path) : "unknown");
    fprintf(out, ")\n%.2f%% of the misses", 100 * share(part->misses, a->insns.total.misses));
    if (!a->insns.full && whole && whole->enough)
        fprintf(out, " (%.2f%% to %.2f%%)", 100 * whole->share_low, 100 * whole->share_high);
    else if (!a->insns.full && whole)
        fputs(" (few samples)", out);
    fprintf(out, ", %.2f%% of the references", 100 * share(part->references, all_references(a)));
    if (!isnan(of_part))
        fprintf(out, ", miss ratio %.3f%%", 100 * of_part);
    putc('\n', out);
    if (p->source) {
        report_plain(out, p->source->path);
        fputs(p->source_changed ? " (changed after the program was built: lines may have moved)\n" : "\n",
              out);
    } else if (*part->file) {
        report_plain(out, part->file);
        fputs(" was not found: line numbers only (--source-dir, --prefix-map)\n", out);
    } else if (is_made_at_run_time(part->image)) {
        fputs("No line numbers: the JIT compiler wrote none for this code; only a jitdump can hold them\n",
              out);
    } else {
        fputs("No line numbers: the code has no debug information (compile with -g)\n", out);
    }
    if (p->note) {
        report_plain(out, p->note);
        putc('\n', out);
    }
    putc('\n', out);
}

static void put_text(FILE *out, const struct analysis_annotation *a, const struct report_part *parts,
                     size_t n)
{
    const struct analysis_hotspots *h = &a->insns;
    fputs("Misses by source line: ", out);
    report_hotspots_cache(out, h);
    report_hotspots_source(out, h);
    for (size_t i = 0; i < n; i++) {
        const struct report_part *p = &parts[i];
        put_head(out, a, p);
        put_words(out, a, "misses", "stall", "miss ratio", "refs");
        int width = p->ninsns || *p->part->file ? objects_width(p->part) : 0; /* places have no data */
        if (width)
            fprintf(out, "  %-*s", width, "data");
        fprintf(out, "  %5s\n", *p->part->file ? "line" : "place");
        if (p->ninsns)
            put_insns(out, a, p, width);
        else if (*p->part->file)
            put_lines(out, a, p, width);
        else
            put_offsets(out, a, p->part);
    }
    report_hotspots_part(out, h);
}

/* --- for scripts --- */

struct row {
    uint32_t line;
    double references, misses, stall;
    uint64_t recorded, offset;
    const struct profile_object *object;
    const char *text;
    int is_insn;
};

static void put_csv_row(FILE *out, const struct analysis_annotation *a, const struct annotated *part,
                        const struct row *r)
{
    char object[NAME_ROOM] = "";
    double all = all_references(a);
    report_csv_plain(out, part->function ? part->function : "");
    report_csv_next_plain(out, part->file);
    putc(',', out);
    if (r->line)
        fprintf(out, "%" PRIu32, r->line);
    putc(',', out);
    if (r->object)
        report_object_name(r->object, object, sizeof object);
    report_csv_plain(out, object);
    const double numbers[] = {share(r->references, all), a->insns.size_bytes, ratio(r->misses, r->references),
                              share(r->misses, a->insns.total.misses), r->stall};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        report_csv_next_number(out, numbers[i]);
    report_csv_next_plain(out, part->image->path);
    putc(',', out);
    if (r->is_insn)
        fprintf(out, "%" PRIu64, r->offset);
    report_csv_next_number(out, all > 0 ? 1000 * r->misses / all : NAN);
    fprintf(out, ",%" PRIu64 ",", r->recorded);
    report_csv_plain(out, r->text ? r->text : "");
    putc('\n', out);
}

static struct row row_of_line(const struct report_part *p, const struct annotated_line *line)
{
    return (struct row){.line = line->line,
                        .references = line->references,
                        .misses = line->misses,
                        .stall = line->stall,
                        .recorded = line->recorded,
                        .object = line->misses > 0 ? line->object : NULL,
                        .text = source_line(p, line->line)};
}

static struct row row_of_insn(const struct analysis_annotation *a, const struct report_insn *insn)
{
    struct row row = {.line = insn->line,
                      .stall = a->with_stall ? 0 : NAN,
                      .offset = insn->offset,
                      .text = insn->text,
                      .is_insn = 1};
    if (insn->counts) {
        row.references = insn->counts->references;
        row.misses = insn->counts->misses;
        row.stall = insn->counts->stall;
        row.recorded = insn->counts->recorded;
    }
    return row;
}

static void put_csv(FILE *out, const struct analysis_annotation *a, const struct report_part *parts, size_t n)
{
    fputs("function,file,line,object,refs_share,size_bytes,miss_ratio,miss_share,stall_share,module,offset,"
          "misses_per_1000_refs,recorded_refs,text\n",
          out);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < parts[i].part->nlines; k++) {
            struct row row = row_of_line(&parts[i], &parts[i].part->lines[k]);
            put_csv_row(out, a, parts[i].part, &row);
        }
        for (size_t k = 0; k < parts[i].ninsns; k++) {
            struct row row = row_of_insn(a, &parts[i].insns[k]);
            put_csv_row(out, a, parts[i].part, &row);
        }
    }
}

static void put_json_row(FILE *out, const struct analysis_annotation *a, const struct row *r)
{
    char object[NAME_ROOM];
    if (r->line)
        fprintf(out, "{\"line\": %" PRIu32, r->line);
    else
        fputs("{\"line\": null", out);
    if (r->is_insn)
        fprintf(out, ", \"offset\": %" PRIu64, r->offset);
    report_json_member_string(out, ", ", "text", r->text);
    report_json_member_number(out, ", ", "refs_share", share(r->references, all_references(a)));
    report_json_member_number(out, ", ", "miss_ratio", ratio(r->misses, r->references));
    report_json_member_number(out, ", ", "miss_share", share(r->misses, a->insns.total.misses));
    report_json_member_number(out, ", ", "stall_share", r->stall);
    fprintf(out, ", \"recorded_refs\": %" PRIu64, r->recorded);
    if (r->object) {
        report_object_name(r->object, object, sizeof object);
        report_json_member_string(out, ", ", "object", object);
    }
    putc('}', out);
}

static void put_json_part(FILE *out, const struct analysis_annotation *a, const struct report_part *p)
{
    const struct annotated *part = p->part;
    const struct shares_result *whole = part->whole && part->whole->enough ? part->whole : NULL;
    report_json_member_string(out, "{", "module", part->image->path);
    report_json_member_string(out, ", ", "build_id", *part->image->build_id ? part->image->build_id : NULL);
    report_json_member_string(out, ", ", "function", part->function);
    report_json_member_string(out, ", ", "file", *part->file ? part->file : NULL);
    report_json_member_string(out, ", ", "source", p->source ? p->source->path : NULL);
    fprintf(out, ", \"source_changed\": %s", p->source_changed ? "true" : "false");
    report_json_member_string(out, ", ", "note", p->note);
    report_json_member_number(out, ", ", "refs_share", share(part->references, all_references(a)));
    report_json_member_number(out, ", ", "miss_ratio", ratio(part->misses, part->references));
    report_json_member_number(out, ", ", "miss_share", share(part->misses, a->insns.total.misses));
    report_json_member_number(out, ", ", "stall_share", part->stall);
    report_json_member_number(out, ", ", "miss_share_low", whole ? whole->share_low : NAN);
    report_json_member_number(out, ", ", "miss_share_high", whole ? whole->share_high : NAN);
    fputs(",\n     \"lines\": [", out);
    for (size_t i = 0; i < part->nlines; i++) {
        struct row row = row_of_line(p, &part->lines[i]);
        fputs(i ? ",\n       " : "\n       ", out);
        put_json_row(out, a, &row);
    }
    fputs("],\n     \"instructions\": [", out);
    for (size_t i = 0; i < p->ninsns; i++) {
        struct row row = row_of_insn(a, &p->insns[i]);
        fputs(i ? ",\n       " : "\n       ", out);
        put_json_row(out, a, &row);
    }
    fputs("]}", out);
}

static void put_json(FILE *out, const struct analysis_annotation *a, const struct report_part *parts,
                     size_t n)
{
    const struct analysis_hotspots *h = &a->insns;
    report_json_member_string(out, "{\n  ", "profile", h->profile);
    fprintf(out, ",\n  \"mode\": \"%s\",\n  \"size_bytes\": %.0f,\n  \"line_bytes\": %u",
            h->full ? "full" : "burst", h->size_bytes, h->line_bytes);
    if (h->separate)
        fputs(",\n  \"threads\": \"separate\"", out);
    report_json_member_number(out, ",\n  ", "miss_ratio", h->total.miss_ratio);
    fputs(",\n  \"parts\": [", out);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ",\n    " : "\n    ", out);
        put_json_part(out, a, &parts[i]);
    }
    fputs(n ? "\n  ]\n}\n" : "]\n}\n", out);
}

void report_annotation(FILE *out, const struct analysis_annotation *a, const struct report_part *parts,
                       size_t n, enum report_format format)
{
    if (format == REPORT_CSV)
        put_csv(out, a, parts, n);
    else if (format == REPORT_JSON)
        put_json(out, a, parts, n);
    else
        put_text(out, a, parts, n);
}
