/* SPDX-License-Identifier: Apache-2.0 */
#include "report/difference.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/base-name.h"
#include "base/sizes.h"
#include "report/hotspot-names.h"
#include "report/shorten.h"

#define NAME_ROOM REPORT_NAME_ROOM
/* Bytes of a function's name in text; what templates have for arguments is left out if it is longer. */
#define NAME_MOST 120
/* In text, rows are left out whose values before and after, or changes where only these count, are printed as
 * 0. */
#define LEAST_SHOWN 0.0005
/* Of functions, data objects and phases where the curves come first. */
#define MOST_CHANGED 5u

static void put_csv_change(FILE *out, const struct analysis_change *c)
{
    report_csv_number(out, c->before);
    report_csv_next_number(out, c->after);
    report_csv_next_number(out, c->delta);
    fprintf(out, ",%d,", c->significant);
    report_csv_number(out, c->low);
    report_csv_next_number(out, c->high);
    putc('\n', out);
}

static void put_json_change(FILE *out, const struct analysis_change *c)
{
    static const char *const names[] = {"before", "after", "delta", "delta_low", "delta_high"};
    const double values[] = {c->before, c->after, c->delta, c->low, c->high};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        report_json_member_number(out, "", names[i], values[i]);
        fputs(", ", out);
    }
    fprintf(out, "\"significant\": %s}", c->significant ? "true" : "false");
}

static void put_json_files(FILE *out, const char *before, const char *after)
{
    report_json_member_string(out, "{\n  ", "before", before);
    report_json_member_string(out, ",\n  ", "after", after);
    fputs(",\n", out);
}

static const char *verdict(const struct analysis_change *c)
{
    if (!c->significant)
        return "";
    return c->low > 0 ? "  more misses" : "  fewer misses";
}

static void put_text_files(FILE *out, const char *before, const char *after)
{
    fputs("before: ", out);
    report_plain(out, before);
    fputs("\nafter:  ", out);
    report_plain(out, after);
    fputs("\n\n", out);
}

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

/* Every fourth row of the usual half powers of two. */
static int is_shown(const struct report_curves *d, size_t i)
{
    return fmod(log2(d->before->points[i].size_bytes), 2) == 0;
}

/* After "cache", where each thread has one. */
static const char *for_each(int separate)
{
    return separate ? ", one for each thread" : "";
}

static const char *threads_json(int separate)
{
    return separate ? "  \"threads\": \"separate\",\n" : "";
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
            for_each(d->before->separate), d->before->model, d->before->line_bytes);
    put_text_files(out, d->before->profile, d->after->profile);
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
        fprintf(out, "%s\n", verdict(c));
    }
}

/* Members of an object. */
static void put_curves_json(FILE *out, const struct report_curves *d)
{
    fprintf(out, "  \"model\": \"%s\",\n%s  \"line_bytes\": %u,\n  \"points\": [", d->before->model,
            threads_json(d->before->separate), d->before->line_bytes);
    for (size_t i = 0; i < d->before->n; i++) {
        fprintf(out, "%s\n    {\"size_bytes\": %.0f, ", i ? "," : "", d->before->points[i].size_bytes);
        put_json_change(out, &d->changes[i]);
    }
    fputs("\n  ]", out);
}

static void put_curves_csv(FILE *out, const struct report_curves *d)
{
    fputs("size_bytes,before,after,delta,significant,delta_low,delta_high\n", out);
    for (size_t i = 0; i < d->before->n; i++) {
        fprintf(out, "%.0f,", d->before->points[i].size_bytes);
        put_csv_change(out, &d->changes[i]);
    }
}

void report_difference(FILE *out, const struct report_curves *d, enum report_format format)
{
    if (format == REPORT_CSV) {
        put_curves_csv(out, d);
    } else {
        put_json_files(out, d->before->profile, d->after->profile);
        put_curves_json(out, d);
        fputs("\n}\n", out);
    }
}

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
    fprintf(out, "%9.3f  %9.3f  %+9.3f%-14s  ", c->before, c->after, c->delta, verdict(c));
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
            for_each(f->separate));
    put_text_files(out, f->before, f->after);
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
        put_json_files(out, f->before, f->after);
        fprintf(out, "%s  \"size_bytes\": %.0f,\n  \"total\": {", threads_json(f->separate), f->size_bytes);
        put_json_change(out, &f->changes->total);
        fprintf(out, ",\n  \"%ss\": [", what);
    }
    for (size_t i = 0; i < f->changes->n; i++) {
        const struct analysis_function_change *row = &f->changes->rows[i];
        char name[NAME_ROOM];
        if (format == REPORT_CSV) {
            report_csv_plain(out, name_of(f, row, name));
            report_csv_next_plain(out, row->module);
            fprintf(out, ",%.0f,", f->size_bytes);
            put_csv_change(out, &row->misses);
        } else {
            report_json_member_string(out, i ? ",\n    {" : "\n    {", what, name_of(f, row, name));
            report_json_member_string(out, ", ", "module", row->module);
            fputs(", ", out);
            put_json_change(out, &row->misses);
        }
    }
    if (format == REPORT_JSON)
        fputs(f->changes->n ? "\n  ]\n}\n" : "]\n}\n", out);
}

/* --- phases --- */

static const char *const sides[] = {"before", "after"};

static void put_phase_numbers(FILE *out, const struct analysis_phase_row *row, size_t npoints)
{
    fprintf(out, "%6" PRIu32 "  %6.2f%%  %7zu", row->phase, 100 * row->refs_share, row->windows);
    for (size_t k = 0; k < npoints; k++)
        report_percent(out, "  ", 9, 3, row->points[k].miss_ratio, "");
    putc('\n', out);
}

/* The two phases, and what changed. */
static void put_phase_pair(FILE *out, const struct analysis_phase_pair *pair, size_t npoints)
{
    fprintf(out, "%6s  ", sides[0]);
    put_phase_numbers(out, pair->before, npoints);
    fprintf(out, "%6s  ", sides[1]);
    put_phase_numbers(out, pair->after, npoints);
    fprintf(out, "%6s  %5.0f%%  %+7.2f  %7s", "change", 100 * pair->alike,
            100 * (pair->after->refs_share - pair->before->refs_share), "");
    for (size_t k = 0; k < npoints; k++)
        if (isnan(pair->changes[k].delta))
            fprintf(out, "  %8s%c", "-", pair->changes[k].significant ? '*' : ' ');
        else
            fprintf(out, "  %+8.3f%c", 100 * pair->changes[k].delta,
                    pair->changes[k].significant ? '*' : ' ');
    fputs("\n\n", out);
}

static void put_phase_head(FILE *out, const struct report_phases *d)
{
    char text[SIZE_TEXT];
    fprintf(out, "%6s  %6s  %7s  %7s", "", "phase", "refs", "windows");
    for (size_t k = 0; k < d->npoints; k++)
        fprintf(out, "  %9s", size_format((uint64_t)d->points[k].size_bytes, text));
    putc('\n', out);
}

/* Those without a counterpart. Returns how many of them have no code. */
static size_t put_single_phases(FILE *out, const struct report_phases *d)
{
    size_t found = 0, unknown = 0;
    for (size_t i = 0; i < d->difference->npairs; i++) {
        const struct analysis_phase_pair *pair = &d->difference->pairs[i];
        const struct analysis_phase_row *row = pair->before ? pair->before : pair->after;
        if (pair->before && pair->after)
            continue;
        if (found++ == 0)
            fputs("Without counterpart:\n", out);
        fprintf(out, "%6s  ", sides[!pair->before]);
        put_phase_numbers(out, row, d->npoints);
        unknown += !row->code_known;
    }
    return unknown;
}

static void put_phases_text(FILE *out, const struct report_phases *d)
{
    fprintf(out, "Phases before and after, paired by their code, and their miss ratios by cache size%s.\n",
            for_each(d->separate));
    put_text_files(out, d->before, d->after);
    fputs("Line 'change': how much of the code is the same, and changes in percentage points; *: "
          "significant.\n\n",
          out);
    put_phase_head(out, d);
    for (size_t i = 0; i < d->difference->npairs; i++)
        if (d->difference->pairs[i].before && d->difference->pairs[i].after)
            put_phase_pair(out, &d->difference->pairs[i], d->npoints);
    size_t unknown = put_single_phases(out, d);
    for (size_t side = 0; side < 2; side++)
        if (d->difference->rows[side].left_out)
            fprintf(out, "%6s  and %zu more with fewer references\n", sides[side],
                    d->difference->rows[side].left_out);
    if (unknown)
        fprintf(
            out,
            "Of %zu, the code is not known: no burst began in them. Where everything was recorded, code is "
            "counted for the whole run, not by phase.\n",
            unknown);
}

/* Of a phase without counterpart, the fields of the other side are empty. */
static void put_phase_csv(FILE *out, const struct analysis_phase_pair *pair, size_t k, double size_bytes)
{
    const struct analysis_phase_row *const rows[] = {pair->before, pair->after};
    for (size_t side = 0; side < 2; side++) {
        if (rows[side])
            fprintf(out, "%" PRIu32, rows[side]->phase);
        putc(',', out);
    }
    report_csv_number(out, pair->alike);
    for (size_t side = 0; side < 2; side++)
        report_csv_next_number(out, rows[side] ? rows[side]->refs_share : NAN);
    fprintf(out, ",%.0f,", size_bytes);
    struct analysis_change change = {NAN, NAN, NAN, NAN, NAN, 0};
    if (pair->changes)
        change = pair->changes[k];
    else
        *(pair->before ? &change.before : &change.after) =
            (pair->before ? pair->before : pair->after)->points[k].miss_ratio;
    put_csv_change(out, &change);
}

static void put_phases_csv(FILE *out, const struct report_phases *d)
{
    fputs("phase_before,phase_after,alike,refs_share_before,refs_share_after,size_bytes,before,after,delta,"
          "significant,delta_low,delta_high\n",
          out);
    for (size_t i = 0; i < d->difference->npairs; i++)
        for (size_t k = 0; k < d->npoints; k++)
            put_phase_csv(out, &d->difference->pairs[i], k, d->points[k].size_bytes);
}

static void put_phase_json(FILE *out, const struct analysis_phase_row *row, size_t npoints)
{
    fprintf(out, "{\"phase\": %" PRIu32 ", \"windows\": %zu, \"bursts\": %zu, \"code_known\": %s", row->phase,
            row->windows, row->bursts, row->code_known ? "true" : "false");
    report_json_member_number(out, ", ", "refs_share", row->refs_share);
    fputs(",\n", out);
    report_points_json(out, row->points, npoints);
    putc('}', out);
}

static void put_pair_json(FILE *out, const struct analysis_phase_pair *pair, const struct report_phases *d)
{
    fprintf(out, "{\"phase_before\": %" PRIu32 ", \"phase_after\": %" PRIu32, pair->before->phase,
            pair->after->phase);
    report_json_member_number(out, ", ", "alike", pair->alike);
    fputs(", \"points\": [", out);
    for (size_t k = 0; k < d->npoints; k++) {
        fprintf(out, "%s{\"size_bytes\": %.0f, ", k ? ",\n" : "\n", d->points[k].size_bytes);
        put_json_change(out, &pair->changes[k]);
    }
    fputs("]}", out);
}

static void put_phases_json(FILE *out, const struct report_phases *d)
{
    size_t n = 0;
    put_json_files(out, d->before, d->after);
    fprintf(out, "%s  \"pairs\": [", threads_json(d->separate));
    for (size_t i = 0; i < d->difference->npairs; i++)
        if (d->difference->pairs[i].before && d->difference->pairs[i].after) {
            fputs(n++ ? ",\n" : "\n", out);
            put_pair_json(out, &d->difference->pairs[i], d);
        }
    putc(']', out);
    for (size_t side = 0; side < 2; side++) {
        fprintf(out, ",\n  \"phases_%s\": [", sides[side]);
        for (size_t i = 0; i < d->difference->rows[side].n; i++) {
            fputs(i ? ",\n" : "\n", out);
            put_phase_json(out, &d->difference->rows[side].list[i], d->npoints);
        }
        fprintf(out, "],\n  \"left_out_%s\": %zu", sides[side], d->difference->rows[side].left_out);
    }
    fputs("\n}\n", out);
}

void report_phase_difference(FILE *out, const struct report_phases *d, enum report_format format)
{
    if (format == REPORT_TEXT)
        put_phases_text(out, d);
    else if (format == REPORT_CSV)
        put_phases_csv(out, d);
    else
        put_phases_json(out, d);
}

/* --- all of it --- */

/* Each returns whether it printed a list, after which an empty line follows. */

static int put_changed_rows(FILE *out, const struct report_difference *d,
                            const struct analysis_function_changes *changes, int objects, const char *why)
{
    const struct report_functions names = {.objects = objects};
    const char *what = objects ? "data object" : "function", *option = objects ? "object" : "function";
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
                    what, size, for_each(d->curves->before->separate), "before", "after", "change");
        put_function_row(out, name_of(&names, row, name), objects ? "" : row->module, &row->misses);
    }
    if (found > MOST_CHANGED)
        fprintf(out, "and %zu more: --by %s --size %s\n", found - MOST_CHANGED, option, size);
    else if (found == 0)
        fprintf(out, "By %s, no significant change of misses in a cache of %s (--by %s --size %s: all).\n",
                what, size, option, size);
    return found > 0;
}

/* The size with the largest significant change of a pair of phases; npoints: there is none. */
static size_t largest_of_phase(const struct analysis_phase_pair *pair, size_t npoints)
{
    size_t found = npoints;
    for (size_t k = 0; k < npoints && pair->changes; k++)
        if (pair->changes[k].significant && !isnan(pair->changes[k].delta) &&
            (found == npoints || fabs(pair->changes[k].delta) > fabs(pair->changes[found].delta)))
            found = k;
    return found;
}

static int put_changed_phases(FILE *out, const struct report_difference *d)
{
    char size[SIZE_TEXT];
    size_t found = 0;
    if (!d->phases) {
        fputs("Not compared by phase: ", out);
        report_plain(out, d->no_phases.text);
        putc('\n', out);
        return 0;
    }
    for (size_t i = 0; i < d->phases->npairs; i++) {
        const struct analysis_phase_pair *pair = &d->phases->pairs[i];
        size_t k = largest_of_phase(pair, d->npoints);
        if (k == d->npoints || found++ >= MOST_CHANGED)
            continue;
        if (found == 1)
            fputs("Phases with significant changes, and the largest of these:\n", out);
        fprintf(out,
                "  phase %" PRIu32 " (%.1f%% of the references) is now %" PRIu32
                " (%.1f%%): %+.3f points at %s\n",
                pair->before->phase, 100 * pair->before->refs_share, pair->after->phase,
                100 * pair->after->refs_share, 100 * pair->changes[k].delta,
                size_format((uint64_t)d->points[k].size_bytes, size));
    }
    if (found > MOST_CHANGED)
        fprintf(out, "and %zu more: --by phase\n", found - MOST_CHANGED);
    else if (found == 0)
        fputs("By phase, no significant change of miss ratios (--by phase: all).\n", out);
    return found > 0;
}

static void put_all_text(FILE *out, const struct report_difference *d)
{
    put_curves_text(out, d);
    putc('\n', out);
    if (put_changed_rows(out, d, d->functions, 0, d->no_functions.text))
        putc('\n', out);
    if (d->objects && put_changed_rows(out, d, d->objects, 1, ""))
        putc('\n', out);
    put_changed_phases(out, d);
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
    put_json_files(out, before, after);
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
