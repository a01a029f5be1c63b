/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/hotspots-groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ids are consecutive from 1 on (symbols/name.c); in a corrupt profile they may be anything. */
#define MOST_SITES (UINT64_C(1) << 26)

static const struct profile_image *image_of(const struct analysis_hotspots *h, uint64_t id)
{
    return id >= 1 && id <= h->nimages && h->images[id - 1].id == id ? &h->images[id - 1] : NULL;
}

static const struct profile_frame *frame_of(const struct analysis_hotspots *h, uint64_t id)
{
    return id >= 1 && id <= h->nframes && h->frames[id - 1].id == id ? &h->frames[id - 1] : NULL;
}

const struct profile_frame *analysis_caller(const struct analysis_hotspots *h,
                                            const struct profile_frame *frame)
{
    /* Callers have smaller ids: corrupt profiles cannot cause endless chains. */
    return frame->caller < frame->id ? frame_of(h, frame->caller) : NULL;
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
    int order = compare_ids(x->image->id, y->image->id);
    int x_rest = x->offset == PROFILE_SITE_REST, y_rest = y->offset == PROFILE_SITE_REST;
    if (order == 0 && x->by != ANALYSIS_BY_MODULE)
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
    size_t n = 0;
    *groups = (struct analysis_groups){0};
    for (size_t i = 0; i < nsites; i++)
        if (sites[i].id < MOST_SITES && sites[i].id > groups->most_site)
            groups->most_site = sites[i].id;
    groups->of_site = malloc((groups->most_site + 1) * sizeof *groups->of_site);
    h->rows = calloc(nsites + 1, sizeof *h->rows);
    if (!keyed || !groups->of_site || !h->rows) {
        free(keyed);
        free(groups->of_site);
        groups->of_site = NULL;
        return error_set(err, -ENOMEM, "out of memory for the hotspots");
    }
    memset(groups->of_site, 0xff, (groups->most_site + 1) * sizeof *groups->of_site);
    for (size_t i = 0; i < nsites; i++) {
        struct keyed k = {.image = image_of(h, sites[i].image),
                          .frame = frame_of(h, sites[i].frame),
                          .outer = frame_of(h, sites[i].outer),
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
            h->rows[groups->n++] = row_of(&keyed[i]);
        groups->of_site[keyed[i].id] = (uint32_t)groups->n - 1;
    }
    h->n = groups->n;
    free(keyed);
    return 0;
}
