/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.c - stores what is known of sites beside their counts: call paths, causes of misses, how lines are
 * used, strides, sharing and conflicts.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/octaves.h"
#include "profile/paths.h"
#include "profile/site-counts.h"
#include "symbols/naming.h"

/* --- causes --- */

static uint32_t row_of(const struct naming *n, uint64_t process, uint32_t site)
{
    const uint32_t *sites;
    if (site % 256 >= site_map_block(n->map, process, site / 256, &sites))
        return 0;
    return sites[site % 256] < n->code->nsites ? n->ids[sites[site % 256]] : 0;
}

static int compare_causes(const void *a, const void *b)
{
    const struct profile_cause *x = a, *y = b;
    const uint64_t keys[][2] = {{x->victim_site, y->victim_site},
                                {x->victim_object, y->victim_object},
                                {x->site, y->site},
                                {x->object, y->object},
                                {x->lines, y->lines}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

/* Several sites may have one row, and several processes the same sites. */
static int store_causes(struct naming *n)
{
    size_t ncauses = n->code->ncauses;
    struct profile_cause *causes = calloc(ncauses + 1, sizeof *causes);
    int code = 0;
    if (causes == NULL)
        return error_set(n->err, -ENOMEM, "out of memory for the causes of misses");
    for (size_t i = 0; i < ncauses; i++) {
        const struct symbols_cause *c = &n->code->causes[i];
        causes[i] = (struct profile_cause){.victim_site = row_of(n, c->process, c->victim_site),
                                           .victim_object = c->victim_object,
                                           .site = row_of(n, c->process, c->site),
                                           .object = c->object,
                                           .lines = octaves_edge(c->bin),
                                           .reuses = c->reuses};
        n->object_used[c->victim_object <= n->code->nobjects ? c->victim_object : 0] = 1;
        n->object_used[c->object <= n->code->nobjects ? c->object : 0] = 1;
    }
    qsort(causes, ncauses, sizeof *causes, compare_causes);
    for (size_t i = 0; i < ncauses && code == 0; i++) {
        if (i + 1 < ncauses && compare_causes(&causes[i], &causes[i + 1]) == 0)
            causes[i + 1].reuses += causes[i].reuses;
        else
            code = profile_add_cause(n->profile, &causes[i], n->err);
    }
    free(causes);
    return code;
}

/* --- how lines are used --- */

static int compare_uses(const void *a, const void *b)
{
    const struct profile_line_use *x = a, *y = b;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static int store_uses(struct naming *n)
{
    size_t nuses = 0;
    struct profile_line_use *uses = calloc(n->code->nuses + 1, sizeof *uses);
    int code = 0;
    if (uses == NULL)
        return error_set(n->err, -ENOMEM, "out of memory for the use of lines");
    for (size_t i = 0; i < n->code->nuses; i++) {
        const struct symbols_use *u = &n->code->uses[i];
        if (u->site >= n->code->nsites || n->ids[u->site] == 0)
            continue;
        uses[nuses++] = (struct profile_line_use){n->ids[u->site], u->object, u->lines, u->bytes};
        n->object_used[u->object <= n->code->nobjects ? u->object : 0] = 1;
    }
    qsort(uses, nuses, sizeof *uses, compare_uses);
    for (size_t i = 0; i < nuses && code == 0; i++) {
        if (i + 1 < nuses && compare_uses(&uses[i], &uses[i + 1]) == 0) {
            uses[i + 1].lines += uses[i].lines;
            uses[i + 1].bytes += uses[i].bytes;
        } else {
            code = profile_add_line_use(n->profile, &uses[i], n->err);
        }
    }
    free(uses);
    return code;
}

/* Of several processes, that with most references first. */
static int compare_strides(const void *a, const void *b)
{
    const struct symbols_stride *x = a, *y = b;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    return x->all > y->all ? -1 : x->all < y->all;
}

static int store_strides(struct naming *n)
{
    size_t nstrides = n->code->nstrides;
    struct symbols_stride *strides = calloc(nstrides + 1, sizeof *strides);
    int code = 0;
    if (strides == NULL)
        return error_set(n->err, -ENOMEM, "out of memory for strides");
    for (size_t i = 0; i < nstrides; i++)
        strides[i] = n->code->strides[i];
    qsort(strides, nstrides, sizeof *strides, compare_strides);
    for (size_t i = 0; i < nstrides && code == 0; i++) {
        const struct symbols_stride *s = &strides[i];
        uint32_t row = s->site < n->code->nsites ? n->ids[s->site] : 0;
        int first = i == 0 || strides[i - 1].site != s->site;
        if (row != 0 && n->offset[row] != PROFILE_SITE_REST && first && 2 * (uint64_t)s->same > s->all)
            code = profile_add_stride(n->profile, &(struct profile_stride){row, s->bytes, s->all, s->same},
                                      n->err);
    }
    free(strides);
    return code;
}

/* --- sharing between threads --- */

static int compare_sharings(const void *a, const void *b)
{
    const struct profile_sharing *x = a, *y = b;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static int store_sharings(struct naming *n)
{
    size_t nsharings = 0;
    struct profile_sharing *sharings = calloc(n->code->nsharings + 1, sizeof *sharings);
    int code = 0;
    if (sharings == NULL)
        return error_set(n->err, -ENOMEM, "out of memory for the sharing of lines");
    for (size_t i = 0; i < n->code->nsharings; i++) {
        const struct symbols_sharing *s = &n->code->sharings[i];
        if (s->site >= n->code->nsites || n->ids[s->site] == 0)
            continue;
        sharings[nsharings++] = (struct profile_sharing){n->ids[s->site], s->object, s->apart, s->same};
        n->object_used[s->object <= n->code->nobjects ? s->object : 0] = 1;
    }
    qsort(sharings, nsharings, sizeof *sharings, compare_sharings);
    for (size_t i = 0; i < nsharings && code == 0; i++) {
        if (i + 1 < nsharings && compare_sharings(&sharings[i], &sharings[i + 1]) == 0) {
            sharings[i + 1].apart += sharings[i].apart;
            sharings[i + 1].same += sharings[i].same;
        } else {
            code = profile_add_sharing(n->profile, &sharings[i], n->err);
        }
    }
    free(sharings);
    return code;
}

/* --- conflicts within sets --- */

static int compare_conflicts(const void *a, const void *b)
{
    const struct profile_conflict *x = a, *y = b;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static int store_conflicts(struct naming *n)
{
    size_t nconflicts = 0;
    struct profile_conflict *conflicts = calloc(n->code->nconflicts + 1, sizeof *conflicts);
    int code = 0;
    if (conflicts == NULL)
        return error_set(n->err, -ENOMEM, "out of memory for the conflicts of lines");
    for (size_t i = 0; i < n->code->nconflicts; i++) {
        const struct symbols_conflict *s = &n->code->conflicts[i];
        if (s->site >= n->code->nsites || n->ids[s->site] == 0)
            continue;
        conflicts[nconflicts++] = (struct profile_conflict){n->ids[s->site], s->object, s->references};
        n->object_used[s->object <= n->code->nobjects ? s->object : 0] = 1;
    }
    qsort(conflicts, nconflicts, sizeof *conflicts, compare_conflicts);
    for (size_t i = 0; i < nconflicts && code == 0; i++) {
        if (i + 1 < nconflicts && compare_conflicts(&conflicts[i], &conflicts[i + 1]) == 0) {
            conflicts[i + 1].references += conflicts[i].references;
        } else {
            code = profile_add_conflict(n->profile, &conflicts[i], n->err);
        }
    }
    free(conflicts);
    return code;
}

/* --- call paths --- */

static int compare_paths(const void *a, const void *b)
{
    const struct profile_site_path *x = a, *y = b;
    const uint64_t keys[][2] = {{x->site, y->site},
                                {x->path, y->path},
                                {(uint64_t)x->first, (uint64_t)y->first},
                                {x->lines, y->lines}};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static int store_site_paths(struct naming *n, struct profile_site_path *list, size_t count)
{
    int code = 0;
    qsort(list, count, sizeof *list, compare_paths);
    for (size_t i = 0; i < count && code == 0; i++) {
        if (i + 1 < count && compare_paths(&list[i], &list[i + 1]) == 0)
            list[i + 1].references += list[i].references;
        else
            code = profile_add_site_path(n->profile, &list[i], n->err);
    }
    return code;
}

int naming_site_paths(struct naming *n)
{
    const struct symbols_code *c = n->code;
    struct profile_site_path *list = calloc(c->ncalls + 1, sizeof *list);
    size_t count = 0;
    if (list == NULL)
        return error_set(n->err, -ENOMEM, "out of memory for call paths");
    for (size_t i = 0; i < c->ncalls; i++) {
        const struct symbols_call *call = &c->calls[i];
        uint32_t row = row_of(n, call->process, call->site);
        int first = call->what >= SITE_COUNT_FIRST;
        if (row == 0 || n->offset[row] == PROFILE_SITE_REST)
            continue;
        list[count++] = (struct profile_site_path){
            .site = row,
            .path = call->path,
            .first = first,
            .lines = octaves_edge(call->what - (first ? SITE_COUNT_FIRST : SITE_COUNT_STACK)),
            .references = call->touches};
        for (uint32_t path = call->path; path != 0 && !n->path_used[path]; path = c->paths[path].caller)
            n->path_used[path] = 1;
    }
    int code = store_site_paths(n, list, count);
    free(list);
    return code;
}

int naming_paths(struct naming *n, struct symbols_image *image, uint32_t index, int lines)
{
    const struct symbols_code *c = n->code;
    int code = 0;
    for (size_t i = 1; i < c->npaths && code == 0; i++) {
        uint32_t site = c->paths[i].site;
        if (!n->path_used[i] || (site < c->nsites ? c->sites[site].image : c->nimages) != index)
            continue;
        struct profile_path path = {.id = i, .caller = c->paths[i].caller};
        if (site < c->nsites) {
            uint64_t outer;
            path.image = (uint64_t)index + 1;
            path.offset = c->sites[site].offset;
            code = naming_place(n, image, path.offset, lines, &path.frame, &outer);
        }
        if (code == 0)
            code = profile_add_path(n->profile, &path, n->err);
    }
    return code;
}

int naming_describe(struct naming *n)
{
    int code = store_causes(n);
    if (code == 0)
        code = store_uses(n);
    if (code == 0)
        code = store_sharings(n);
    if (code == 0)
        code = store_conflicts(n);
    return code == 0 ? store_strides(n) : code;
}
