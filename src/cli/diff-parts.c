/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/diff-parts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"
#include "cli/cli.h"
#include "cli/page-data.h"

/* Where the curve did not change, functions are compared in a cache of this size. */
#define USUAL_SIZE 0x1p20

int diff_table_load(struct profile *const profiles[2], const char *const names[2], double size_bytes,
                    int separate, int objects, struct diff_table *t, struct error *err)
{
    const struct analysis_hotspots_question question = {.size_bytes = size_bytes,
                                                        .by = objects ? ANALYSIS_BY_NOTHING
                                                                      : ANALYSIS_BY_FUNCTION,
                                                        .objects = objects,
                                                        .separate = separate};
    struct curve_point curves[2];
    int code = 0;
    *t = (struct diff_table){0};
    for (int i = 0; i < 2 && code == 0; i++) {
        code = analysis_hotspots(profiles[i], names[i], &question, &t->hotspots[i], err);
        if (code == 0)
            curves[i] = analysis_hotspots_point(profiles[i], &t->hotspots[i]);
    }
    if (code == 0)
        code = analysis_function_changes(&t->hotspots[0], &t->hotspots[1], curves, &t->changes, err);
    if (code != 0)
        diff_table_clear(t);
    return code;
}

void diff_table_clear(struct diff_table *t)
{
    free(t->changes.rows);
    analysis_hotspots_clear(&t->hotspots[0]);
    analysis_hotspots_clear(&t->hotspots[1]);
    *t = (struct diff_table){0};
}

/* Of the powers of two, that with the largest significant change of the curve. */
static double changed_size(const struct report_curves *d)
{
    double size = USUAL_SIZE, most = 0;
    for (size_t i = 0; i < d->before->n; i++)
        if (d->changes[i].significant && fabs(d->changes[i].delta) > most &&
            fmod(log2(d->before->points[i].size_bytes), 1) == 0) {
            most = fabs(d->changes[i].delta);
            size = d->before->points[i].size_bytes;
        }
    return size;
}

/* The name of the program that a profile is of. */
static void load_program(struct profile *p, char *name, size_t size)
{
    struct analysis_summary *s = malloc(sizeof *s);
    struct error ignored;
    *name = '\0';
    if (s && analysis_summary_load(p, s, &ignored) == 0) {
        s->command[strcspn(s->command, " ")] = '\0';
        snprintf(name, size, "%.*s", (int)size - 1, base_name(s->command));
    }
    free(s);
}

/* 0: not all were recorded. */
static double all_references(struct profile *p)
{
    char mode[16] = "";
    double all = 0, missed = 0;
    profile_get(p, "mode", mode, sizeof mode, NULL);
    profile_get_number(p, "missed_percent", &missed, NULL);
    if (strcmp(mode, "full") != 0 || missed > 0 || profile_get_number(p, "references", &all, NULL) != 0)
        return 0;
    return all;
}

void diff_programs_load(struct profile *const profiles[2], struct report_difference_programs *programs)
{
    for (int i = 0; i < 2; i++) {
        load_program(profiles[i], programs->name[i], sizeof programs->name[i]);
        programs->references[i] = all_references(profiles[i]);
        profile_get(profiles[i], "cpu", programs->cpu[i], sizeof programs->cpu[i], NULL);
    }
}

static int load(struct profile *const profiles[2], const struct report_curves *curves,
                struct report_difference *d, struct diff_table tables[2],
                struct analysis_phase_difference *phases, struct error *err)
{
    const char *const names[2] = {curves->before->profile, curves->after->profile};
    size_t npoints = 0;
    struct curve_point *points = cli_points(PAGE_DATA_USUAL_SIZES, &npoints, err);
    if (!points)
        return -ENOMEM;
    struct error *why[] = {&d->no_functions, &d->no_objects};
    d->size_bytes = changed_size(curves);
    diff_programs_load(profiles, &d->programs);
    for (int i = 0; i < 2; i++) {
        if (diff_table_load(profiles, names, d->size_bytes, curves->before->separate, i, &tables[i],
                            why[i]) == 0)
            *(i ? &d->objects : &d->functions) = &tables[i].changes;
    }
    if (analysis_phase_difference(profiles, names, curves->before->separate, points, npoints, phases,
                                  &d->no_phases) == 0)
        d->phases = phases;
    d->points = points;
    d->npoints = npoints;
    return 0;
}

int diff_parts_print(const struct report_curves *curves, int all, enum report_format format,
                     struct error *err)
{
    struct report_difference d = {.curves = curves, .all = all};
    struct profile *profiles[2] = {NULL, NULL};
    struct diff_table tables[2] = {0};
    struct analysis_phase_difference phases = {0};
    int code = profile_open(curves->before->profile, &profiles[0], err);
    if (code == 0)
        code = profile_open(curves->after->profile, &profiles[1], err);
    if (code == 0)
        code = load(profiles, curves, &d, tables, &phases, err);
    for (int i = 0; i < 2; i++)
        profile_close(profiles[i], 0, NULL);
    if (code == 0)
        report_difference_all(stdout, &d, format);
    diff_table_clear(&tables[0]);
    diff_table_clear(&tables[1]);
    analysis_phase_difference_clear(&phases);
    free((void *)d.points);
    return code;
}
