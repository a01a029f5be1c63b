/* SPDX-License-Identifier: Apache-2.0 */
#include "report/hotspots.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"
#include "base/sizes.h"
#include "report/calls.h"
#include "report/shorten.h"

#define NAME_ROOM REPORT_NAME_ROOM
/* A share is accurate if half its interval is at most that part of it. */
#define ACCURATE 0.1

static const char *image_name(const struct profile_image *image)
{
    return *image->path ? base_name(image->path) : "unknown";
}

/* Prints a function's name, or the module and offset if it has none. */
static void put_function(const struct analysis_hotspot *row, const struct profile_frame *frame,
                         char text[NAME_ROOM])
{
    if (row->rest)
        snprintf(text, NAME_ROOM, "[rest of %s]", image_name(row->image));
    else if (frame && *frame->function && row->source)
        snprintf(text, NAME_ROOM, "%s (%s)", frame->function, base_name(row->source));
    else if (frame && *frame->function)
        report_fit_name(text, NAME_ROOM, frame->function);
    else
        snprintf(text, NAME_ROOM, *image_name(row->image) == '[' ? "%s" : "[%s]", image_name(row->image));
}

/* A data object's name. */
static void put_object(const struct profile_object *object, char text[NAME_ROOM])
{
    static const char *const formats[PROFILE_OBJECT_KINDS] = {
        [PROFILE_OBJECT_VARIABLE] = "%s",
        [PROFILE_OBJECT_STACK] = "[stack of %s]",
        [PROFILE_OBJECT_TLS] = "[thread-local data of %s]",
        [PROFILE_OBJECT_HEAP] = "[%s]",
        [PROFILE_OBJECT_FILE] = "[file %s]",
        [PROFILE_OBJECT_ANONYMOUS] = "%s",
        [PROFILE_OBJECT_BLOCK] = "block of %s",
        [PROFILE_OBJECT_UNKNOWN] = "[%s]",
        [PROFILE_OBJECT_OTHER] = "[%s]",
        [PROFILE_OBJECT_THREAD_LOCAL] = "%s",
    };
    if (!object)
        snprintf(text, NAME_ROOM, "[unknown]");
    else if (object->kind == PROFILE_OBJECT_SECTION)
        snprintf(text, NAME_ROOM, "[%s of %s]", *object->name ? object->name : "data",
                 base_name(object->module));
    else if (object->kind == PROFILE_OBJECT_ANONYMOUS && !*object->name)
        snprintf(text, NAME_ROOM, "[anonymous memory]");
    else
        snprintf(text, NAME_ROOM, formats[object->kind], /* NOLINT: all have one %s */
                 object->kind == PROFILE_OBJECT_FILE ? base_name(object->name) : object->name);
}

static int matches(const char *pattern, const char *name)
{
    return strcmp(pattern, name) == 0 || fnmatch(pattern, name, 0) == 0;
}

int report_hotspot_is(const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                      const char *function, const char *object)
{
    char text[NAME_ROOM];
    if (function) {
        put_function(row, h->by == ANALYSIS_BY_FUNCTION ? row->outer : row->frame, text);
        int is_name = !row->rest && row->outer && *row->outer->function;
        if (!matches(function, text) &&
            !(is_name && analysis_function_matches(function, row->outer->function)))
            return 0;
    }
    if (!object)
        return 1;
    put_object(row->object, text);
    return matches(object, text) || (row->object && matches(object, row->object->name));
}

int report_hotspot_is_inlined(const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                              const char *function)
{
    const struct profile_frame *frame = row->rest ? NULL : row->frame;
    while (frame && !(*frame->function && (matches(function, frame->function) ||
                                           analysis_function_matches(function, frame->function))))
        frame = analysis_caller(h, frame);
    return frame != NULL;
}

/* A field's name without what comes before it: "position.x" of "[].position.x". */
static const char *field_name(const struct profile_field *field)
{
    const char *name = field->name;
    while (*name == '[' || *name == ']' || *name == '.')
        name++;
    return *name ? name : "(several)";
}

/* Bytes of a type's name, without the arguments of a template if the end of these was cut off. */
static int whole_bytes(const char *type)
{
    size_t n = strlen(type);
    return (int)(n > 0 && type[n - 1] == '>' ? n : strcspn(type, "<"));
}

/* The object's name, and the field's with fields. */
static void put_data(const struct analysis_hotspot *row, char text[NAME_ROOM])
{
    const struct profile_field *field = row->field;
    put_object(row->object, text);
    size_t used = strlen(text);
    if (!field)
        return;
    if (!*field->name)
        snprintf(text + used, NAME_ROOM - used, " (several fields)");
    else if (row->object && !profile_object_is_variable(row->object))
        snprintf(text + used, NAME_ROOM - used, ": %.*s%s.%s", whole_bytes(field->type), field->type,
                 field->type[whole_bytes(field->type)] ? "<...>" : "", field_name(field));
    else
        snprintf(text + used, NAME_ROOM - used, "%s", field->name);
}

void report_object_name(const struct profile_object *object, char *text, size_t size)
{
    char name[NAME_ROOM];
    put_object(object, name);
    snprintf(text, size, "%s", name);
}

/* Prints into which functions the frame was inlined: "f a.c:7 < g b.c:9"; empty: none. */
static void put_callers(const struct analysis_hotspots *h, const struct profile_frame *frame,
                        char text[NAME_ROOM])
{
    size_t used = 0;
    text[0] = '\0';
    for (frame = frame ? analysis_caller(h, frame) : NULL; frame; frame = analysis_caller(h, frame)) {
        int n = snprintf(text + used, NAME_ROOM - used, "%s%s", used ? " < " : "",
                         *frame->function ? frame->function : "?");
        if (n > 0 && *frame->file && used + (size_t)n < NAME_ROOM)
            n += snprintf(text + used + n, NAME_ROOM - used - (size_t)n, " %s:%" PRIu32,
                          base_name(frame->file), frame->line);
        if (n < 0 || used + (size_t)n >= NAME_ROOM)
            return;
        used += (size_t)n;
    }
}

/* --- selection --- */

static int by_number(double x, double y)
{
    return x < y ? 1 : x > y ? -1 : 0;
}

static int compare_ratio(const void *a, const void *b)
{
    const struct analysis_hotspot *x = a, *y = b;
    return by_number(x->shares.miss_ratio, y->shares.miss_ratio);
}

static int compare_refs(const void *a, const void *b)
{
    const struct analysis_hotspot *x = a, *y = b;
    return by_number(x->shares.references, y->shares.references);
}

static int compare_stall(const void *a, const void *b)
{
    const struct analysis_hotspot *x = a, *y = b;
    return by_number(x->stall, y->stall);
}

static int compare_name(const void *a, const void *b)
{
    const struct analysis_hotspot *x = a, *y = b;
    int order = strcmp(x->outer ? x->outer->function : "", y->outer ? y->outer->function : "");
    if (order == 0 && x->image && y->image)
        order = strcmp(x->image->path, y->image->path);
    if (order == 0 && x->frame && y->frame)
        order = x->frame->line < y->frame->line ? -1 : x->frame->line > y->frame->line;
    if (order == 0 && x->object && y->object)
        order = strcmp(x->object->name, y->object->name);
    if (order == 0 && x->field && y->field)
        order = strcmp(x->field->name, y->field->name);
    return order ? order : by_number(x->shares.misses, y->shares.misses);
}

/* Whether a row's code, or its data if it has no code, is of that file. */
static int is_of_file(const struct analysis_hotspot *row, const char *file)
{
    const char *path = row->image ? row->image->path : row->object ? row->object->module : "";
    return strcmp(path, file) == 0 || strcmp(base_name(path), file) == 0;
}

int report_hotspots_have_file(const struct analysis_hotspots *h, const char *file)
{
    for (size_t i = 0; i < h->n; i++)
        if (is_of_file(&h->rows[i], file))
            return 1;
    return 0;
}

void report_hotspots_select(struct analysis_hotspots *h, const struct report_hotspots_view *view)
{
    static int (*const compare[])(const void *, const void *) = {[REPORT_SORT_RATIO] = compare_ratio,
                                                                 [REPORT_SORT_REFS] = compare_refs,
                                                                 [REPORT_SORT_NAME] = compare_name,
                                                                 [REPORT_SORT_STALL] = compare_stall};
    size_t used = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct analysis_hotspot *row = &h->rows[i];
        if (view->dso && !is_of_file(row, view->dso))
            continue;
        if (100 * row->shares.misses_share < view->least_percent)
            continue;
        h->rows[used++] = *row;
    }
    h->n = used;
    if (view->sort != REPORT_SORT_MISSES && used > 0)
        qsort(h->rows, used, sizeof *h->rows, compare[view->sort]);
    if (view->limit && h->n > view->limit)
        h->n = view->limit;
}

/* --- text --- */

static const char *const by_names[] = {"function", "line", "module", "instruction", ""};
/* Least width of what is before the object. */
#define CODE_COLUMNS 30

static void put_place(FILE *out, const struct profile_frame *frame)
{
    if (!frame || !*frame->file)
        return;
    putc(' ', out);
    report_plain(out, base_name(frame->file));
    fprintf(out, ":%s%" PRIu32, frame->guessed ? "~" : "", frame->line);
}

/* Code without a symbol is named by module and offset. */
static int begins_with_module(const char *name, const struct analysis_hotspot *row)
{
    const char *module = image_name(row->image);
    size_t length = strlen(module);
    return strncmp(name, module, length) == 0 && name[length] == '+';
}

/* Bytes of a name in text; what templates have for arguments is left out if it is longer. */
#define NAME_MOST 90
/* Likewise in a table that is cut at the terminal's width. */
#define BRIEF_MOST 30
/* Of all functions that code is inlined into, in a line of text: else those of libraries are left out. */
#define CALLERS_MOST 180

/* As put_callers, for people. */
static void put_callers_briefly(FILE *out, const struct analysis_hotspots *h,
                                const struct profile_frame *frame)
{
    char text[NAME_ROOM];
    const struct profile_frame *next;
    put_callers(h, frame, text);
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
    char text[NAME_ROOM];
    if (h->by == ANALYSIS_BY_MODULE) {
        report_plain(out, *row->image->path ? row->image->path : "[unknown]");
        return;
    }
    if (h->by == ANALYSIS_BY_INSN && row->offset != PROFILE_SITE_REST) {
        report_plain(out, image_name(row->image));
        fprintf(out, "+0x%" PRIx64 " ", row->offset);
    }
    put_function(row, h->by == ANALYSIS_BY_FUNCTION ? row->outer : row->frame, text);
    report_shorten(text, most);
    report_plain(out, text);
    if (h->by != ANALYSIS_BY_FUNCTION) {
        put_place(out, row->frame);
        if (row->frame)
            put_callers_briefly(out, h, row->frame);
    }
    if (h->by != ANALYSIS_BY_INSN && !row->rest && row->outer && *row->outer->function &&
        !begins_with_module(row->outer->function, row)) {
        fputs("  (", out);
        report_plain(out, image_name(row->image));
        putc(')', out);
    }
}

static void put_object_name(FILE *out, const struct analysis_hotspot *row, size_t most)
{
    const struct profile_object *object = row->object;
    char text[NAME_ROOM];
    put_data(row, text);
    report_shorten(text, most);
    report_plain(out, text);
    if (object && (profile_object_is_variable(object) || object->kind == PROFILE_OBJECT_BLOCK) &&
        *object->module) {
        fputs("  (", out);
        report_plain(out, base_name(object->module));
        putc(')', out);
    }
}

void report_hotspot_name(const struct analysis_hotspots *h, const struct analysis_hotspot *row, char *text,
                         size_t size)
{
    char code[NAME_ROOM] = "", place[NAME_ROOM] = "", object[NAME_ROOM] = "";
    int by_code = h->by != ANALYSIS_BY_NOTHING;
    if (h->by == ANALYSIS_BY_MODULE)
        snprintf(code, sizeof code, "%s", *row->image->path ? row->image->path : "[unknown]");
    else if (h->by == ANALYSIS_BY_INSN && row->offset != PROFILE_SITE_REST)
        snprintf(code, sizeof code, "%s+0x%" PRIx64, image_name(row->image), row->offset);
    else if (by_code)
        put_function(row, h->by == ANALYSIS_BY_FUNCTION ? row->outer : row->frame, code);
    if (h->by == ANALYSIS_BY_LINE && !row->rest && row->frame && *row->frame->file)
        snprintf(place, sizeof place, " %s:%" PRIu32, base_name(row->frame->file), row->frame->line);
    if (h->objects)
        put_data(row, object);
    snprintf(text, size, "%s%s%s%s", code, place, by_code && h->objects ? ", " : "", object);
}

/* most: bytes of each name, if templates' arguments can be left out. */
static void put_row_name(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                         size_t most)
{
    char *text = NULL;
    size_t size = 0;
    if (!h->objects || h->by == ANALYSIS_BY_NOTHING) {
        if (h->objects)
            put_object_name(out, row, most);
        else
            put_code_name(out, h, row, most);
        return;
    }
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return;
    put_code_name(memory, h, row, most);
    if (fclose(memory) == 0)
        fprintf(out, "%-*s  ", CODE_COLUMNS, text);
    free(text);
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

void report_hotspots_part(FILE *out, const struct analysis_hotspots *h)
{
    if (h->part_left_out)
        fputs("\nNote: only bursts of this phase are counted. In its part that was recorded completely, code "
              "is not\n"
              "counted by phase.\n",
              out);
}

void report_hotspots_source(FILE *out, const struct analysis_hotspots *h)
{
    const char *plural = h->bursts == 1 ? "" : "s";
    if (h->full && h->missed_percent > ANALYSIS_MISSED_PERCENT)
        fprintf(out, "from %.0f touches of lines; about %.*f%% of all are missing; miss ratio %.3f%%\n",
                h->total.references, h->missed_percent < 10, h->missed_percent, 100 * h->total.miss_ratio);
    else if (h->full)
        fprintf(out, "from all %.0f touches of lines%s; miss ratio %.3f%%\n", h->total.references,
                report_extent(h->extent), 100 * h->total.miss_ratio);
    else if (h->exact_references > 0)
        fprintf(out,
                "from the first %.0f touches of lines, and %.0f in %zu burst%s; miss ratio %.3f%% (%.3f%% to "
                "%.3f%%)\n",
                h->exact_references, (double)h->total.recorded - h->exact_references, h->bursts, plural,
                100 * h->total.miss_ratio, 100 * h->total.ratio_low, 100 * h->total.ratio_high);
    else
        fprintf(out, "from %zu burst%s, %" PRIu64 " touches of lines; miss ratio %.3f%% (%.3f%% to %.3f%%)\n",
                h->bursts, plural, h->total.recorded, 100 * h->total.miss_ratio, 100 * h->total.ratio_low,
                100 * h->total.ratio_high);
}

/* How many times as many bursts would make the largest share accurate: errors fall with the square root of
 * their number. */
static void put_advice(FILE *out, const struct analysis_hotspots *h)
{
    const struct shares_result *s = h->n > 0 ? &h->rows[0].shares : NULL;
    if (h->full || !s)
        return;
    double half = s->enough ? (s->share_high - s->share_low) / 2 / (s->misses_share * ACCURATE) : 0;
    double times = half * half, unit = times >= 10 ? pow(10, floor(log10(times)) - 1) : 1;
    if (!s->enough)
        fputs("\nTo know more, record for longer or with a larger --overhead; --mode full is exact.\n", out);
    else if (times >= 2)
        fprintf(out,
                "\nTo know the largest share within a tenth takes about %.0f times as many bursts: record "
                "for longer "
                "or\nwith a larger --overhead; --mode full is exact.\n",
                ceil(times / unit) * unit);
}

/* Which of the optional columns a table has. */
struct columns {
    int stall, used, stride;
    size_t most; /* see put_row_name */
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
    put_row_name(out, h, row, columns->most);
    putc('\n', out);
    report_calls_text(out, h, row);
}

/* Least share of the misses in code of JIT compilers that is worth a hint at how it gets names. */
#define UNNAMED_SHARE 0.05
/* Likewise of string instructions that bursts lack. */
#define UNSEEN_STRINGS 0.05

static double unnamed_share(const struct analysis_hotspots *h)
{
    double share = 0;
    for (size_t i = 0; i < h->n; i++)
        if (h->rows[i].image && strcmp(h->rows[i].image->path, "[jit]") == 0)
            share += h->rows[i].shares.misses_share;
    return share;
}

/* What the reader should know of the table. */
static void put_notes(FILE *out, const struct analysis_hotspots *h)
{
    int few = 0, guessed = 0, calls = 0;
    for (size_t i = 0; i < h->n; i++) {
        calls |= h->rows[i].ncalls > 0;
        few |= !h->rows[i].shares.enough;
        guessed |= h->rows[i].frame && h->rows[i].frame->guessed;
    }
    if (calls)
        fputs(
            "\n<: called by. The percentage is of the row's misses, from a sample. Calls below 5%, and rows "
            "below 1%\nof all misses, are left out.\n",
            out);
    if (few)
        fputs("\nFew samples: not enough misses were seen for an interval.\n", out);
    put_advice(out, h);
    if (guessed)
        fputs("\n~: the compiler gave the instruction no line; the line of the nearest previous one is "
              "printed.\n",
              out);
    if (!h->full && isnan(h->far))
        fputs("\nNote: too few watched lines: of references whose result the bursts do not show, half are "
              "assumed to "
              "miss.\n",
              out);
    if (h->unseen_strings >= UNSEEN_STRINGS)
        fprintf(out,
                "\nNote: bursts have too few of the long string instructions of memset and memcpy. About "
                "%.0f%% of the misses\n"
                "are estimated to be theirs, and are in no row.\n",
                100 * h->unseen_strings);
    report_hotspots_part(out, h);
    if (unnamed_share(h) >= UNNAMED_SHARE)
        fputs("\nNote: [jit] is code made at run time, whose compiler has left no names: see 'node "
              "--perf-basic-prof',\n"
              "'java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit' and the like.\n",
              out);
    if (h->own_malloc)
        fputs("\nNote: a program has its own malloc, whose blocks are not known.\n", out);
    if (h->other_bursts)
        fprintf(out, "\nNote: %zu more bursts have no counts of their code, to keep the profile small.\n",
                h->other_bursts);
}

void report_hotspots_cache(FILE *out, const struct analysis_hotspots *h)
{
    char size[SIZE_TEXT];
    fprintf(out, "LRU cache of %s%s, %u-byte lines", size_format((uint64_t)h->size_bytes, size),
            h->separate           ? " for each thread"
            : h->busy_threads > 1 ? " that the threads share"
                                  : "",
            h->line_bytes);
    if (h->phase)
        fprintf(out, ", phase %" PRIu32, h->phase);
    putc('\n', out);
}

static void put_text(FILE *out, const struct analysis_hotspots *h, size_t left_out, int brief)
{
    char size[SIZE_TEXT], rows[32];
    struct columns columns = {.stall = h->n && !isnan(h->rows[0].stall),
                              .stride = h->by == ANALYSIS_BY_LINE || h->by == ANALYSIS_BY_INSN,
                              .most = brief ? BRIEF_MOST : NAME_MOST};
    for (size_t i = 0; i < h->n; i++)
        columns.used |= !isnan(h->rows[i].used_share);
    snprintf(rows, sizeof rows, "%s%s%s", by_names[h->by], h->objects && *by_names[h->by] ? ", " : "",
             h->fields    ? "field"
             : h->objects ? "object"
                          : "");
    fprintf(out, "Misses by %s: ", rows);
    report_hotspots_cache(out, h);
    if (!brief) {
        report_hotspots_source(out, h);
        putc('\n', out);
    }
    fprintf(out, "%7s  %s%s%10s  %7s  %s%s%s\n", "misses", h->full ? "" : "    low to high   ",
            columns.stall ? "  stall  " : "", "miss ratio", "refs", columns.used ? "used  " : "",
            columns.used && columns.stride ? "  stride  " : "", rows);
    for (size_t i = 0; i < h->n; i++)
        put_row(out, h, &h->rows[i], &columns);
    if (left_out && brief)
        fprintf(out, "and %zu more: cachegram hotspots --size %s%s\n", left_out,
                size_format((uint64_t)h->size_bytes, size), h->separate ? " --threads separate" : "");
    else if (left_out)
        fprintf(out, "and %zu more (--limit, --percent-limit)\n", left_out);
    if (!brief)
        put_notes(out, h);
}

/* --- for scripts --- */

static int has_place(const struct profile_object *object)
{
    return profile_object_is_variable(object) || object->kind == PROFILE_OBJECT_SECTION;
}

/* The last columns. */
static void put_csv_use(FILE *out, const struct analysis_hotspot *row)
{
    report_csv_next_plain(out, row->field ? field_name(row->field) : "");
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
    char text[NAME_ROOM];
    if (h->with_calls) {
        report_path_text(h, path, text, sizeof text);
        report_csv_next_plain(out, text);
        report_csv_next_number(out, path->share);
    }
    putc('\n', out);
}

static void put_csv_row(FILE *out, const struct analysis_hotspots *h, const struct analysis_hotspot *row)
{
    char text[NAME_ROOM];
    const struct shares_result *s = &row->shares;
    const struct profile_frame *frame = h->by == ANALYSIS_BY_FUNCTION ? row->outer : row->frame;
    const struct profile_object *object = row->object;
    text[0] = '\0';
    if (h->by != ANALYSIS_BY_MODULE && h->by != ANALYSIS_BY_NOTHING)
        put_function(row, frame, text);
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
        put_object(object, text);
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
    put_callers(h, h->by == ANALYSIS_BY_FUNCTION ? NULL : frame, text);
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
    if (object && has_place(object))
        fprintf(out, ",%" PRIu64 ",", object->offset);
    else
        fputs(",,", out);
    if (object && object->size)
        fprintf(out, "%" PRIu64, object->size);
    put_csv_use(out, row);
}

static void put_csv(FILE *out, const struct analysis_hotspots *h)
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
    char text[NAME_ROOM];
    report_json_member_string(out, "", "module", row->image->path);
    if (*row->image->build_id)
        report_json_member_string(out, ", ", "build_id", row->image->build_id);
    if (h->by != ANALYSIS_BY_MODULE) {
        const struct profile_frame *frame = h->by == ANALYSIS_BY_FUNCTION ? row->outer : row->frame;
        put_function(row, frame, text);
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
    char text[NAME_ROOM];
    put_object(object, text);
    report_json_member_string(out, "", "object", text);
    fprintf(out, ", \"object_kind\": \"%s\"",
            profile_object_kind(object ? object->kind : PROFILE_OBJECT_UNKNOWN));
    if (object && *object->module)
        report_json_member_string(out, ", ", "object_module", object->module);
    if (object && has_place(object))
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
        report_json_member_string(out, ", ", "field", field_name(row->field));
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

static void put_json(FILE *out, const struct analysis_hotspots *h, size_t left_out)
{
    report_json_member_string(out, "{\n  ", "profile", h->profile);
    fprintf(out, ",\n  \"mode\": \"%s\",\n  \"by\": \"%s\",\n  \"size_bytes\": %.0f,\n  \"line_bytes\": %u",
            h->full ? "full" : "burst", h->by == ANALYSIS_BY_INSN ? "insn" : by_names[h->by], h->size_bytes,
            h->line_bytes);
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

void report_hotspots(FILE *out, const struct analysis_hotspots *h, size_t left_out, enum report_format format)
{
    if (format == REPORT_CSV)
        put_csv(out, h);
    else if (format == REPORT_JSON)
        put_json(out, h, left_out);
    else
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
    size_format((uint64_t)h->size_bytes, size);
    fprintf(out, "Misses by %s, cache of %s\n", by_names[h->by], size);
    for (size_t i = 0; i < h->n; i++) {
        fprintf(out, "%6.2f%%  ", 100 * h->rows[i].shares.misses_share);
        put_row_name(out, h, &h->rows[i], BRIEF_MOST);
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
