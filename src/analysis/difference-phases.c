/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/difference-phases.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/curve.h"
#include "analysis/timeline.h"

#define MOST_PHASES 20u /* of each profile */

static int by_share(const void *a, const void *b)
{
    const struct analysis_phase_row *x = a, *y = b;
    if (x->refs_share != y->refs_share)
        return x->refs_share < y->refs_share ? 1 : -1;
    return x->phase < y->phase ? -1 : x->phase > y->phase;
}

/* The curve of a phase, at the sizes that row->points has. */
static int find_curve(struct profile *p, const char *name, int separate, size_t npoints,
                      struct analysis_phase_row *row, struct error *err)
{
    const struct analysis_question question = {
        .model = ANALYSIS_MODEL_LRU, .phase = row->phase, .separate = separate};
    struct analysis_curve curve = {.profile = name, .points = row->points, .n = npoints};
    struct error why;
    int code = analysis_curve_compute(p, &question, &curve, &why);
    if (code == -ENODATA) { /* no burst began in it */
        for (size_t k = 0; k < npoints; k++)
            row->points[k] = (struct curve_point){row->points[k].size_bytes, NAN, 0, 1};
        return 0;
    }
    if (code != 0)
        *err = why;
    return code;
}

static void clear_rows(struct analysis_phase_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        free(rows->list[i].points);
    free(rows->list);
    *rows = (struct analysis_phase_rows){0};
}

static int find_rows(struct profile *p, const char *name, int separate, const struct curve_point *points,
                     size_t npoints, struct analysis_phase_rows *rows, struct error *err)
{
    struct analysis_timeline timeline = {.profile = name, .separate = separate};
    double all = 0;
    *rows = (struct analysis_phase_rows){0};
    int code = analysis_timeline_compute(p, points, npoints, &timeline, err);
    if (code == 0 && !(rows->list = calloc(timeline.nphases + 1, sizeof *rows->list)))
        code = error_set(err, -ENOMEM, "out of memory reading the phases of '%s'", name);
    for (size_t i = 0; i < timeline.nphases && code == 0; i++) {
        const struct analysis_phase *phase = &timeline.phases[i];
        all += phase->refs;
        if (phase->phase != 0)
            rows->list[rows->n++] = (struct analysis_phase_row){.phase = phase->phase,
                                                                .windows = phase->windows,
                                                                .bursts = phase->bursts,
                                                                .refs_share = phase->refs};
    }
    for (size_t i = 0; i < rows->n; i++)
        rows->list[i].refs_share = all > 0 ? rows->list[i].refs_share / all : 0;
    if (rows->n > 0)
        qsort(rows->list, rows->n, sizeof *rows->list, by_share);
    if (rows->n > MOST_PHASES) {
        rows->left_out = rows->n - MOST_PHASES;
        rows->n = MOST_PHASES;
    }
    for (size_t i = 0; i < rows->n && code == 0; i++) {
        if (!(rows->list[i].points = calloc(npoints + 1, sizeof *points))) {
            code = error_set(err, -ENOMEM, "out of memory reading the phases of '%s'", name);
            break;
        }
        memcpy(rows->list[i].points, points, npoints * sizeof *points);
        code = find_curve(p, name, separate, npoints, &rows->list[i], err);
    }
    analysis_timeline_clear(&timeline);
    if (code != 0)
        clear_rows(rows);
    return code;
}

int analysis_phase_difference(struct profile *const profiles[2], const char *const names[2], int separate,
                              const struct curve_point *points, size_t npoints,
                              struct analysis_phase_difference *d, struct error *err)
{
    int code = 0;
    *d = (struct analysis_phase_difference){0};
    for (int side = 0; side < 2 && code == 0; side++)
        code = find_rows(profiles[side], names[side], separate, points, npoints, &d->rows[side], err);
    if (code == 0)
        code = analysis_phase_pairs(profiles, names, npoints, d, err);
    if (code != 0)
        analysis_phase_difference_clear(d);
    return code;
}

void analysis_phase_difference_clear(struct analysis_phase_difference *d)
{
    for (size_t i = 0; i < d->npairs; i++)
        free(d->pairs[i].changes);
    free(d->pairs);
    clear_rows(&d->rows[0]);
    clear_rows(&d->rows[1]);
    *d = (struct analysis_phase_difference){0};
}
