/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/diff-page.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/diff-parts.h"
#include "cli/page-data.h"
#include "cli/this-machine.h"
#include "report/page.h"

#ifndef CACHEGRAM_VERSION
#define CACHEGRAM_VERSION "unknown"
#endif

#define MOST_FUNCTIONS 50u

/* Misses by function, or by data object, at a size. */
static int put_table(FILE *json, struct profile *profiles[2], const struct report_curves *d,
                     double size_bytes, int objects, struct error *why)
{
    struct diff_table table;
    int code = diff_table_load(profiles, (const char *const[]){d->before->profile, d->after->profile},
                               size_bytes, d->before->separate, objects, &table, why);
    if (code != 0)
        return code;
    size_t all = table.changes.n;
    table.changes.n = all > MOST_FUNCTIONS ? MOST_FUNCTIONS : all;
    fprintf(json, "{\"left_out\": %zu, \"table\": ", all - table.changes.n);
    report_function_difference(json,
                               &(struct report_functions){d->before->profile, d->after->profile, size_bytes,
                                                          &table.changes, 0, objects, d->before->separate},
                               REPORT_JSON);
    putc('}', json);
    diff_table_clear(&table);
    return 0;
}

/* [table, ...] for each size; [null] if a profile has none, for the reason in *why. */
static int put_tables(FILE *json, struct profile *profiles[2], const struct report_curves *d,
                      const struct curve_point *points, size_t n, int objects, struct error *why)
{
    int code = 0;
    putc('[', json);
    for (size_t i = 0; i < n && code == 0; i++) {
        fputs(i ? ",\n" : "\n", json);
        code = put_table(json, profiles, d, points[i].size_bytes, objects, why);
        if (code != 0)
            fputs("null", json);
    }
    putc(']', json);
    return code;
}

/* {"sizes": [...], "functions": [...], "no_functions": "", "objects": [...]} */
static int put_hotspots(FILE *json, struct profile *profiles[2], const struct report_curves *d,
                        const struct curve_point *points, size_t n, struct error *err)
{
    struct error why = {""}, ignored = {""};
    fputs(",\n\"sizes\": [", json);
    for (size_t i = 0; i < n; i++)
        fprintf(json, "%s%.0f", i ? ", " : "", points[i].size_bytes);
    fputs("],\n\"functions\": ", json);
    int code = put_tables(json, profiles, d, points, n, 0, &why);
    report_json_member_string(json, ",\n", "no_functions", why.text);
    fputs(",\n\"objects\": ", json);
    if (code != -ENOMEM)
        code = put_tables(json, profiles, d, points, n, 1, &ignored);
    if (code == -ENOMEM)
        *err = *why.text ? why : ignored;
    return code == -ENOMEM ? code : 0;
}

static int put_phases(FILE *json, struct profile *profiles[2], const struct report_curves *d,
                      const struct curve_point *points, size_t n, struct error *err)
{
    struct analysis_phase_difference difference;
    const struct report_phases view = {.before = d->before->profile,
                                       .after = d->after->profile,
                                       .points = points,
                                       .npoints = n,
                                       .difference = &difference,
                                       .separate = d->before->separate};
    struct error why = {""};
    fputs(",\n\"phases\": ", json);
    int code = analysis_phase_difference(profiles, (const char *const[]){view.before, view.after},
                                         view.separate, points, n, &difference, &why);
    if (code == 0)
        report_phase_difference(json, &view, REPORT_JSON);
    else
        fputs("null", json);
    report_json_member_string(json, ",\n", "no_phases", why.text);
    analysis_phase_difference_clear(&difference);
    if (code == -ENOMEM)
        *err = why;
    return code == -ENOMEM ? code : 0;
}

static int put_run(FILE *json, struct profile *p, const struct analysis_curve *curve, struct error *err)
{
    struct analysis_summary *summary = malloc(sizeof *summary);
    struct cli_machines machines;
    int code = summary ? analysis_summary_load(p, summary, err) : error_set(err, -ENOMEM, "out of memory");
    if (code == 0) {
        cli_machines_find(p, &machines);
        report_json_member_string(json, "{", "profile", curve->profile);
        report_json_member_string(json, ", ", "command", summary->command);
        report_json_member_string(json, ", ", "warning", summary->warning);
        fputs(",\n\"curve\": ", json);
        report_curve_json(json, curve);
        fputs(",\n\"facts\": ", json);
        code = report_page_facts(json, summary, curve);
        fputs(",\n\"notes\": ", json);
        code = code ? code : report_page_notes(json, curve);
        fputs(",\n\"machines\": ", json);
        report_page_machines(json, machines.list, machines.n);
        putc('}', json);
        if (code != 0)
            error_set(err, code, "out of memory for the page");
    }
    free(summary);
    return code;
}

static int put_all(FILE *json, struct profile *profiles[2], const struct report_curves *d, struct error *err)
{
    size_t n = 0;
    struct report_difference_programs programs = {0};
    struct curve_point *points = cli_points(PAGE_DATA_USUAL_SIZES, &n, err);
    int code = points ? 0 : -ENOMEM;
    diff_programs_load(profiles, &programs);
    fputs("{\"version\": \"" CACHEGRAM_VERSION "\",\n\"diff\": {\"runs\": [", json);
    for (int i = 0; i < 2 && code == 0; i++) {
        fputs(i ? ",\n" : "", json);
        code = put_run(json, profiles[i], i ? d->after : d->before, err);
    }
    fputs("],\n\"findings\": ", json);
    if (code == 0 && (code = report_page_difference(json, d, &programs)) != 0)
        error_set(err, code, "out of memory for the page");
    fputs(",\n\"changes\": ", json);
    report_difference(json, d, REPORT_JSON);
    if (code == 0)
        code = put_hotspots(json, profiles, d, points, n, err);
    if (code == 0)
        code = put_phases(json, profiles, d, points, n, err);
    fputs("}}\n", json);
    free(points);
    return code;
}

int diff_page_data(const struct report_curves *curves, char **json, struct error *err)
{
    struct profile *profiles[2] = {NULL, NULL};
    size_t size = 0;
    *json = NULL;
    int code = profile_open(curves->before->profile, &profiles[0], err);
    if (code == 0)
        code = profile_open(curves->after->profile, &profiles[1], err);
    if (code == 0) {
        FILE *memory = open_memstream(json, &size);
        code = memory ? put_all(memory, profiles, curves, err)
                      : error_set(err, -ENOMEM, "out of memory for the page");
        for (int i = 0; i < 2 && code == 0; i++)
            code = profile_find_damage(profiles[i], err);
        if (memory && fclose(memory) != 0 && code == 0)
            code = error_set(err, -ENOMEM, "out of memory for the page");
    }
    for (int i = 0; i < 2; i++)
        profile_close(profiles[i], 0, NULL);
    if (code != 0) {
        free(*json);
        *json = NULL;
    }
    return code;
}
