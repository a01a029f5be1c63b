/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/hotspots-calls.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/recorded.h"
#include "base/array.h"
#include "base/octaves.h"
#include "model/far-shares.h"

/* Misses of a group of sites that were reached by a path. */
struct item {
    uint32_t group;
    uint64_t path; /* what is left of it towards the root; 0: nothing */
    uint64_t key;  /* equal for calls that are one node */
    double misses;
};

struct finding {
    struct analysis_hotspots *h;
    const struct profile_path *paths; /* by id */
    size_t npaths;
    size_t nrows; /* that get calls */
    double total; /* of the current row */
    size_t capacity;
};

static const struct profile_path *path_of(const struct finding *f, uint64_t id)
{
    size_t end = ARRAY_UP_TO(f->paths, f->npaths, id, id);
    return end > 0 && f->paths[end - 1].id == id ? &f->paths[end - 1] : NULL;
}

/* Callers have smaller ids: corrupt profiles cannot cause endless paths. */
static uint64_t caller_of(const struct profile_path *path)
{
    return path->caller < path->id ? path->caller : 0;
}

/* Calls at one line of one function are one node; without names, those at one place. */
static uint64_t key_of(const struct profile_path *path)
{
    return path->frame != 0 ? path->frame << 1 : (path->image << 48 ^ path->offset) << 1 | 1;
}

static int compare_groups(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return x->group < y->group ? -1 : x->group > y->group;
}

static int compare_keys(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static int add_call(struct finding *f, const struct profile_path *path, unsigned depth, double misses)
{
    struct analysis_hotspots *h = f->h;
    if (ARRAY_GROW(h->calls, h->ncalls, f->capacity) < 0)
        return -ENOMEM;
    h->calls[h->ncalls++] = (struct analysis_call){.image = analysis_image_of(h, path->image),
                                                   .offset = path->offset,
                                                   .frame = analysis_frame_of(h, path->frame),
                                                   .depth = depth,
                                                   .share = misses / f->total};
    return 0;
}

/* Items with the same key, and their sum. */
struct run {
    size_t first, n;
    double misses;
};

static int compare_runs(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    if (x->misses != y->misses)
        return x->misses > y->misses ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

/* Adds the nodes of n items, whose calls are at that depth, and below each those of its callers. */
static int add_calls(struct finding *f, struct item *items, size_t n, unsigned depth)
{
    size_t nruns = 0;
    int code = 0;
    struct run *runs = calloc(n + 1, sizeof *runs);
    if (!runs)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct profile_path *path = path_of(f, items[i].path);
        items[i].path = path ? items[i].path : 0;
        items[i].key = path ? key_of(path) : 0;
    }
    qsort(items, n, sizeof *items, compare_keys);
    for (size_t i = 0; i < n; i++) {
        if (items[i].path == 0) /* the callers are not known, or there are none */
            continue;
        if (nruns == 0 || items[runs[nruns - 1].first].key != items[i].key)
            runs[nruns++] = (struct run){.first = i};
        runs[nruns - 1].n++;
        runs[nruns - 1].misses += items[i].misses;
    }
    qsort(runs, nruns, sizeof *runs, compare_runs);
    for (size_t k = 0; k < nruns && code == 0; k++) {
        struct item *of = &items[runs[k].first];
        code = add_call(f, path_of(f, of->path), depth, runs[k].misses);
        for (size_t i = 0; i < runs[k].n; i++)
            of[i].path = caller_of(path_of(f, of[i].path));
        if (code == 0 && depth + 1 < ANALYSIS_MOST_CALLS)
            code = add_calls(f, of, runs[k].n, depth + 1);
    }
    free(runs);
    return code;
}

/* The items of a group. Returns their number. */
static size_t find_items(struct item *items, size_t n, uint32_t group, struct item **of)
{
    size_t low = 0, high = n, end;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (items[middle].group < group)
            low = middle + 1;
        else
            high = middle;
    }
    for (end = low; end < n && items[end].group == group; end++)
        ;
    *of = &items[low];
    return end - low;
}

static int add_rows(struct finding *f, struct item *items, size_t n, const uint32_t *group_of_row)
{
    int code = 0;
    struct item *copy = calloc(n + 1, sizeof *copy);
    if (!copy)
        return -ENOMEM;
    for (size_t i = 0; i < f->nrows && code == 0; i++) {
        struct analysis_hotspot *row = &f->h->rows[i];
        struct item *of;
        size_t count = find_items(items, n, group_of_row[row->number], &of);
        f->total = 0;
        for (size_t k = 0; k < count; k++) {
            copy[k] = of[k];
            f->total += of[k].misses;
        }
        row->call = f->h->ncalls;
        if (f->total > 0)
            code = add_calls(f, copy, count, 0);
        row->ncalls = f->h->ncalls - row->call;
    }
    free(copy);
    return code;
}

/* Of each row, by its number before sorting, the group of its code. */
static uint32_t *groups_of_rows(const struct analysis_hotspots *h, const struct analysis_groups *groups)
{
    size_t n = h->objects ? groups->npairs : groups->n;
    uint32_t *of = calloc(n + 1, sizeof *of);
    for (size_t i = 0; of && !h->objects && i < n; i++)
        of[i] = (uint32_t)i;
    for (size_t i = 0; of && h->objects && i < groups->capacity; i++)
        if (groups->pairs[i].row != 0)
            of[groups->pairs[i].row - 1] = groups->pairs[i].group;
    return of;
}

static struct item *make_items(const struct profile_site_path *list, size_t n,
                               const struct analysis_groups *groups, double lines, size_t *nitems)
{
    struct item *items = calloc(n + 1, sizeof *items);
    *nitems = 0;
    for (size_t i = 0; items && i < n; i++) {
        double part = list[i].first ? 1 : far_shares_part_above(octaves_bin(list[i].lines), lines);
        uint32_t group =
            list[i].site <= groups->most_site ? groups->of_site[list[i].site] : ANALYSIS_NO_GROUP;
        if (group != ANALYSIS_NO_GROUP && part > 0)
            items[(*nitems)++] = (struct item){
                .group = group, .path = list[i].path, .misses = part * (double)list[i].references};
    }
    if (items)
        qsort(items, *nitems, sizeof *items, compare_groups);
    return items;
}

int analysis_calls_find(struct profile *p, struct analysis_hotspots *h, size_t most_rows,
                        const struct analysis_groups *groups, double lines, struct error *err)
{
    struct analysis_recorded *r = h->recorded;
    struct finding f = {.h = h, .nrows = most_rows && most_rows < h->n ? most_rows : h->n};
    struct item *items = NULL;
    uint32_t *group_of_row = NULL;
    size_t nitems = 0;
    if (h->by == ANALYSIS_BY_NOTHING)
        return 0;
    int code = analysis_recorded_paths(r, p, err);
    if (code == 0) {
        f.paths = r->paths;
        f.npaths = r->npaths;
        items = make_items(r->site_paths, r->nsite_paths, groups, lines, &nitems);
        group_of_row = groups_of_rows(h, groups);
        code = items && group_of_row ? add_rows(&f, items, nitems, group_of_row) : -ENOMEM;
        if (code < 0)
            error_set(err, code, "out of memory for the call paths");
    }
    free(items);
    free(group_of_row);
    return code;
}
