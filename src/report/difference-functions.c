/* SPDX-License-Identifier: Apache-2.0 */
/*
 * difference-functions.c - misses per 1000 references of each function or data object, before and after. In
 * text, what does not miss is left out unless all rows are asked for.
 */
#include "report/difference-internal.h"

#include <math.h>
#include <string.h>

#include "base/base-name.h"
#include "base/sizes.h"
#include "report/hotspot-names.h"

#define NAME_ROOM REPORT_NAME_ROOM
/* Bytes of a function's name in text; what templates have for arguments is left out if it is longer. */
#define NAME_MOST 120
/* In text, rows are left out whose values before and after, or changes where only these count, are printed as
 * 0. */
#define LEAST_SHOWN 0.0005

/* The name that is shown of a function or data object. */
static const char *name_of(const struct report_functions *f, const struct analysis_function_change *row,
                           char text[NAME_ROOM])
{
    if (!f->objects && row->source)
        snprintf(text, NAME_ROOM, "%s (%s)", row->function, base_name(row->source));
    if (!f->objects)
        return row->source ? text : row->function;
    report_object_name(row->object, text, NAME_ROOM);
    return text;
}

static void put_function_row(FILE *out, const char *function, const char *module,
                             const struct analysis_change *c)
{
    char name[NAME_ROOM];
    report_fit_name(name, sizeof name, *function ? function : "[no names]");
    report_shorten(name, NAME_MOST);
    fprintf(out, "%9.3f  %9.3f  %+9.3f%-14s  ", c->before, c->after, c->delta, report_verdict(c));
    report_plain(out, name);
    if (*module) {
        fputs("  (", out);
        report_plain(out, base_name(module));
        putc(')', out);
    }
    putc('\n', out);
}

static void put_functions_text(FILE *out, const struct report_functions *f)
{
    char text[SIZE_TEXT];
    size_t shown = 0, n = f->limit && f->limit < f->changes->n ? f->limit : f->changes->n;
    fprintf(out, "Misses per 1000 references by %s, before and after: LRU cache of %s%s\n",
            f->objects ? "data object" : "function", size_format((uint64_t)f->size_bytes, text),
            report_for_each(f->separate));
    report_files_text(out, f->before, f->after);
    fprintf(out, "%9s  %9s  %9s%14s  %s\n", "before", "after", "change", "",
            f->objects ? "data" : "function");
    put_function_row(out, "all", "", &f->changes->total);
    for (size_t i = 0; i < n; i++) {
        const struct analysis_function_change *row = &f->changes->rows[i];
        char name[NAME_ROOM];
        if (f->limit && fmax(row->misses.before, row->misses.after) < LEAST_SHOWN)
            continue;
        shown++;
        put_function_row(out, name_of(f, row, name), f->objects ? "" : row->module, &row->misses);
    }
    if (shown < f->changes->n)
        fprintf(out, "\n%zu more %s changed less, or do not miss.\n", f->changes->n - shown,
                f->objects ? "data objects" : "functions");
}

void report_function_difference(FILE *out, const struct report_functions *f, enum report_format format)
{
    const char *what = f->objects ? "object" : "function";
    if (format == REPORT_TEXT) {
        put_functions_text(out, f);
        return;
    }
    if (format == REPORT_CSV) {
        fprintf(out, "%s,module,size_bytes,before,after,delta,significant,delta_low,delta_high\n", what);
    } else {
        report_files_json(out, f->before, f->after);
        fprintf(out, "%s  \"size_bytes\": %.0f,\n  \"total\": {", report_threads_json(f->separate),
                f->size_bytes);
        report_change_json(out, &f->changes->total);
        fprintf(out, ",\n  \"%ss\": [", what);
    }
    for (size_t i = 0; i < f->changes->n; i++) {
        const struct analysis_function_change *row = &f->changes->rows[i];
        char name[NAME_ROOM];
        if (format == REPORT_CSV) {
            report_csv_plain(out, name_of(f, row, name));
            report_csv_next_plain(out, row->module);
            fprintf(out, ",%.0f,", f->size_bytes);
            report_change_csv(out, &row->misses);
        } else {
            report_json_member_string(out, i ? ",\n    {" : "\n    {", what, name_of(f, row, name));
            report_json_member_string(out, ", ", "module", row->module);
            fputs(", ", out);
            report_change_json(out, &row->misses);
        }
    }
    if (format == REPORT_JSON)
        fputs(f->changes->n ? "\n  ]\n}\n" : "]\n}\n", out);
}

int report_changed_functions(FILE *out, const struct report_difference *d,
                             const struct analysis_function_changes *changes, int objects, const char *why)
{
    const struct report_functions names = {.objects = objects};
    const char *what = objects ? "data object" : "function", *option = objects ? "object" : "function",
               *threads = report_threads_option(d->curves->before->separate);
    char size[SIZE_TEXT], name[NAME_ROOM];
    size_t found = 0;
    size_format((uint64_t)d->size_bytes, size);
    if (!changes) {
        fprintf(out, "Not compared by %s: ", what);
        report_plain(out, why);
        putc('\n', out);
        return 0;
    }
    for (size_t i = 0; i < changes->n; i++) {
        const struct analysis_function_change *row = &changes->rows[i];
        if (!row->misses.significant || fabs(row->misses.delta) < LEAST_SHOWN || found++ >= MOST_CHANGED)
            continue;
        if (found == 1)
            fprintf(out,
                    "Misses per 1000 references by %s, where they changed significantly: LRU cache of %s%s\n"
                    "%9s  %9s  %9s\n",
                    what, size, report_for_each(d->curves->before->separate), "before", "after", "change");
        put_function_row(out, name_of(&names, row, name), objects ? "" : row->module, &row->misses);
    }
    if (found > MOST_CHANGED)
        fprintf(out, "and %zu more: --by %s --size %s%s\n", found - MOST_CHANGED, option, size, threads);
    else if (found == 0 && changes->total.significant)
        fprintf(out,
                "Misses in a cache of %s changed, but there are too few samples to say by which %s (--by %s "
                "--size %s%s: all).\n",
                size, what, option, size, threads);
    else if (found == 0)
        fprintf(out, "By %s, no significant change of misses in a cache of %s (--by %s --size %s%s: all).\n",
                what, size, option, size, threads);
    return found > 0;
}
