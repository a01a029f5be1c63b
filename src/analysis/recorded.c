/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/recorded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "analysis/hotspots-fields.h"
#include "analysis/hotspots-objects.h"
#include "profile/site-counts.h"

#define MOST_COUNT ((UINT64_C(1) << 55) - 1)

/* --- counts --- */

struct reading {
    struct profile *p;
    struct analysis_recorded *r;
    struct site_map *map;
    size_t counts_capacity, list_capacity;
    uint64_t process; /* of the current row */
};

static int add(struct reading *in, const uint32_t *sites, uint32_t n, uint32_t object, uint32_t what,
               uint64_t count)
{
    struct analysis_recorded *r = in->r;
    if (count > MOST_COUNT)
        return -EINVAL;
    if (ARRAY_GROW_BY(r->list, r->nlist, n, in->list_capacity) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        r->list[r->nlist++] = (struct recorded_count){
            .site = sites[i], .object = object, .what = what & 0x1ff, .count = count & MOST_COUNT};
    return 0;
}

static int take_block(void *ctx, uint32_t block, uint64_t executions)
{
    struct reading *in = ctx;
    const uint32_t *sites;
    uint32_t n = site_map_block(in->map, in->process, block, &sites);
    return n > 0 ? add(in, sites, n, 0, SITE_COUNT_MORE, executions) : 0;
}

static int take_entry(void *ctx, uint32_t block, uint32_t reference, uint32_t what, uint32_t object,
                      uint64_t count)
{
    struct reading *in = ctx;
    const uint32_t *sites;
    if (reference >= site_map_block(in->map, in->process, block, &sites))
        return 0;
    return add(in, sites + reference, 1, object, what, count);
}

static int take_row(void *ctx, uint64_t burst, uint64_t process, const uint8_t *bytes, size_t size,
                    struct error *err)
{
    struct reading *in = ctx;
    struct analysis_recorded *r = in->r;
    const struct site_counts_reader reader = {take_block, take_entry, in};
    struct recorded_counts counts = {burst, process, r->nlist, 0};
    in->process = process;
    int code = site_counts_read(bytes, size, &reader);
    if (code == 0 && ARRAY_GROW(r->counts, r->ncounts, in->counts_capacity) < 0)
        code = -ENOMEM;
    if (code == -ENOMEM)
        return error_set(err, code, "out of memory for the hotspots");
    if (code < 0)
        return profile_damaged(in->p, err, "counts of sites");
    counts.n = r->nlist - counts.first;
    r->counts[r->ncounts++] = counts;
    return 0;
}

static int load_counts(struct analysis_recorded *r, struct profile *p, struct error *err)
{
    struct reading in = {.p = p, .r = r, .map = site_map_load(p, err)};
    int code = in.map ? profile_each_site_counts(p, take_row, &in, err) : -EBADMSG;
    site_map_free(in.map);
    return code;
}

/* --- all of it --- */

static void free_recorded(struct analysis_recorded *r)
{
    profile_images_free(r->images, r->nimages);
    profile_frames_free(r->frames, r->nframes);
    profile_objects_free(r->data, r->ndata);
    profile_fields_free(r->parts, r->nparts);
    for (size_t i = 0; i < r->nrows; i++) {
        r->rows[i]->groups.fields = NULL; /* those of r */
        analysis_recorded_rows_free(r->rows[i]);
    }
    analysis_fields_free(r->fields);
    for (size_t i = 0; i < r->nweights; i++)
        analysis_weights_free(r->weights[i]);
    analysis_sample_free(r->sample[0]);
    analysis_sample_free(r->sample[1]);
    free(r->name);
    free(r->sites);
    free(r->counts);
    free(r->list);
    free(r->uses);
    free(r->strides);
    free(r->fetch_strides);
    free(r->conflicts);
    free(r->paths);
    free(r->site_paths);
    free(r->wrappers);
    free(r->same);
    free(r->allocations);
    free(r->rows);
    free(r->weights);
    free(r);
}

void analysis_recorded_release(struct analysis_recorded *r)
{
    if (r && --r->users == 0)
        free_recorded(r);
}

static void release(void *kept)
{
    analysis_recorded_release(kept);
}

static int load(struct analysis_recorded *r, struct profile *p, struct error *err)
{
    int code = profile_images(p, &r->images, &r->nimages, err);
    if (code == 0)
        code = profile_frames(p, &r->frames, &r->nframes, err);
    if (code == 0)
        code = profile_sites(p, &r->sites, &r->nsites, err);
    if (code == 0)
        code = profile_line_uses(p, &r->uses, &r->nuses, err);
    if (code == 0)
        code = profile_strides(p, &r->strides, &r->nstrides, err);
    if (code == 0)
        code = profile_fetch_strides(p, &r->fetch_strides, &r->nfetch_strides, err);
    if (code == 0)
        code = profile_conflicts(p, &r->conflicts, &r->nconflicts, err);
    return code == 0 ? load_counts(r, p, err) : code;
}

static int is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

int analysis_recorded_get(struct profile *p, const char *name, const char *wrappers,
                          struct analysis_recorded **result, struct error *err)
{
    struct analysis_recorded *r = profile_kept(p);
    if (!r || !is_same_text(r->wrappers, wrappers)) {
        if (!(r = calloc(1, sizeof *r)))
            return error_set(err, -ENOMEM, "out of memory for the hotspots");
        r->name = strdup(name);
        r->wrappers = wrappers ? strdup(wrappers) : NULL;
        int code = r->name && (r->wrappers || !wrappers)
                       ? load(r, p, err)
                       : error_set(err, -ENOMEM, "out of memory for the hotspots");
        if (code != 0) {
            free_recorded(r);
            return code;
        }
        r->users = 1;
        profile_set_kept(p, r, release);
    }
    r->users++;
    *result = r;
    return 0;
}

static int load_objects(struct analysis_recorded *r, struct profile *p, const struct analysis_hotspots *h,
                        struct error *err)
{
    struct analysis_hotspots table = {.images = h->images, .frames = h->frames, .nframes = h->nframes};
    int code = analysis_objects_load(p, &table, r->wrappers, err);
    if (code != 0) {
        profile_objects_free(table.data, table.ndata);
        free(table.same);
        free(table.allocations);
        return code;
    }
    r->data = table.data;
    r->ndata = table.ndata;
    r->same = table.same;
    r->allocations = table.allocations;
    r->own_malloc = table.own_malloc;
    r->has_objects = 1;
    return 0;
}

static int load_fields(struct analysis_recorded *r, struct profile *p, const struct analysis_hotspots *h,
                       struct error *err)
{
    struct analysis_hotspots table = {.data = h->data, .ndata = h->ndata, .same = h->same};
    if (!(r->fields = analysis_fields_load(p, &table, err))) {
        profile_fields_free(table.parts, table.nparts);
        return -EINVAL;
    }
    r->parts = table.parts;
    r->nparts = table.nparts;
    return 0;
}

int analysis_recorded_lend(struct analysis_recorded *r, struct profile *p, struct analysis_hotspots *h,
                           struct error *err)
{
    int code = 0;
    h->images = r->images;
    h->nimages = r->nimages;
    h->frames = r->frames;
    h->nframes = r->nframes;
    if (h->objects && !r->has_objects)
        code = load_objects(r, p, h, err);
    if (code == 0 && h->objects) {
        h->data = r->data;
        h->ndata = r->ndata;
        h->same = r->same;
        h->allocations = r->allocations;
        h->own_malloc = r->own_malloc;
    }
    if (code == 0 && h->fields && !r->fields)
        code = load_fields(r, p, h, err);
    if (code == 0 && h->fields) {
        h->parts = r->parts;
        h->nparts = r->nparts;
    }
    return code;
}

int analysis_recorded_paths(struct analysis_recorded *r, struct profile *p, struct error *err)
{
    int code = 0;
    if (r->has_paths)
        return 0;
    free(r->paths); /* those of an attempt that failed */
    if ((code = profile_paths(p, &r->paths, &r->npaths, err)) == 0)
        code = profile_site_paths(p, &r->site_paths, &r->nsite_paths, err);
    r->has_paths = code == 0;
    return code;
}

int analysis_recorded_weights(struct analysis_recorded *r, struct profile *p,
                              const struct analysis_hotspots *h, const struct analysis_selection *selection,
                              const struct analysis_weights **weights, struct error *err)
{
    /* Those of a part of the processes or threads are not looked up: nobody asks for them twice. */
    for (size_t i = 0; i < r->nweights && analysis_selection_is_all(selection); i++)
        if (!r->weights[i]->of_a_part && r->weights[i]->size_bytes == h->size_bytes &&
            r->weights[i]->phase == h->phase && r->weights[i]->separate == h->separate) {
            *weights = r->weights[i];
            return 0;
        }
    struct analysis_sample **sample = &r->sample[h->separate != 0];
    int code = *sample ? 0 : analysis_sample_load(p, r->name, h->line_bytes, h->separate, sample, err);
    if (code != 0)
        return code;
    struct analysis_weights **grown =
                                reallocarray(r->weights, r->nweights + 1, sizeof(struct analysis_weights *)),
                            *w = calloc(1, sizeof *w);
    if (grown)
        r->weights = grown;
    if (!grown || !w) {
        free(w);
        return error_set(err, -ENOMEM, "out of memory for the hotspots");
    }
    w->phase = h->phase;
    w->size_bytes = h->size_bytes;
    w->separate = h->separate;
    w->of_a_part = !analysis_selection_is_all(selection);
    if ((code = analysis_burst_weights(p, *sample, selection, w, err)) != 0) {
        analysis_weights_free(w);
        return code;
    }
    *weights = r->weights[r->nweights++] = w;
    return 0;
}
