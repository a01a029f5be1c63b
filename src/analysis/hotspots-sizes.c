/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/hotspots-sizes.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/octaves.h"

/* The table for one size. The caller clears *h. */
static int table_of(struct profile *p, const char *name, const struct analysis_hotspots_question *question,
                    double size_bytes, struct analysis_hotspots *h, struct error *err)
{
    struct analysis_hotspots_question q = *question;
    q.size_bytes = size_bytes;
    q.causes = 0;
    return analysis_hotspots(p, name, &q, h, err);
}

/* The intervals of several rows are taken to be independent of each other. */
static void add_up(const struct analysis_hotspots *h, analysis_selects *selects, void *ctx,
                   struct curve_point *point, uint64_t *recorded)
{
    double references = 0, misses = 0, below = 0, above = 0;
    int enough = 1;
    *recorded = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct shares_result *s = &h->rows[i].shares;
        if (!selects(ctx, h, &h->rows[i]))
            continue;
        references += s->references;
        misses += s->misses;
        *recorded += s->recorded;
        if (isnan(s->miss_ratio)) /* misses of watched lines only */
            continue;
        enough &= s->enough;
        below += pow((s->miss_ratio - s->ratio_low) * s->references, 2);
        above += pow((s->ratio_high - s->miss_ratio) * s->references, 2);
    }
    if (!(references > 0))
        return;
    point->miss_ratio = fmin(misses / references, 1);
    if (enough) {
        point->low = fmax(point->miss_ratio - sqrt(below) / references, 0);
        point->high = fmin(point->miss_ratio + sqrt(above) / references, 1);
    }
}

int analysis_hotspots_curve(struct profile *p, const char *name,
                            const struct analysis_hotspots_question *question, analysis_selects *selects,
                            void *ctx, struct curve_point *points, size_t n, uint64_t *recorded,
                            struct error *err)
{
    unsigned line_bytes;
    int code = profile_line_bytes(p, &line_bytes, err);
    *recorded = 0;
    for (size_t i = 0; i < n && code == 0; i++) {
        struct analysis_hotspots h;
        points[i].miss_ratio = points[i].low = points[i].high = NAN;
        if (floor(points[i].size_bytes / line_bytes) < (double)OCTAVES_LEAST)
            continue;
        if ((code = table_of(p, name, question, points[i].size_bytes, &h, err)) != 0)
            break;
        add_up(&h, selects, ctx, &points[i], recorded);
        analysis_hotspots_clear(&h);
    }
    if (code == 0 && *recorded == 0)
        code = error_set(
            err, -ENODATA,
            "the profile '%s' holds no references of that function or object; 'cachegram hotspots' lists "
            "those that it has",
            name);
    return code;
}

/* What a row of a table is of, in numbers that tables of the same profile, by the same question, have in
 * common.
 */
struct row_key {
    ptrdiff_t image, frame, outer, object, field;
    uint64_t offset;
    int rest;
    size_t row;
};

static struct row_key key_of(const struct analysis_hotspots *h, size_t i)
{
    const struct analysis_hotspot *row = &h->rows[i];
#define NUMBER(list, member) (row->member ? row->member - h->list : -1)
    return (struct row_key){NUMBER(images, image),
                            NUMBER(frames, frame),
                            NUMBER(frames, outer),
                            NUMBER(data, object),
                            NUMBER(parts, field),
                            row->offset,
                            row->rest,
                            i};
}

static int compare_keys(const void *a, const void *b)
{
    const struct row_key *x = a, *y = b;
#define ORDER(member)           \
    if (x->member != y->member) \
    return x->member < y->member ? -1 : 1
    ORDER(image);
    ORDER(frame);
    ORDER(outer);
    ORDER(object);
    ORDER(field);
    ORDER(offset);
    ORDER(rest);
    return 0;
}

/* Adds to each row of h, of which keys[h->n] are sorted, what its misses at that level cost. */
static void add_level(const struct analysis_hotspots *level, double cycles, const struct row_key *keys,
                      struct analysis_hotspots *h)
{
    for (size_t i = 0; i < level->n; i++) {
        const struct row_key key = key_of(level, i),
                             *found = bsearch(&key, keys, h->n, sizeof *keys, compare_keys);
        if (found)
            h->rows[found->row].stall += level->rows[i].shares.misses * cycles;
    }
}

int analysis_hotspots_stall(struct profile *p, const struct analysis_hotspots_question *question,
                            const struct analysis_level *levels, size_t n, struct analysis_hotspots *h,
                            struct error *err)
{
    double all = 0;
    struct row_key *keys = calloc(h->n + 1, sizeof *keys);
    int code = keys ? 0 : error_set(err, -ENOMEM, "out of memory for the hotspots");
    for (size_t i = 0; i < h->n && keys; i++) {
        h->rows[i].stall = 0;
        keys[i] = key_of(h, i);
    }
    if (keys)
        qsort(keys, h->n, sizeof *keys, compare_keys);
    for (size_t l = 0; l < n && code == 0; l++) {
        struct analysis_hotspots level;
        if ((code = table_of(p, h->profile, question, levels[l].size_bytes, &level, err)) != 0)
            break;
        all += level.total.misses * levels[l].cycles;
        add_level(&level, levels[l].cycles, keys, h);
        analysis_hotspots_clear(&level);
    }
    for (size_t i = 0; i < h->n; i++)
        h->rows[i].stall = code == 0 && all > 0 ? h->rows[i].stall / all : NAN;
    free(keys);
    return code;
}
