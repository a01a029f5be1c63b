/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots.c - which rows of a table are printed, in what order, and in which format. Rows come sorted by
 * their misses. How a row is printed is in hotspots-text.c, hotspots-csv.c and hotspots-json.c, what it is
 * called in hotspot-names.c, and what the reader should know of the table in hotspots-notes.c.
 */
#include "report/hotspots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"
#include "report/hotspots-internal.h"

/* Largest first; what is not known comes last. */
static int by_number(double x, double y)
{
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
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

size_t report_hotspots_select(struct analysis_hotspots *h, const struct report_hotspots_view *view)
{
    static int (*const compare[])(const void *, const void *) = {[REPORT_SORT_RATIO] = compare_ratio,
                                                                 [REPORT_SORT_REFS] = compare_refs,
                                                                 [REPORT_SORT_NAME] = compare_name,
                                                                 [REPORT_SORT_STALL] = compare_stall};
    size_t used = 0, asked = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct analysis_hotspot *row = &h->rows[i];
        if (view->dso && !is_of_file(row, view->dso))
            continue;
        asked++;
        if (100 * row->shares.misses_share < view->least_percent)
            continue;
        h->rows[used++] = *row;
    }
    h->n = used;
    if (view->sort != REPORT_SORT_MISSES && used > 0)
        qsort(h->rows, used, sizeof *h->rows, compare[view->sort]);
    if (view->limit && h->n > view->limit)
        h->n = view->limit;
    return asked - h->n;
}

void report_hotspots(FILE *out, const struct analysis_hotspots *h, size_t left_out, enum report_format format)
{
    if (format == REPORT_CSV)
        report_hotspots_csv(out, h);
    else if (format == REPORT_JSON)
        report_hotspots_json(out, h, left_out);
    else
        report_hotspots_text(out, h, left_out);
}
