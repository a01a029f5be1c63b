/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/hotspots-groups.h"
#include "analysis/hotspots-fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In a corrupt profile, ids may be anything. */
#define MOST_SITES (UINT64_C(1) << 26)

/* 0: not known. */
static uint32_t id_of(const struct profile_object *object)
{
    return object ? (uint32_t)object->id : 0;
}

/* A site, with its sort key. */
struct keyed {
    const struct profile_image *image;
    const struct profile_frame *frame, *outer;
    const char *source; /* as of a row */
    uint64_t offset, id;
    enum analysis_by by;
};

static int compare_ids(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static const char *function_of(const struct keyed *k)
{
    return k->outer ? k->outer->function : "";
}

static int compare(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int order = x->by != ANALYSIS_BY_NOTHING ? compare_ids(x->image->id, y->image->id) : 0;
    int x_rest = x->offset == PROFILE_SITE_REST, y_rest = y->offset == PROFILE_SITE_REST;
    if (order == 0 && x->by != ANALYSIS_BY_MODULE && x->by != ANALYSIS_BY_NOTHING)
        order = x_rest - y_rest;
    if (order == 0 && x->by == ANALYSIS_BY_FUNCTION)
        order = strcmp(function_of(x), function_of(y));
    if (order == 0 && x->by == ANALYSIS_BY_FUNCTION)
        order = strcmp(x->source ? x->source : "", y->source ? y->source : "");
    if (order == 0 && x->by == ANALYSIS_BY_LINE)
        order = compare_ids(x->frame ? x->frame->id : 0, y->frame ? y->frame->id : 0);
    if (order == 0 && x->by == ANALYSIS_BY_INSN)
        order = compare_ids(x->offset, y->offset);
    if (order == 0 && x->by == ANALYSIS_BY_INSN) /* one after the other at the same place: a JIT compiler's */
        order = compare_ids(x->outer ? x->outer->id : 0, y->outer ? y->outer->id : 0);
    return order;
}

/* --- functions of one name --- */

/* Where the code of a function, or of several with its name, is that comes from one source file. */
struct range {
    const char *source;
    uint64_t low, high; /* offsets in the image */
    size_t into;        /* range that it is a part of; itself if it is not */
};

/* The lines of one function come from fewer files. With more, functions of that name stay one row. */
#define MOST_RANGES 16u

static int compare_places(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int order = compare_ids(x->image->id, y->image->id);
    return order ? order : compare_ids(x->offset, y->offset);
}

/* Whether there is code between two offsets; all[n] is sorted by place. */
static int has_site(const struct keyed *all, size_t n, const struct profile_image *image, uint64_t after,
                    uint64_t before)
{
    const struct keyed key = {.image = image, .offset = after};
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_places(&all[middle], &key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && all[low].image == image && all[low].offset < before;
}

/* The ranges of sites[n] of one name; 0: they are of one function, or nothing is known. */
static size_t find_ranges(const struct keyed *sites, size_t n, struct range ranges[MOST_RANGES])
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const struct keyed *k = &sites[i];
        size_t at = 0;
        if (k->offset == PROFILE_SITE_REST || !k->outer || !*k->outer->function || !*k->outer->file)
            return 0;
        while (at < found && strcmp(ranges[at].source, k->outer->file) != 0)
            at++;
        if (at == MOST_RANGES)
            return 0;
        if (at == found)
            ranges[found++] = (struct range){k->outer->file, k->offset, k->offset, at};
        ranges[at].low = k->offset < ranges[at].low ? k->offset : ranges[at].low;
        ranges[at].high = k->offset > ranges[at].high ? k->offset : ranges[at].high;
    }
    return found > 1 ? found : 0;
}

/* Whether the file is compiled by itself, and is hardly a part of a function in another file. */
static int is_unit(const char *file)
{
    static const char *const endings[] = {".c", ".cc", ".cpp", ".cxx", ".C"};
    const char *ending = strrchr(file, '.');
    for (size_t i = 0; ending && i < sizeof endings / sizeof endings[0]; i++)
        if (strcmp(ending, endings[i]) == 0)
            return 1;
    return 0;
}

/* Whether `a`, which begins first, is of the same function as `b`: nothing else is between them, and they are
 * not of two units. The ranges between them, if any, have been compared with both. */
static int is_one_function(const struct range *a, const struct range *b, const struct profile_image *image,
                           const struct keyed *all, size_t nall)
{
    if (b->low <= a->high)
        return 1;
    return !(is_unit(a->source) && is_unit(b->source)) && !has_site(all, nall, image, a->high, b->low);
}

/*
 * Files can have static functions of the same name, with others between them that may have no site. The code
 * of one function with lines of several files, such as a generated parser's, is in one place.
 *
 * Example: sites of `walk` in a.c at 100 to 120 and in b.c at 300 to 310, and a site of `main` at 200, are of
 * two functions. Those of `parse` in gram.c at 400 and 900, and in gram.y at 500 to 800, are of one.
 */
static void tell_apart(struct keyed *sites, size_t n, const struct keyed *all, size_t nall)
{
    struct range ranges[MOST_RANGES];
    size_t found = find_ranges(sites, n, ranges), left = found;
    for (int again = found > 0; again;) {
        again = 0;
        for (size_t a = 0; a < found; a++)
            for (size_t b = 0; b < found; b++)
                if (a != b && ranges[a].into == a && ranges[b].into == b && ranges[a].low <= ranges[b].low &&
                    is_one_function(&ranges[a], &ranges[b], sites->image, all, nall)) {
                    ranges[a].high = ranges[b].high > ranges[a].high ? ranges[b].high : ranges[a].high;
                    ranges[b].into = a;
                    left--;
                    again = 1;
                }
    }
    for (size_t i = 0; i < n && left > 1; i++) {
        size_t at = 0;
        while (strcmp(ranges[at].source, sites[i].outer->file) != 0)
            at++;
        while (ranges[at].into != at)
            at = ranges[at].into;
        sites[i].source = ranges[at].source;
    }
}

/* sites[n] are sorted by `compare`. 0 or -ENOMEM. */
static int tell_all_apart(struct keyed *sites, size_t n)
{
    struct keyed *all = calloc(n + 1, sizeof *all);
    if (!all)
        return -ENOMEM;
    memcpy(all, sites, n * sizeof *all);
    qsort(all, n, sizeof *all, compare_places);
    for (size_t i = 0, end = 0; i < n; i = end) {
        for (end = i + 1; end < n && compare(&sites[i], &sites[end]) == 0;)
            end++;
        tell_apart(&sites[i], end - i, all, n);
    }
    free(all);
    qsort(sites, n, sizeof *sites, compare);
    return 0;
}

/* --- rows --- */

static struct analysis_hotspot row_of(const struct keyed *k)
{
    struct analysis_hotspot row = {.image = k->image, .offset = PROFILE_SITE_REST};
    if (k->by == ANALYSIS_BY_NOTHING)
        return (struct analysis_hotspot){.offset = PROFILE_SITE_REST};
    row.rest = k->by != ANALYSIS_BY_MODULE && k->offset == PROFILE_SITE_REST;
    if (k->by == ANALYSIS_BY_INSN)
        row.offset = k->offset;
    if (k->by != ANALYSIS_BY_MODULE)
        row.outer = k->outer;
    row.source = k->source;
    if (k->by == ANALYSIS_BY_LINE || k->by == ANALYSIS_BY_INSN)
        row.frame = k->frame;
    return row;
}

int analysis_groups_make(struct analysis_hotspots *h, const struct profile_site *sites, size_t nsites,
                         struct analysis_groups *groups, struct error *err)
{
    struct keyed *keyed = calloc(nsites + 1, sizeof *keyed);
    struct analysis_hotspot *rows = calloc(nsites + 1, sizeof *rows);
    size_t n = 0;
    *groups = (struct analysis_groups){0};
    for (size_t i = 0; i < nsites; i++)
        if (sites[i].id < MOST_SITES && sites[i].id > groups->most_site)
            groups->most_site = sites[i].id;
    groups->of_site = malloc((groups->most_site + 1) * sizeof *groups->of_site);
    if (!keyed || !groups->of_site || !rows) {
        free(keyed);
        free(rows);
        return error_set(err, -ENOMEM, "out of memory for the hotspots");
    }
    memset(groups->of_site, 0xff, (groups->most_site + 1) * sizeof *groups->of_site);
    for (size_t i = 0; i < nsites; i++) {
        struct keyed k = {.image = analysis_image_of(h, sites[i].image),
                          .frame = analysis_frame_of(h, sites[i].frame),
                          .outer = analysis_frame_of(h, sites[i].outer),
                          .offset = sites[i].offset,
                          .id = sites[i].id,
                          .by = h->by};
        if (k.image && k.id <= groups->most_site)
            keyed[n++] = k;
    }
    if (n > 0)
        qsort(keyed, n, sizeof *keyed, compare);
    if (n > 0 && h->by == ANALYSIS_BY_FUNCTION && tell_all_apart(keyed, n) < 0) {
        free(keyed);
        free(rows);
        return error_set(err, -ENOMEM, "out of memory for the hotspots");
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || compare(&keyed[i - 1], &keyed[i]) != 0)
            rows[groups->n++] = row_of(&keyed[i]);
        groups->of_site[keyed[i].id] = (uint32_t)groups->n - 1;
    }
    free(keyed);
    if (h->objects) {
        groups->groups = rows;
    } else {
        h->rows = rows;
        h->n = groups->n;
    }
    return 0;
}

void analysis_groups_clear(struct analysis_groups *groups)
{
    free(groups->of_site);
    free(groups->groups);
    free(groups->pairs);
    *groups = (struct analysis_groups){0};
}

uint32_t analysis_groups_of(const struct analysis_groups *groups, uint64_t site)
{
    return site <= groups->most_site ? groups->of_site[site] : ANALYSIS_NO_GROUP;
}

static struct analysis_pair *pair_at(struct analysis_pair *pairs, size_t capacity, uint32_t group,
                                     uint32_t object, uint32_t field)
{
    uint64_t hash = (((uint64_t)group << 32 | object) ^ (uint64_t)field << 20) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash ^ hash >> 32) & (capacity - 1);
    while (pairs[at].row != 0 &&
           (pairs[at].group != group || pairs[at].object != object || pairs[at].field != field))
        at = (at + 1) & (capacity - 1);
    return &pairs[at];
}

static int grow(struct analysis_hotspots *h, struct analysis_groups *groups)
{
    size_t capacity = groups->capacity ? 2 * groups->capacity : 1024;
    struct analysis_pair *pairs = calloc(capacity, sizeof *pairs);
    struct analysis_hotspot *rows = reallocarray(h->rows, capacity / 2, sizeof *rows);
    if (rows)
        h->rows = rows;
    if (!pairs || !rows) {
        free(pairs);
        return -ENOMEM;
    }
    for (size_t i = 0; i < groups->capacity; i++)
        if (groups->pairs[i].row != 0)
            *pair_at(pairs, capacity, groups->pairs[i].group, groups->pairs[i].object,
                     groups->pairs[i].field) = groups->pairs[i];
    free(groups->pairs);
    groups->pairs = pairs;
    groups->capacity = capacity;
    return 0;
}

int analysis_groups_copy(const struct analysis_groups *from, const struct analysis_hotspot *rows, size_t n,
                         struct analysis_hotspots *h, struct analysis_groups *groups)
{
    size_t most = from->capacity / 2 > n ? from->capacity / 2 : n; /* as `grow` makes it */
    struct analysis_pair *pairs = calloc(from->capacity + 1, sizeof *pairs);
    h->rows = calloc(most + 1, sizeof *h->rows);
    if (!pairs || !h->rows) {
        free(pairs);
        return -ENOMEM;
    }
    if (n > 0)
        memcpy(h->rows, rows, n * sizeof *rows);
    if (from->capacity > 0)
        memcpy(pairs, from->pairs, from->capacity * sizeof *pairs);
    h->n = n;
    *groups = *from;
    groups->pairs = pairs;
    return 0;
}

int analysis_groups_add(struct analysis_hotspots *h, struct analysis_groups *groups, uint32_t site,
                        uint32_t object)
{
    uint32_t group = analysis_groups_of(groups, site);
    if (group == ANALYSIS_NO_GROUP)
        return 0;
    const struct profile_object *known = analysis_object_of(h, object);
    if (2 * (groups->npairs + 1) > groups->capacity && grow(h, groups) < 0)
        return -ENOMEM;
    uint32_t field = analysis_fields_of(groups->fields, site, object);
    struct analysis_pair *pair = pair_at(groups->pairs, groups->capacity, group, id_of(known), field);
    if (pair->row != 0)
        return 0;
    *pair = (struct analysis_pair){group, id_of(known), field, (uint32_t)++groups->npairs};
    struct analysis_hotspot *row = &h->rows[h->n++];
    *row = groups->groups[group];
    row->object = known;
    row->field = analysis_fields_get(groups->fields, field);
    return 0;
}

uint32_t analysis_groups_row(const struct analysis_hotspots *h, const struct analysis_groups *groups,
                             uint32_t site, uint32_t object)
{
    uint32_t group = analysis_groups_of(groups, site);
    if (!h->objects || group == ANALYSIS_NO_GROUP)
        return group;
    if (groups->capacity == 0)
        return ANALYSIS_NO_GROUP;
    const struct analysis_pair *pair =
        pair_at(groups->pairs, groups->capacity, group, id_of(analysis_object_of(h, object)),
                analysis_fields_of(groups->fields, site, object));
    return pair->row != 0 ? pair->row - 1 : ANALYSIS_NO_GROUP;
}
