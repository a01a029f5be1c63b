/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/difference.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"
#include "model/watched.h"

/* Code that no burst has seen may make references so many times as fast as the program does in the mean, so
 * that it has this multiple of its part of the time: 15 was measured of a loop over an array, beside one that
 * follows pointers to memory. */
#define FASTEST 16

struct analysis_change analysis_change_of(const struct curve_point *before, const struct curve_point *after)
{
    struct analysis_change c = {before->miss_ratio, after->miss_ratio, NAN, NAN, NAN, 0};
    if (isnan(c.before) || isnan(c.after)) { /* bounds: certain if they do not overlap */
        c.low = after->low - before->high;
        c.high = after->high - before->low;
    } else {
        c.delta = c.after - c.before;
        c.low = c.delta - hypot(c.after - after->low, before->high - c.before);
        c.high = c.delta + hypot(after->high - c.after, c.before - before->low);
    }
    c.significant = c.low > 0 || c.high < 0;
    return c;
}

static const char *name_of(const struct analysis_hotspot *row)
{
    return row->object  ? row->object->name
           : row->rest  ? "[rest]" /* of the module, as in collapsed stacks */
           : row->outer ? row->outer->function
                        : "";
}

static const char *module_of(const struct analysis_hotspot *row)
{
    return row->object ? row->object->module : row->image ? row->image->path : "";
}

/* Length of the name of a block, of n characters, without ":LINE" at its end. */
static size_t length_without_line(const char *name, size_t n)
{
    size_t digits = n;
    while (digits > 0 && strchr("~0123456789", name[digits - 1]))
        digits--;
    return digits > 0 && digits < n && name[digits - 1] == ':' ? digits - 1 : n;
}

/* What two rows must have in common, the surest first. Whether a block's name has a column, or the number of
 * a call, depends on which others of its line the profile has. */
enum likeness {
    SAME_CALL, /* blocks only, as all below but the next: in one build of the program */
    SAME_NAME,
    SAME_COLUMN,
    SAME_LINE,
    SAME_FUNCTION,
    LIKENESSES
};

static int is_same_block(const struct analysis_hotspots *of_a, const struct profile_object *a,
                         const struct analysis_hotspots *of_b, const struct profile_object *b,
                         enum likeness likeness)
{
    const struct analysis_allocation *x = &of_a->allocations[a - of_a->data],
                                     *y = &of_b->allocations[b - of_b->data];
    size_t n = x->name_length, m = y->name_length;
    if (likeness == SAME_FUNCTION) {
        n = length_without_line(a->name, n);
        m = length_without_line(b->name, m);
    }
    return n == m && strncmp(a->name, b->name, n) == 0 &&
           (likeness > SAME_COLUMN || x->column == y->column) &&
           (likeness > SAME_CALL || x->offset == y->offset);
}

static int is_same_thing(const struct analysis_hotspots *of_a, const struct analysis_hotspot *a,
                         const struct analysis_hotspots *of_b, const struct analysis_hotspot *b,
                         enum likeness likeness)
{
    if (!a->object != !b->object || (a->object && a->object->kind != b->object->kind))
        return 0;
    if (likeness == SAME_NAME)
        return strcmp(name_of(a), name_of(b)) == 0 &&
               (!a->source || !b->source || strcmp(base_name(a->source), base_name(b->source)) == 0);
    return a->object && a->object->kind == PROFILE_OBJECT_BLOCK &&
           is_same_block(of_a, a->object, of_b, b->object, likeness);
}

static int is_same_module(const struct analysis_hotspot *a, const struct analysis_hotspot *b)
{
    return strcmp(base_name(module_of(a)), base_name(module_of(b))) == 0;
}

/* Nonzero if the row's module is not in h: the program itself, if it was built under another name. */
static int is_renamed(const struct analysis_hotspot *row, const struct analysis_hotspots *h)
{
    for (size_t i = 0; i < h->n; i++)
        if (is_same_module(row, &h->rows[i]))
            return 0;
    return 1;
}

/* Rows of `after`, to be found by name: there may be tens of thousands. */
struct index {
    const struct analysis_hotspots *h;
    size_t *by_name;        /* their numbers, by name and then by number */
    char *paired, *renamed; /* of each row: whether it has a counterpart; is_renamed */
};

static int by_name(const void *a, const void *b, void *h)
{
    const size_t *x = a, *y = b;
    const struct analysis_hotspots *of = h;
    int order = strcmp(name_of(&of->rows[*x]), name_of(&of->rows[*y]));
    return order ? order : (*x > *y) - (*x < *y);
}

static int index_make(struct index *index, const struct analysis_hotspots *h,
                      const struct analysis_hotspots *before)
{
    *index = (struct index){.h = h,
                            .by_name = calloc(h->n + 1, sizeof *index->by_name),
                            .paired = calloc(h->n + 1, 1),
                            .renamed = calloc(h->n + 1, 1)};
    if (!index->by_name || !index->paired || !index->renamed)
        return -ENOMEM;
    for (size_t k = 0; k < h->n; k++) {
        index->by_name[k] = k;
        index->renamed[k] = (char)is_renamed(&h->rows[k], before);
    }
    qsort_r(index->by_name, h->n, sizeof *index->by_name, by_name, (void *)(uintptr_t)h);
    return 0;
}

static void index_clear(struct index *index)
{
    free(index->by_name);
    free(index->paired);
    free(index->renamed);
}

/* Place in by_name of the first row of that name. */
static size_t first_of_name(const struct index *index, const char *name)
{
    size_t low = 0, high = index->h->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(name_of(&index->h->rows[index->by_name[middle]]), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The row of `after` for what a row of `before` is of; after->n: none. row_renamed: is_renamed. */
static size_t find_same(const struct analysis_hotspots *before, const struct analysis_hotspot *row,
                        int row_renamed, const struct index *index, enum likeness likeness)
{
    const struct analysis_hotspots *after = index->h;
    int named = likeness == SAME_NAME;
    if (!row->object && !named)
        return after->n;
    for (size_t i = named ? first_of_name(index, name_of(row)) : 0; i < after->n; i++) {
        size_t k = named ? index->by_name[i] : i;
        const struct analysis_hotspot *other = &after->rows[k];
        if (named && strcmp(name_of(row), name_of(other)) != 0)
            break;
        if (!index->paired[k] && row->rest == other->rest &&
            is_same_thing(before, row, after, other, likeness) &&
            (is_same_module(row, other) || (row_renamed && index->renamed[k])))
            return k;
    }
    return after->n;
}

/* Misses per 1000 references of all, with the outer ends of what the share and the ratio may be; `most`: the
 * upper bound of the ratio. s: NULL: nothing was seen of it. */
static struct curve_point misses_of(const struct analysis_hotspots *h, double most,
                                    const struct shares_result *s)
{
    struct curve_point p = {h->size_bytes, 0, 0, 0};
    double all = h->total.miss_ratio;
    p.miss_ratio = s ? 1000 * all * s->misses_share : 0;
    p.low = p.high = p.miss_ratio;
    if (h->full)
        return p;
    if (!s) { /* bursts have missed it, if it is not gone */
        most = fmin(most, FASTEST * curve_unseen_share(h->bursts));
        p.high = 1000 * (h->total.enough ? fmin(most, h->total.ratio_high) : most);
        return p;
    }
    if (s->enough && h->total.enough) {
        p.low = 1000 * h->total.ratio_low * s->share_low;
        p.high = 1000 * h->total.ratio_high * s->share_high;
    } else {
        p.low = 0;
        p.high = fmax(p.miss_ratio, 1000 * (h->total.enough ? fmin(most, h->total.ratio_high) : most));
    }
    return p;
}

/* Likewise of the whole program. */
static struct curve_point misses_of_all(const struct analysis_hotspots *h, const struct curve_point *curve)
{
    struct shares_result s = h->total;
    if (!h->full)
        analysis_widen_ratio(&s, curve);
    return (struct curve_point){h->size_bytes, 1000 * s.miss_ratio, 1000 * s.ratio_low, 1000 * s.ratio_high};
}

static int by_change(const void *one, const void *other)
{
    const struct analysis_function_change *a = one, *b = other;
    double x = fabs(a->misses.delta), y = fabs(b->misses.delta);
    return x > y ? -1 : x < y ? 1 : strcmp(a->function, b->function);
}

int analysis_function_changes(const struct analysis_hotspots *before, const struct analysis_hotspots *after,
                              const struct curve_point curves[2], struct analysis_function_changes *changes,
                              struct error *err)
{
    struct curve_point from = misses_of_all(before, &curves[0]), to = misses_of_all(after, &curves[1]);
    const double most[2] = {fmin(curves[0].high, 1), fmin(curves[1].high, 1)};
    changes->total = analysis_change_of(&from, &to);
    changes->n = 0;
    changes->rows = calloc(before->n + after->n + 1, sizeof *changes->rows);
    char *gone = calloc(before->n + 1, 1);
    struct index index;
    int failed = index_make(&index, after, before) < 0;
    size_t *pairs = calloc(before->n + 1, sizeof *pairs);
    if (failed || !changes->rows || !gone || !pairs) {
        free(changes->rows);
        index_clear(&index);
        free(gone);
        free(pairs);
        return error_set(err, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < before->n; i++) {
        gone[i] = (char)is_renamed(&before->rows[i], after);
        pairs[i] = after->n;
    }
    for (enum likeness likeness = 0; likeness < LIKENESSES; likeness++)
        for (size_t i = 0; i < before->n; i++) {
            if (pairs[i] < after->n)
                continue;
            pairs[i] = find_same(before, &before->rows[i], gone[i], &index, likeness);
            index.paired[pairs[i]] = 1;
        }
    for (size_t i = 0; i < before->n; i++) {
        const struct analysis_hotspot *row = &before->rows[i];
        from = misses_of(before, most[0], &row->shares);
        to = misses_of(after, most[1], pairs[i] < after->n ? &after->rows[pairs[i]].shares : NULL);
        changes->rows[changes->n++] = (struct analysis_function_change){
            name_of(row), row->source, module_of(row), row->object, analysis_change_of(&from, &to)};
    }
    for (size_t k = 0; k < after->n; k++)
        if (!index.paired[k]) {
            from = misses_of(before, most[0], NULL);
            to = misses_of(after, most[1], &after->rows[k].shares);
            changes->rows[changes->n++] = (struct analysis_function_change){
                name_of(&after->rows[k]), after->rows[k].source, module_of(&after->rows[k]),
                after->rows[k].object, analysis_change_of(&from, &to)};
        }
    free(pairs);
    index_clear(&index);
    free(gone);
    qsort(changes->rows, changes->n, sizeof *changes->rows, by_change);
    return 0;
}
