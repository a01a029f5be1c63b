/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspot-names.c - what a row of a table is called: its function, data object and field, alone and in one
 * piece, and whether a name or pattern that a user gives means it. A function that shares its name with
 * others gets its source file, "walk (list.c)"; code without a symbol is its module, "[libz.so.1]"; memory
 * that is not a variable stands in brackets, "[heap]", "[stack of thread 7]". All tables, the page and
 * exported files take names from here, so that one thing has one name everywhere.
 */
#include "report/hotspot-names.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base-name.h"

const char *report_image_name(const struct profile_image *image)
{
    return *image->path ? base_name(image->path) : "unknown";
}

int report_hotspot_is_place(const struct analysis_hotspot *row)
{
    const char *module = report_image_name(row->image);
    size_t length = strlen(module);
    return row->outer && strncmp(row->outer->function, module, length) == 0 &&
           row->outer->function[length] == '+';
}

const struct profile_frame *report_hotspot_frame(const struct analysis_hotspots *h,
                                                 const struct analysis_hotspot *row)
{
    return h->by == ANALYSIS_BY_FUNCTION ? row->outer : row->frame;
}

void report_hotspot_function(const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                             char text[REPORT_NAME_ROOM])
{
    const struct profile_frame *frame = report_hotspot_frame(h, row);
    if (row->rest)
        snprintf(text, REPORT_NAME_ROOM, "[rest of %s]", report_image_name(row->image));
    else if (frame && *frame->function && row->source)
        snprintf(text, REPORT_NAME_ROOM, "%s (%s)", frame->function, base_name(row->source));
    else if (frame && *frame->function)
        report_fit_name(text, REPORT_NAME_ROOM, frame->function);
    else
        snprintf(text, REPORT_NAME_ROOM, *report_image_name(row->image) == '[' ? "%s" : "[%s]",
                 report_image_name(row->image));
}

void report_object_name(const struct profile_object *object, char *text, size_t size)
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
        [PROFILE_OBJECT_LOCAL] = "%s",
    };
    if (!object)
        snprintf(text, size, "[unknown]");
    else if (object->kind == PROFILE_OBJECT_SECTION)
        snprintf(text, size, "[%s of %s]", *object->name ? object->name : "data", base_name(object->module));
    else if (object->kind == PROFILE_OBJECT_ANONYMOUS && !*object->name)
        snprintf(text, size, "[anonymous memory]");
    else
        snprintf(text, size, formats[object->kind], /* NOLINT: all have one %s */
                 object->kind == PROFILE_OBJECT_FILE ? base_name(object->name) : object->name);
}

int report_object_has_offset(const struct profile_object *object)
{
    return profile_object_is_variable(object) || object->kind == PROFILE_OBJECT_SECTION;
}

static int matches(const char *pattern, const char *name)
{
    return strcmp(pattern, name) == 0 || fnmatch(pattern, name, 0) == 0;
}

int report_hotspot_is(const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                      const char *function, const char *object)
{
    char text[REPORT_NAME_ROOM];
    if (function) {
        report_hotspot_function(h, row, text);
        int is_name = !row->rest && row->outer && *row->outer->function;
        if (!matches(function, text) &&
            !(is_name && analysis_function_matches(function, row->outer->function)))
            return 0;
    }
    if (!object)
        return 1;
    report_object_name(row->object, text, sizeof text);
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

const char *report_field_name(const struct profile_field *field)
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

void report_hotspot_data(const struct analysis_hotspot *row, char text[REPORT_NAME_ROOM])
{
    const struct profile_field *field = row->field;
    report_object_name(row->object, text, REPORT_NAME_ROOM);
    size_t used = strlen(text);
    if (!field)
        return;
    if (!*field->name)
        snprintf(text + used, REPORT_NAME_ROOM - used, " (several fields)");
    else if (row->object && !profile_object_is_variable(row->object))
        snprintf(text + used, REPORT_NAME_ROOM - used, ": %.*s%s.%s", whole_bytes(field->type), field->type,
                 field->type[whole_bytes(field->type)] ? "<...>" : "", report_field_name(field));
    else
        snprintf(text + used, REPORT_NAME_ROOM - used, "%s", field->name);
}

void report_inlined_into(const struct analysis_hotspots *h, const struct profile_frame *frame,
                         char text[REPORT_NAME_ROOM])
{
    size_t used = 0;
    text[0] = '\0';
    for (frame = frame ? analysis_caller(h, frame) : NULL; frame; frame = analysis_caller(h, frame)) {
        int n = snprintf(text + used, REPORT_NAME_ROOM - used, "%s%s", used ? " < " : "",
                         *frame->function ? frame->function : "?");
        if (n > 0 && *frame->file && used + (size_t)n < REPORT_NAME_ROOM)
            n += snprintf(text + used + n, REPORT_NAME_ROOM - used - (size_t)n, " %s:%" PRIu32,
                          base_name(frame->file), frame->line);
        if (n < 0 || used + (size_t)n >= REPORT_NAME_ROOM)
            return;
        used += (size_t)n;
    }
}

void report_hotspot_name(const struct analysis_hotspots *h, const struct analysis_hotspot *row, char *text,
                         size_t size)
{
    char code[REPORT_NAME_ROOM] = "", place[REPORT_NAME_ROOM] = "", object[REPORT_NAME_ROOM] = "";
    int by_code = h->by != ANALYSIS_BY_NOTHING;
    if (h->by == ANALYSIS_BY_MODULE)
        snprintf(code, sizeof code, "%s", *row->image->path ? row->image->path : "[unknown]");
    else if (h->by == ANALYSIS_BY_INSN && row->offset != PROFILE_SITE_REST)
        snprintf(code, sizeof code, "%s+0x%" PRIx64, report_image_name(row->image), row->offset);
    else if (by_code)
        report_hotspot_function(h, row, code);
    if (h->by == ANALYSIS_BY_LINE && !row->rest && row->frame && *row->frame->file)
        snprintf(place, sizeof place, " %s:%" PRIu32, base_name(row->frame->file), row->frame->line);
    if (h->objects)
        report_hotspot_data(row, object);
    snprintf(text, size, "%s%s%s%s", code, place, by_code && h->objects ? ", " : "", object);
}
