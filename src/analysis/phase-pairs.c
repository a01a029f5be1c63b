/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phase-pairs.c - which phase of one run is which of another one.
 *
 * A phase has code: the shares of its references that functions make, in its bursts. A function is known by
 * its name and that of its file. As in difference.c, a file that only one run has is assumed to be one that
 * was renamed.
 *
 * Two phases are alike by the sum over all functions of the smaller share. They can be a pair if that is at
 * least LEAST_ALIKE. The same code on different data has several candidates, so data decides between them: of
 * all candidates, the ones with the smallest distance are a pair first; it is 1 - alike, plus the mean
 * absolute difference of their miss ratios. What changed may be the miss ratio of a phase, so that alone
 * excludes nothing.
 *
 * Example: before, phases 1 and 2 execute f, and miss in 0% and 90%; phase 3 executes g. After, phase 1
 * executes f and misses in 50%, phase 2 executes 80% f and 20% g, and misses in 1%. Distances: 1-1 0.5, 1-2
 * 0.21, 2-1 0.4, 2-2 1.09; 3-2 is alike by only 0.2. So the pairs are 1-2 and 2-1, and 3 has no counterpart.
 */
#include "analysis/difference-phases.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"
#include "analysis/hotspots.h"
#include "analysis/timeline.h"

/* Half of the references: a phase of which more has changed is another one. */
#define LEAST_ALIKE 0.5
/* The miss ratios that are compared: of caches of 1 KB, 2 KB, ... 2 MB, as where phases are found. */
#define DATA_SIZES 12u
/* Any size: references do not depend on it. */
#define SIZE_BYTES 0x1p20

struct part {
    char *key; /* of a function */
    double share;
};

/* What a phase is recognised by. */
struct traits {
    struct part *parts; /* of its code, by key, each once */
    size_t nparts;
    double data[DATA_SIZES]; /* NaN: not known */
};

struct candidate {
    size_t before, after; /* rows */
    double alike, distance;
};

/* --- code --- */

/* Nonzero if one of the images has that file name. */
static int has_image(const struct profile_image *images, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(base_name(images[i].path), name) == 0)
            return 1;
    return 0;
}

/* Text that is the same for the same function in both profiles; images: of the other one. */
static char *key_of(const struct analysis_hotspot *row, const struct profile_image *images, size_t n)
{
    const char *file = base_name(row->image->path), *function = row->outer ? row->outer->function : "";
    char *key;
    int length =
        asprintf(&key, "%s%c%s", has_image(images, n, file) ? file : "", row->rest ? '*' : '/', function);
    return length < 0 ? NULL : key;
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static void sum_parts(struct traits *t)
{
    size_t used = 0;
    if (t->nparts > 0)
        qsort(t->parts, t->nparts, sizeof *t->parts, compare_parts);
    for (size_t i = 0; i < t->nparts; i++) {
        if (used > 0 && strcmp(t->parts[used - 1].key, t->parts[i].key) == 0) {
            t->parts[used - 1].share += t->parts[i].share;
            free(t->parts[i].key);
        } else {
            t->parts[used++] = t->parts[i];
        }
    }
    t->nparts = used;
}

/* A phase without bursts has no parts. images: of the other profile. */
static int read_parts(struct profile *p, const char *name, uint32_t phase, const struct profile_image *images,
                      size_t nimages, struct traits *t, struct error *err)
{
    const struct analysis_hotspots_question question = {
        .size_bytes = SIZE_BYTES, .by = ANALYSIS_BY_FUNCTION, .phase = phase};
    struct analysis_hotspots h;
    int code = analysis_hotspots(p, name, &question, &h, err);
    if (code != 0)
        return code == -ENODATA ? 0 : code;
    if (!(t->parts = calloc(h.n + 1, sizeof *t->parts)))
        code = -ENOMEM;
    for (size_t i = 0; i < h.n && code == 0; i++) {
        if (!(t->parts[i].key = key_of(&h.rows[i], images, nimages)))
            code = -ENOMEM;
        else
            t->parts[t->nparts++].share = h.rows[i].shares.references_share;
    }
    sum_parts(t);
    analysis_hotspots_clear(&h);
    return code == 0 ? 0 : error_set(err, code, "out of memory pairing phases");
}

static double alike(const struct traits *a, const struct traits *b)
{
    double sum = 0;
    for (size_t i = 0, k = 0; i < a->nparts && k < b->nparts;) {
        int order = strcmp(a->parts[i].key, b->parts[k].key);
        if (order == 0)
            sum += fmin(a->parts[i].share, b->parts[k].share);
        i += order <= 0;
        k += order >= 0;
    }
    return sum;
}

/* --- data --- */

static int read_data(struct profile *p, const char *name, const struct analysis_phase_rows *rows,
                     struct traits *traits, struct error *err)
{
    struct analysis_timeline timeline = {.profile = name};
    struct curve_point points[DATA_SIZES] = {{0}};
    for (unsigned k = 0; k < DATA_SIZES; k++)
        points[k].size_bytes = (double)(1024u << k);
    int code = analysis_timeline_compute(p, points, DATA_SIZES, &timeline, err);
    for (size_t i = 0; i < rows->n && code == 0; i++)
        for (size_t n = 0; n < timeline.nphases; n++)
            if (timeline.phases[n].phase == rows->list[i].phase)
                memcpy(traits[i].data, &timeline.of_phase[n * DATA_SIZES], sizeof traits[i].data);
    analysis_timeline_clear(&timeline);
    return code;
}

static double data_distance(const struct traits *a, const struct traits *b)
{
    double sum = 0;
    unsigned n = 0;
    for (unsigned k = 0; k < DATA_SIZES; k++)
        if (!isnan(a->data[k]) && !isnan(b->data[k])) {
            sum += fabs(a->data[k] - b->data[k]);
            n++;
        }
    return n > 0 ? sum / n : 0;
}

/* --- all of it --- */

static void free_traits(struct traits *traits, size_t n)
{
    for (size_t i = 0; traits && i < n; i++) {
        for (size_t k = 0; k < traits[i].nparts; k++)
            free(traits[i].parts[k].key);
        free(traits[i].parts);
    }
    free(traits);
}

static int read_traits(struct profile *p, const char *name, const struct profile_image *images,
                       size_t nimages, struct analysis_phase_rows *rows, struct traits **traits,
                       struct error *err)
{
    if (!(*traits = calloc(rows->n + 1, sizeof **traits)))
        return error_set(err, -ENOMEM, "out of memory pairing phases");
    int code = read_data(p, name, rows, *traits, err);
    for (size_t i = 0; i < rows->n && code == 0; i++) {
        code = read_parts(p, name, rows->list[i].phase, images, nimages, &(*traits)[i], err);
        rows->list[i].code_known = (*traits)[i].nparts > 0;
    }
    return code;
}

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return x->before != y->before ? (x->before < y->before ? -1 : 1) : x->after < y->after ? -1 : 1;
}

/* Those that are alike enough, the nearest ones first. Their number. */
static size_t find_candidates(struct traits *const traits[2], size_t nbefore, size_t nafter,
                              struct candidate *candidates)
{
    size_t n = 0;
    for (size_t i = 0; i < nbefore; i++)
        for (size_t k = 0; k < nafter; k++) {
            const struct traits *a = &traits[0][i], *b = &traits[1][k];
            double same = alike(a, b);
            if (same >= LEAST_ALIKE)
                candidates[n++] = (struct candidate){i, k, same, 1 - same + data_distance(a, b)};
        }
    if (n > 0)
        qsort(candidates, n, sizeof *candidates, compare_candidates);
    return n;
}

static int add(struct analysis_phase_difference *d, const struct analysis_phase_row *before,
               const struct analysis_phase_row *after, double same, size_t npoints)
{
    struct analysis_phase_pair *pair = &d->pairs[d->npairs++];
    *pair = (struct analysis_phase_pair){before, after, same, NULL};
    if (!before || !after)
        return 0;
    if (!(pair->changes = calloc(npoints + 1, sizeof *pair->changes)))
        return -ENOMEM;
    for (size_t k = 0; k < npoints; k++)
        pair->changes[k] = analysis_change_of(&before->points[k], &after->points[k]);
    return 0;
}

/* chosen: of each phase before its candidate, or NULL; taken: of each phase after, whether it has one. */
static int fill(struct analysis_phase_difference *d, const struct candidate *const *chosen, const char *taken,
                size_t npoints)
{
    int code = 0;
    for (size_t i = 0; i < d->rows[0].n && code == 0; i++)
        if (chosen[i])
            code = add(d, &d->rows[0].list[i], &d->rows[1].list[chosen[i]->after], chosen[i]->alike, npoints);
    for (size_t i = 0; i < d->rows[0].n && code == 0; i++)
        if (!chosen[i])
            code = add(d, &d->rows[0].list[i], NULL, NAN, npoints);
    for (size_t k = 0; k < d->rows[1].n && code == 0; k++)
        if (!taken[k])
            code = add(d, NULL, &d->rows[1].list[k], NAN, npoints);
    return code;
}

static int choose(struct traits *const traits[2], struct analysis_phase_difference *d, size_t npoints)
{
    struct candidate *candidates = calloc(d->rows[0].n * d->rows[1].n + 1, sizeof *candidates);
    const struct candidate **chosen = calloc(d->rows[0].n + 1, sizeof(struct candidate *));
    char *taken = calloc(d->rows[1].n + 1, 1);
    int code = -ENOMEM;
    d->pairs = calloc(d->rows[0].n + d->rows[1].n + 1, sizeof *d->pairs);
    if (candidates && chosen && taken && d->pairs) {
        size_t n = find_candidates(traits, d->rows[0].n, d->rows[1].n, candidates);
        for (size_t i = 0; i < n; i++)
            if (!chosen[candidates[i].before] && !taken[candidates[i].after]) {
                chosen[candidates[i].before] = &candidates[i];
                taken[candidates[i].after] = 1;
            }
        code = fill(d, chosen, taken, npoints);
    }
    free(candidates);
    free(chosen);
    free(taken);
    return code;
}

int analysis_phase_pairs(struct profile *const profiles[2], const char *const names[2], size_t npoints,
                         struct analysis_phase_difference *d, struct error *err)
{
    struct traits *traits[2] = {NULL, NULL};
    struct profile_image *images[2] = {NULL, NULL};
    size_t nimages[2] = {0, 0};
    int code = 0;
    for (int side = 0; side < 2 && code == 0; side++)
        code = profile_images(profiles[side], &images[side], &nimages[side], err);
    for (int side = 0; side < 2 && code == 0; side++)
        code = read_traits(profiles[side], names[side], images[!side], nimages[!side], &d->rows[side],
                           &traits[side], err);
    if (code == 0 && choose(traits, d, npoints) < 0)
        code = error_set(err, -ENOMEM, "out of memory pairing phases");
    for (int side = 0; side < 2; side++) {
        free_traits(traits[side], d->rows[side].n);
        profile_images_free(images[side], nimages[side]);
    }
    return code;
}
