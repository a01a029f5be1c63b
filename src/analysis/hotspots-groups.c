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
    uint64_t offset, id;
    enum analysis_by by;
};

static int compare_ids(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int order = x->by != ANALYSIS_BY_NOTHING ? compare_ids(x->image->id, y->image->id) : 0;
    int x_rest = x->offset == PROFILE_SITE_REST, y_rest = y->offset == PROFILE_SITE_REST;
    if (order == 0 && x->by != ANALYSIS_BY_MODULE && x->by != ANALYSIS_BY_NOTHING)
        order = x_rest - y_rest;
    if (order == 0 && x->by == ANALYSIS_BY_FUNCTION)
        order = strcmp(x->outer ? x->outer->function : "", y->outer ? y->outer->function : "");
    if (order == 0 && x->by == ANALYSIS_BY_LINE)
        order = compare_ids(x->frame ? x->frame->id : 0, y->frame ? y->frame->id : 0);
    if (order == 0 && x->by == ANALYSIS_BY_INSN)
        order = compare_ids(x->offset, y->offset);
    return order;
}

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
