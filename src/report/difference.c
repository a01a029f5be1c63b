/* SPDX-License-Identifier: Apache-2.0 */
/*
 * difference.c - what changed between two profiles: the curves, size by size, and, in the output of all, what
 * changed significantly by function, data object and phase (difference-functions.c, difference-phases.c).
 */
#include "report/difference-internal.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"

/* The largest significant change in one direction, in words. */
static void put_largest(FILE *out, const struct report_curves *d, int worse)
{
    size_t found = d->before->n;
    char text[SIZE_TEXT];
    for (size_t i = 0; i < d->before->n; i++) {
        const struct analysis_change *c = &d->changes[i];
        if (c->significant && !isnan(c->delta) && (c->low > 0) == worse &&
            (found == d->before->n || fabs(c->delta) > fabs(d->changes[found].delta)))
            found = i;
    }
    if (found < d->before->n)
        fprintf(out, "Largest %s: %+.3f points at %s.\n", worse ? "increase" : "decrease",
                100 * d->changes[found].delta,
                size_format((uint64_t)d->before->points[found].size_bytes, text));
}

void report_difference_words(FILE *out, const struct report_curves *d)
{
    size_t significant = 0;
    for (size_t i = 0; i < d->before->n; i++)
        significant += d->changes[i].significant != 0;
    fprintf(out, "Significant changes at %zu of %zu sizes.\n", significant, d->before->n);
    put_largest(out, d, 0);
    put_largest(out, d, 1);
}

/* Numbers of references that differ by that part are reported. */
#define OTHER_REFERENCES 0.05

/* Every fourth row of the usual half powers of two. */
static int is_shown(const struct report_curves *d, size_t i)
{
    return fmod(log2(d->before->points[i].size_bytes), 2) == 0;
}

static int differ(const char *before, const char *after)
{
    return *before && *after && strcmp(before, after) != 0;
}

void report_difference_notes(FILE *out, const struct report_difference_programs *d)
{
    if (differ(d->name[0], d->name[1])) {
        fputs("Note: the programs have different names, ", out);
        report_plain(out, d->name[0]);
        fputs(" and ", out);
        report_plain(out, d->name[1]);
        fputs(".\n", out);
    }
    double more = d->references[0] > 0 && d->references[1] > 0 ? d->references[1] / d->references[0] - 1 : 0;
    if (fabs(more) >= OTHER_REFERENCES)
        fprintf(
            out,
            "Note: %.0f references before, %.0f after (%+.0f%%): misses did not change by the same factor "
            "as miss ratios.\n",
            d->references[0], d->references[1], 100 * more);
    if (differ(d->cpu[0], d->cpu[1])) {
        fputs("Note: they ran on different machines, with ", out);
        report_plain(out, d->cpu[0]);
        fputs(" and ", out);
        report_plain(out, d->cpu[1]);
        fputs(": libraries may have chosen other code.\n", out);
    }
}

static void put_curves_text(FILE *out, const struct report_difference *all)
{
    const struct report_curves *d = all->curves;
    char text[SIZE_TEXT];
    fprintf(out, "Miss ratio by cache size%s, before and after: %s, %u-byte lines\n",
            report_for_each(d->before->separate), d->before->model, d->before->line_bytes);
    report_files_text(out, d->before->profile, d->after->profile);
    report_difference_notes(out, &all->programs);
    report_difference_words(out, d);
    fprintf(out, "\n%8s  %10s  %10s  %9s  %18s\n", "size", "before", "after", "change", "low to high");
    for (size_t i = 0; i < d->before->n; i++) {
        const struct analysis_change *c = &d->changes[i];
        if (!all->all && !is_shown(d, i))
            continue;
        fprintf(out, "%8s  ", size_format((uint64_t)d->before->points[i].size_bytes, text));
        report_percent(out, "", 10, 3, c->before, "  ");
        report_percent(out, "", 10, 3, c->after, "  ");
        if (isnan(c->delta))
            fprintf(out, "%9s  ", "-");
        else
            fprintf(out, "%+9.3f  ", 100 * c->delta);
        if (!isnan(c->low) && !isnan(c->high))
            fprintf(out, "%+7.3f to %+7.3f", 100 * c->low, 100 * c->high);
        fprintf(out, "%s\n", report_verdict(c));
    }
}

/* Members of an object. */
static void put_curves_json(FILE *out, const struct report_curves *d)
{
    fprintf(out, "  \"model\": \"%s\",\n%s  \"line_bytes\": %u,\n  \"points\": [", d->before->model,
            report_threads_json(d->before->separate), d->before->line_bytes);
    for (size_t i = 0; i < d->before->n; i++) {
        fprintf(out, "%s\n    {\"size_bytes\": %.0f, ", i ? "," : "", d->before->points[i].size_bytes);
        report_change_json(out, &d->changes[i]);
    }
    fputs("\n  ]", out);
}

static void put_curves_csv(FILE *out, const struct report_curves *d)
{
    fputs("size_bytes,before,after,delta,significant,delta_low,delta_high\n", out);
    for (size_t i = 0; i < d->before->n; i++) {
        fprintf(out, "%.0f,", d->before->points[i].size_bytes);
        report_change_csv(out, &d->changes[i]);
    }
}

void report_difference(FILE *out, const struct report_curves *d, enum report_format format)
{
    if (format == REPORT_CSV) {
        put_curves_csv(out, d);
    } else {
        report_files_json(out, d->before->profile, d->after->profile);
        put_curves_json(out, d);
        fputs("\n}\n", out);
    }
}

static void put_all_text(FILE *out, const struct report_difference *d)
{
    put_curves_text(out, d);
    putc('\n', out);
    if (report_changed_functions(out, d, d->functions, 0, d->no_functions.text))
        putc('\n', out);
    if (d->objects && report_changed_functions(out, d, d->objects, 1, ""))
        putc('\n', out);
    report_changed_phases(out, d);
}

/* A member: an object, or null and the reason. */
static void put_missing_json(FILE *out, const char *what, const char *why)
{
    fprintf(out, ",\n  \"by_%s\": null, \"no_%s\": ", what, what);
    report_json_string(out, why);
}

static void put_all_json(FILE *out, const struct report_difference *d)
{
    const char *before = d->curves->before->profile, *after = d->curves->after->profile;
    const struct analysis_function_changes *const tables[] = {d->functions, d->objects};
    const char *const names[] = {"function", "object"}, *const why[] = {d->no_functions.text,
                                                                        d->no_objects.text};
    report_files_json(out, before, after);
    put_curves_json(out, d->curves);
    for (int i = 0; i < 2; i++) {
        if (!tables[i]) {
            put_missing_json(out, names[i], why[i]);
            continue;
        }
        const struct report_functions view = {
            before, after, d->size_bytes, tables[i], 0, i, d->curves->before->separate};
        fprintf(out, ",\n  \"by_%s\": ", names[i]);
        report_function_difference(out, &view, REPORT_JSON);
    }
    if (d->phases) {
        const struct report_phases view = {before,     after,     d->points,
                                           d->npoints, d->phases, d->curves->before->separate};
        fputs(",\n  \"by_phase\": ", out);
        report_phase_difference(out, &view, REPORT_JSON);
    } else {
        put_missing_json(out, "phase", d->no_phases.text);
    }
    fputs("}\n", out);
}

void report_difference_all(FILE *out, const struct report_difference *d, enum report_format format)
{
    if (format == REPORT_TEXT)
        put_all_text(out, d);
    else
        put_all_json(out, d);
}
