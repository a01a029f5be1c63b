/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/recorded.h"
#include "profile/site-counts.h"

/* Rows of pairs are made in the order of the counts. */
static int find_rows(const struct analysis_recorded *r, struct analysis_hotspots *h,
                     struct recorded_rows *rows)
{
    for (size_t i = 0; i < r->nlist && rows->objects; i++)
        if (r->list[i].what != SITE_COUNT_MORE &&
            analysis_groups_add(h, &rows->groups, r->list[i].site, r->list[i].object) < 0)
            return -ENOMEM;
    if (!(rows->of_count = malloc((r->nlist + 1) * sizeof *rows->of_count)))
        return -ENOMEM;
    for (size_t i = 0; i < r->nlist; i++)
        rows->of_count[i] = r->list[i].what == SITE_COUNT_MORE
                                ? analysis_groups_of(&rows->groups, r->list[i].site)
                                : analysis_groups_row(h, &rows->groups, r->list[i].site, r->list[i].object);
    return 0;
}

static int make(const struct analysis_recorded *r, struct analysis_hotspots *h, struct recorded_rows *rows,
                struct error *err)
{
    int code = analysis_groups_make(h, r->sites, r->nsites, &rows->groups, err);
    rows->groups.fields = rows->fields ? r->fields : NULL;
    if (code == 0 && find_rows(r, h, rows) < 0)
        code = error_set(err, -ENOMEM, "out of memory for the hotspots");
    rows->rows = h->rows;
    rows->n = h->n;
    return code;
}

int analysis_recorded_rows(struct analysis_recorded *r, const struct analysis_hotspots *h,
                           enum analysis_by by, int objects, const struct recorded_rows **result,
                           struct error *err)
{
    struct analysis_hotspots table = *h;
    const int fields = objects && h->fields;
    table.by = by;
    table.objects = objects;
    table.rows = NULL;
    table.n = 0;
    for (size_t i = 0; i < r->nrows; i++)
        if (r->rows[i]->by == by && r->rows[i]->objects == objects && r->rows[i]->fields == fields) {
            *result = r->rows[i];
            return 0;
        }
    struct recorded_rows **grown = reallocarray(r->rows, r->nrows + 1, sizeof(struct recorded_rows *)),
                         *rows = calloc(1, sizeof *rows);
    if (grown)
        r->rows = grown;
    if (!grown || !rows) {
        free(rows);
        return error_set(err, -ENOMEM, "out of memory for the hotspots");
    }
    rows->by = by;
    rows->objects = objects;
    rows->fields = fields;
    int code = make(r, &table, rows, err);
    if (code != 0) {
        analysis_recorded_rows_free(rows);
        return code;
    }
    *result = r->rows[r->nrows++] = rows;
    return 0;
}

void analysis_recorded_rows_free(struct recorded_rows *rows)
{
    if (!rows)
        return;
    analysis_groups_clear(&rows->groups);
    free(rows->rows);
    free(rows->of_count);
    free(rows);
}
