/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/name.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/octaves.h"
#include "profile/site-counts.h"
#include "profile/sites.h"
#include "symbols/demangle.h"
#include "symbols/fields.h"
#include "symbols/jit-map.h"
#include "symbols/naming.h"
#include "symbols/pointees.h"
#include "symbols/receivers.h"

/* Share of the references, and of those at large distances, whose sites share one row. */
#define REST_SHARE 0.001
/* Rows of site_distance and site_object together, about; a full-mode profile of g++ has two million counts.
 */
#define MOST_COUNTS 262144u

/* Notes touches at a distance, by weight. Where every reference was recorded, a first touch is the first one
 * of all. */
static int note_missed(struct naming *n, uint32_t row, uint32_t object, uint32_t what, uint64_t count)
{
    if (!n->exact)
        return tally_add(&n->misses, row, object, what, (uint64_t)llround(n->weight * (double)count));
    if (what < SITE_COUNT_FIRST && octaves_edge(what - SITE_COUNT_STACK) < SYMBOLS_USE_LINES)
        return 0;
    return tally_add(&n->misses, row, object, NAMING_MISSED, count);
}

/* What is counted of a site: in the first pass by site of the code, in the second by row. 0 or -ENOMEM. */
static int count(struct naming *n, uint32_t site, uint32_t what, uint32_t object, uint64_t count)
{
    int touches = what == SITE_COUNT_MORE || what == SITE_COUNT_EXECUTIONS;
    if (site >= n->code->nsites)
        return 0;
    what = site_count_together(what);
    if (!n->second) {
        double estimate = n->weight * (double)count;
        n->references[site] += touches ? estimate : 0;
        n->far[site] += touches || what == SITE_COUNT_OBJECT || what >= SITE_COUNT_TAIL_ENTRY ? 0 : estimate;
        return 0;
    }
    uint32_t row = n->ids[site], known = object <= n->code->nobjects ? object : 0;
    /* no touches of a burst, or counted otherwise, too */
    if (what >= SITE_COUNT_TAIL_ENTRY && what != SITE_COUNT_EXECUTIONS) {
        n->object_used[known] = 1;
        return 0;
    }
    int first = what >= SITE_COUNT_FIRST && what < SITE_COUNT_OBJECT;
    n->row_references[row] += touches ? count : 0;
    n->row_firsts[row] += first ? count : 0;
    n->object_used[known] = 1;
    n->object_references[known] += what == SITE_COUNT_OBJECT ? count : 0;
    n->object_firsts[known] += first ? count : 0;
    if (touches)
        return 0;
    if (what != SITE_COUNT_OBJECT && note_missed(n, row, known, what, count) < 0)
        return -ENOMEM;
    return tally_add(&n->counts, row, known, what, count);
}

static int take_block(void *ctx, uint32_t block, uint64_t executions)
{
    struct naming *n = ctx;
    const uint32_t *sites;
    uint32_t nsites = site_map_block(n->map, n->process, block, &sites);
    for (uint32_t i = 0; i < nsites && executions > 0; i++)
        (void)count(n, sites[i], SITE_COUNT_EXECUTIONS, 0, executions); /* needs no memory */
    return 0;
}

static int take_entry(void *ctx, uint32_t block, uint32_t reference, uint32_t what, uint32_t object,
                      uint64_t times)
{
    struct naming *n = ctx;
    const uint32_t *sites;
    if (reference >= site_map_block(n->map, n->process, block, &sites))
        return 0;
    return count(n, sites[reference], what, object, times);
}

static int take_row(void *ctx, uint64_t burst, uint64_t process, const uint8_t *bytes, size_t size,
                    struct error *err)
{
    struct naming *n = ctx;
    const struct site_counts_reader reader = {take_block, take_entry, n};
    n->process = process;
    n->exact = burst == 0;
    n->weight = burst < n->nweights ? n->weights[burst] : 1;
    int code = site_counts_read(bytes, size, &reader);
    if (code == -ENOMEM)
        return error_set(err, code, "out of memory for the counts of sites");
    return code < 0 ? error_set(err, code, "counts of sites are not valid") : 0;
}

/*
 * A burst's references represent all those of its stratum; those of full mode (burst 0) only themselves.
 * Where the rate is not known, about one reference in a nanosecond is assumed.
 */
static int find_weights(struct naming *n)
{
    struct profile_burst *bursts;
    size_t nbursts;
    int code = profile_bursts(n->profile, &bursts, &nbursts, n->err);
    if (code < 0)
        return code;
    n->nweights = nbursts > 0 ? bursts[nbursts - 1].id + 1 : 0; /* numbers from 1, by us */
    if ((n->weights = calloc(n->nweights + 1, sizeof *n->weights)) == NULL)
        code = error_set(n->err, -ENOMEM, "out of memory for the bursts of a run");
    for (uint64_t i = 0; i < n->nweights && code == 0; i++)
        n->weights[i] = 1;
    for (size_t i = 0; i < nbursts && code == 0; i++) {
        double rate = bursts[i].refs_per_ns > 0 ? bursts[i].refs_per_ns : 1;
        double stratum = isnan(bursts[i].gap_ns) ? bursts[i].weight : bursts[i].gap_ns * rate;
        if (bursts[i].references > 0)
            n->weights[bursts[i].id] = fmax(stratum / (double)bursts[i].references, 1);
    }
    free(bursts);
    return code;
}

static int compare(const void *a, const void *b, void *values)
{
    const double *by = values;
    double x = by[*(const uint64_t *)a], y = by[*(const uint64_t *)b];
    return x != y ? (x < y ? 1 : -1) : (*(const uint64_t *)a > *(const uint64_t *)b ? 1 : -1);
}

/* Marks (ids[i] = 1) the sites that make up all but REST_SHARE of values[]. */
static void keep_most(struct naming *n, double *values)
{
    double total = 0, sum = 0;
    size_t nsites = n->code->nsites;
    for (size_t i = 0; i < nsites; i++) {
        n->order[i] = i;
        total += values[i];
    }
    if (nsites > 0)
        qsort_r(n->order, nsites, sizeof *n->order, compare, values);
    for (size_t i = 0; i < nsites && values[n->order[i]] > 0 && sum <= (1 - REST_SHARE) * total; i++) {
        n->ids[n->order[i]] = 1;
        sum += values[n->order[i]];
    }
}

/* Decides which sites have rows of their own, and numbers all rows. */
static int number_rows(struct naming *n)
{
    size_t nsites = n->code->nsites, nimages = n->code->nimages;
    uint32_t *rest = calloc(nimages + 1, sizeof *rest);
    n->image = calloc(nsites + nimages + 1, sizeof *n->image);
    n->offset = calloc(nsites + nimages + 1, sizeof *n->offset);
    n->made = calloc(nsites + nimages + 1, sizeof *n->made);
    if (rest == NULL || n->image == NULL || n->offset == NULL || n->made == NULL) {
        free(rest);
        return -ENOMEM;
    }
    /* Sites that touched watched lines again: few, and each represents many misses. */
    for (size_t i = 0; i < n->nhits; i++)
        if (n->hits[i].site < nsites)
            n->ids[n->hits[i].site] = 1;
    keep_most(n, n->far);
    keep_most(n, n->references); /* leaves the order: those with most references get the smallest numbers */
    for (size_t i = 0; i < nsites; i++) {
        uint64_t site = n->order[i];
        uint32_t image = n->code->sites[site].image;
        if (n->ids[site] != 0) {
            n->ids[site] = ++n->nrows;
            n->offset[n->nrows] = n->code->sites[site].offset;
            n->made[n->nrows] = n->code->sites[site].made;
        } else if (n->references[site] > 0 || n->far[site] > 0) {
            if (rest[image] == 0) {
                rest[image] = ++n->nrows;
                n->offset[n->nrows] = PROFILE_SITE_REST;
            }
            n->ids[site] = rest[image];
        }
        n->image[n->nrows] = n->ids[site] == n->nrows ? image : n->image[n->nrows];
    }
    free(rest);
    n->row_references = calloc((size_t)n->nrows + 1, sizeof *n->row_references);
    n->row_firsts = calloc((size_t)n->nrows + 1, sizeof *n->row_firsts);
    return n->row_references != NULL && n->row_firsts != NULL ? 0 : -ENOMEM;
}

static int store_site(struct naming *n, struct symbols_image *image, uint32_t row)
{
    struct profile_site site = {.id = row,
                                .image = (uint64_t)n->image[row] + 1,
                                .offset = n->offset[row],
                                .references = n->row_references[row],
                                .firsts = n->row_firsts[row]};
    int code = 0;
    if (site.offset != PROFILE_SITE_REST)
        code = naming_place(n, image, n->made[row], site.offset, NAMING_LINES, &site.frame, &site.outer);
    return code == 0 ? profile_add_site(n->profile, &site, n->err) : code;
}

/* How far touches were, and of which objects. */
static int store_counts(struct naming *n)
{
    int code = 0;
    tally_sort(&n->counts);
    tally_thin(&n->counts, MOST_COUNTS);
    for (size_t i = 0; i < n->counts.n && code == 0; i++) {
        const struct tally_entry *e = &n->counts.entries[i];
        if (e->what == SITE_COUNT_OBJECT)
            code = profile_add_site_object(n->profile, e->row, e->object, e->count, n->err);
        else if (e->what >= SITE_COUNT_FIRST)
            code = profile_add_site_distance(n->profile, e->row, e->object, "first",
                                             octaves_edge(e->what - SITE_COUNT_FIRST), e->count, n->err);
        else
            code = profile_add_site_distance(n->profile, e->row, e->object, "stack",
                                             octaves_edge(e->what - SITE_COUNT_STACK), e->count, n->err);
    }
    return code;
}

/* Stores the call path in a block's name, whose form code.h describes. */
static int store_path(struct naming *n, const struct profile_object *object)
{
    const char *at = object->name;
    int code = 0;
    for (uint32_t depth = 0; *at != '\0' && code == 0; depth++) {
        char *end;
        uint64_t outer;
        size_t file = strtoull(at, &end, 16);
        struct profile_object_frame frame = {.object = object->id, .depth = depth};
        if (*end++ != '+')
            break;
        frame.offset = strtoull(end, &end, 16);
        frame.module = (char *)(file < n->code->nfiles ? n->code->files[file] : "");
        code = naming_place(n, symbols_files_image(&n->files, frame.module), 0, frame.offset, NAMING_COLUMNS,
                            &frame.frame, &outer);
        if (code == 0)
            code = profile_add_object_frame(n->profile, &frame, n->err);
        at = end + (*end == ' ');
    }
    return code;
}

/* Whether the function at an offset is one of the standard libraries of C++ or Rust, which may have no debug
 * information. */
static int is_of_library(struct symbols_image *image, uint64_t offset)
{
    struct symbols_frame frames[SYMBOLS_MOST_FRAMES];
    unsigned n = image != NULL ? symbols_image_frames(image, offset, 0, frames) : 0;
    return n > 0 && frames[n - 1].function != NULL && symbols_is_of_standard_library(frames[n - 1].function);
}

/* "variable@depth", malloc'ed: the variable that gets a block's address, in the function at that depth of its
 * path. That is the innermost one which does not return a void *, or stores the address; or of a method of a
 * container, the variable for which it was called, perhaps by other functions of the library. NULL: none is
 * known. */
static char *name_receiver(struct naming *n, const struct profile_object *object)
{
    const char *at = object->name;
    int called_library = 0;
    for (unsigned depth = 0; *at != '\0'; depth++) {
        char *end, *name = NULL;
        struct symbols_receiver receiver;
        size_t file = strtoull(at, &end, 16);
        if (*end != '+' || file >= n->code->nfiles)
            return NULL;
        const char *path = n->code->files[file];
        uint64_t offset = strtoull(end + 1, &end, 16), address;
        struct symbols_image *image = symbols_files_image(&n->files, path);
        const struct scopes *scopes = image != NULL ? symbols_image_scopes(image, offset, &address) : NULL;
        int in_library = is_of_library(image, offset),
            returns = scopes != NULL && symbols_pointees_returns_memory(scopes, address), found = -1;
        if (scopes != NULL && !called_library)
            found = symbols_receiver(&n->files, path, offset + 1, returns, &receiver);
        else if (scopes != NULL && !in_library)
            found = symbols_receiver_object(&n->files, path, offset + 1, &receiver);
        if (found == 0) {
            int length = asprintf(&name, "%s@%u", receiver.name, depth);
            free(receiver.name);
            return length < 0 ? NULL : name;
        }
        if (!returns && !in_library)
            return NULL;
        called_library = in_library;
        at = end + (*end == ' ');
    }
    return NULL;
}

static int store_objects(struct naming *n)
{
    int code = 0;
    for (size_t i = 0; i < n->code->nobjects && code == 0; i++) {
        struct profile_object object = n->code->objects[i];
        object.references = n->object_references[i + 1];
        object.firsts = n->object_firsts[i + 1];
        char *receiver = NULL;
        if (object.kind == PROFILE_OBJECT_BLOCK && n->object_used[i + 1]) {
            code = store_path(n, &object);
            receiver = name_receiver(n, &object);
            object.name = receiver != NULL ? receiver : (char *)"";
        }
        if (code == 0 && n->object_used[i + 1])
            code = profile_add_object(n->profile, &object, n->err);
        free(receiver);
    }
    return code;
}

static int store_image(struct naming *n, uint32_t index, struct symbols_image *image)
{
    int no_map = image == NULL && symbols_jit_map_is(n->code->images[index]);
    return profile_add_image(
        n->profile,
        &(struct profile_image){
            .id = (uint64_t)index + 1,
            .path = (char *)(no_map ? "[jit]" : symbols_files_opened(&n->files, n->code->images[index])),
            .build_id = image != NULL ? (char *)symbols_image_build_id(image) : NULL},
        n->err);
}

/* Of these, lines of calls are not worth reading debug information; of the program they are, even if all of
 * its misses are in functions of libraries that it calls. */
static int is_system_library(const char *path)
{
    static const char *const folders[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return 1;
    return 0;
}

/* Rows and call paths, by image. */
static int store_rows(struct naming *n)
{
    int code = 0;
    for (uint32_t index = 0; index < n->code->nimages && code == 0; index++) {
        struct symbols_image *image = symbols_files_image(&n->files, n->code->images[index]);
        /* A row: then the debug information is read anyway. */
        int named = !is_system_library(n->code->images[index]);
        code = store_image(n, index, image);
        for (uint32_t row = 1; row <= n->nrows && code == 0; row++)
            if (n->image[row] == index) {
                code = store_site(n, image, row);
                named |= n->offset[row] != PROFILE_SITE_REST;
            }
        if (code == 0)
            code = naming_paths(n, image, index, named);
    }
    return code == 0 ? naming_paths(n, NULL, (uint32_t)n->code->nimages, 0) : code;
}

static int store_hits(struct naming *n)
{
    int code = 0;
    for (size_t i = 0; i < n->nhits && code == 0; i++) {
        uint64_t site = n->hits[i].site;
        code = profile_set_hit_site(n->profile, n->hits[i].watch,
                                    site < n->code->nsites ? n->ids[site] : PROFILE_SITE_NONE, n->err);
    }
    return code;
}

static void naming_clear(struct naming *n)
{
    free(n->hits);
    for (size_t i = 0; i < n->frames_capacity; i++) {
        free(n->frames[i].function);
        free(n->frames[i].file);
    }
    free(n->frames);
    free(n->references);
    free(n->far);
    free(n->weights);
    free(n->order);
    free(n->ids);
    free(n->image);
    free(n->offset);
    free(n->made);
    tally_clear(&n->counts);
    tally_clear(&n->misses);
    free(n->row_references);
    free(n->row_firsts);
    free(n->object_references);
    free(n->object_firsts);
    free(n->object_used);
    free(n->path_used);
    naming_split_clear(n);
    site_map_free(n->map);
    symbols_files_clear(&n->files);
}

static int allocate(struct naming *n)
{
    const struct symbols_code *code = n->code;
    n->references = calloc(code->nsites + 1, sizeof *n->references);
    n->far = calloc(code->nsites + 1, sizeof *n->far);
    n->order = calloc(code->nsites + 1, sizeof *n->order);
    n->ids = calloc(code->nsites + 1, sizeof *n->ids);
    n->object_references = calloc(code->nobjects + 1, sizeof *n->object_references);
    n->object_firsts = calloc(code->nobjects + 1, sizeof *n->object_firsts);
    n->object_used = calloc(code->nobjects + 1, 1);
    n->path_used = calloc(code->npaths + 1, 1);
    if (n->references == NULL || n->far == NULL || n->order == NULL || n->ids == NULL ||
        n->object_references == NULL || n->object_firsts == NULL || n->object_used == NULL ||
        n->path_used == NULL)
        return error_set(n->err, -ENOMEM, "out of memory for the code of a run");
    return 0;
}

int symbols_name(struct profile *p, const struct symbols_code *code, struct error *err)
{
    struct naming n = {
        .profile = p, .code = code, .err = err, .files = {.growth = code->growth, .ngrowth = code->ngrowth}};
    struct profile_module *modules = NULL;
    size_t nmodules = 0;
    int status = profile_modules(p, &modules, &nmodules, err);
    n.files.mapped = modules;
    n.files.nmapped = nmodules;
    if (status == 0)
        status = naming_split(&n);
    if (status == 0)
        status = allocate(&n);
    if (status == 0 && (n.map = site_map_load(p, err)) == NULL)
        status = -ENOMEM;
    if (status == 0)
        status = find_weights(&n);
    if (status == 0)
        status = profile_each_site_counts(p, take_row, &n, err);
    if (status == 0)
        status = profile_hits(p, NULL, &n.hits, &n.nhits, err);
    if (status == 0)
        naming_settle(&n);
    if (status == 0 && (status = number_rows(&n)) < 0)
        error_set(err, status, "out of memory for the code of a run");
    if (status == 0)
        naming_settle_rows(&n);
    n.second = 1;
    if (status == 0)
        status = profile_each_site_counts(p, take_row, &n, err);
    if (status == 0)
        status = naming_site_paths(&n);
    if (status == 0)
        status = store_rows(&n);
    if (status == 0)
        status = store_counts(&n);
    if (status == 0)
        status = naming_describe(&n);
    if (status == 0)
        status = symbols_fields_store(p, n.code, n.ids, &n.files, n.object_used, err);
    if (status == 0)
        status = store_objects(&n);
    if (status == 0)
        status = site_map_store(n.map, p, n.ids, n.code->nsites, err);
    if (status == 0)
        status = store_hits(&n);
    naming_clear(&n);
    profile_modules_free(modules, nmodules);
    return status;
}
