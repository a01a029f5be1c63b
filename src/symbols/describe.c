/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.c - stores what is known of sites beside their counts: call paths, causes of misses, how lines are
 * used, strides, sharing and conflicts.
 */
#include <errno.h>
#include <math.h>
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

/* Pairs of keys, the most significant first. */
static int compare_keys(const uint64_t (*keys)[2], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return 0;
}

static int compare_causes(const void *a, const void *b)
{
    const struct profile_cause *x = a, *y = b;
    const uint64_t keys[][2] = {{x->victim_site, y->victim_site},
                                {x->victim_object, y->victim_object},
                                {x->site, y->site},
                                {x->object, y->object},
                                {x->lines, y->lines}};
    return compare_keys(keys, sizeof keys / sizeof keys[0]);
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

/* --- counts by row and data object: how lines are used, sharing between threads, conflicts within sets ---
 */

struct pair {
    uint64_t row, object, count[3];
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

/* Ignores sites without a row. */
static void add_pair(struct naming *n, uint32_t site, uint32_t object, struct pair pair, struct pair *pairs,
                     size_t *npairs)
{
    if (site >= n->code->nsites || n->ids[site] == 0)
        return;
    pair.row = n->ids[site];
    pair.object = object;
    pairs[(*npairs)++] = pair;
    n->object_used[object <= n->code->nobjects ? object : 0] = 1;
}

/* Sorts them, and adds those up that are equal, as several sites may have one row. Returns their number. */
static size_t sum_pairs(struct pair *pairs, size_t n)
{
    size_t used = 0;
    qsort(pairs, n, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < n; i++) {
        if (used > 0 && compare_pairs(&pairs[used - 1], &pairs[i]) == 0) {
            for (size_t k = 0; k < sizeof pairs->count / sizeof pairs->count[0]; k++)
                pairs[used - 1].count[k] += pairs[i].count[k];
        } else {
            pairs[used++] = pairs[i];
        }
    }
    return used;
}

/*
 * By code of n->misses, the part of these touches that bring their line into a cache of SYMBOLS_USE_LINES. Of
 * a first touch in a burst it is only known after how many other lines of the burst it came: the line was
 * last touched before these. It is as probable that the cache had lost it as that a reuse at such a distance
 * or more is at one of SYMBOLS_USE_LINES or more (Kaplan and Meier).
 */
static void find_missed(const struct tally *misses, double missed[NAMING_MISSED + 1])
{
    double all[NAMING_MISSED + 1] = {0}, more = 0, part = 1;
    uint32_t least = octaves_bin(SYMBOLS_USE_LINES);
    for (size_t i = 0; i < misses->n; i++)
        all[misses->entries[i].what] += (double)misses->entries[i].count;
    for (uint32_t bin = OCTAVES_BINS; bin-- > 0;) {
        double reuses = all[SITE_COUNT_STACK + bin];
        more += reuses + all[SITE_COUNT_FIRST + bin];
        if (bin < least && more > 0)
            part *= 1 - reuses / more;
        missed[SITE_COUNT_STACK + bin] = bin >= least;
        missed[SITE_COUNT_FIRST + bin] = bin > 0 ? part : 0; /* nearer reuses are not all counted */
    }
    missed[NAMING_MISSED] = 1;
}

static int store_uses(struct naming *n, struct pair *pairs)
{
    double missed[NAMING_MISSED + 1];
    size_t npairs = 0;
    int code = 0;
    for (size_t i = 0; i < n->code->nuses; i++) {
        const struct symbols_use *u = &n->code->uses[i];
        add_pair(n, u->site, u->object, (struct pair){.count = {u->known, u->bytes, u->whole}}, pairs,
                 &npairs);
    }
    npairs = sum_pairs(pairs, npairs);
    tally_sort(&n->misses);
    find_missed(&n->misses, missed);
    for (size_t i = 0, at = 0; i < npairs && code == 0; i++) {
        const struct pair *p = &pairs[i];
        const struct tally_entry *e = n->misses.entries, *end = e + n->misses.n;
        double lines = 0;
        for (e += at; e < end && (e->row < p->row || (e->row == p->row && e->object <= p->object)); e++)
            if (e->row == p->row && e->object == p->object)
                lines += (double)e->count * missed[e->what];
        at = (size_t)(e - n->misses.entries);
        struct profile_line_use use = {p->row, p->object, .lines = (uint64_t)llround(lines)};
        if (p->count[0] > 0) {
            use.whole = p->count[2];
            use.bytes = (uint64_t)llround((double)use.lines * (double)p->count[1] / (double)p->count[0]);
        }
        if (use.lines > 0)
            code = profile_add_line_use(n->profile, &use, n->err);
    }
    return code;
}

static int store_sharings(struct naming *n, struct pair *pairs)
{
    size_t npairs = 0;
    int code = 0;
    for (size_t i = 0; i < n->code->nsharings; i++) {
        const struct symbols_sharing *s = &n->code->sharings[i];
        add_pair(n, s->site, s->object, (struct pair){.count = {s->apart, s->same}}, pairs, &npairs);
    }
    npairs = sum_pairs(pairs, npairs);
    for (const struct pair *p = pairs; p < pairs + npairs && code == 0; p++)
        code = profile_add_sharing(
            n->profile, &(struct profile_sharing){p->row, p->object, p->count[0], p->count[1]}, n->err);
    return code;
}

static int store_conflicts(struct naming *n, struct pair *pairs)
{
    size_t npairs = 0;
    int code = 0;
    for (size_t i = 0; i < n->code->nconflicts; i++) {
        const struct symbols_conflict *c = &n->code->conflicts[i];
        add_pair(n, c->site, c->object, (struct pair){.count = {c->references}}, pairs, &npairs);
    }
    npairs = sum_pairs(pairs, npairs);
    for (const struct pair *p = pairs; p < pairs + npairs && code == 0; p++)
        code = profile_add_conflict(n->profile, &(struct profile_conflict){p->row, p->object, p->count[0]},
                                    n->err);
    return code;
}

static int store_pairs(struct naming *n)
{
    const struct symbols_code *c = n->code;
    struct pair *pairs = calloc(c->nuses + c->nsharings + c->nconflicts + 1, sizeof *pairs);
    if (pairs == NULL)
        return error_set(n->err, -ENOMEM, "out of memory for the use of lines");
    int code = store_uses(n, pairs);
    if (code == 0)
        code = store_sharings(n, pairs);
    if (code == 0)
        code = store_conflicts(n, pairs);
    free(pairs);
    return code;
}

/* --- strides --- */

/* Of several processes, that with most references first. */
static int compare_strides(const void *a, const void *b)
{
    const struct symbols_stride *x = a, *y = b;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    if (x->fetches != y->fetches)
        return x->fetches - y->fetches;
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
        int first = i == 0 || strides[i - 1].site != s->site || strides[i - 1].fetches != s->fetches;
        if (row != 0 && n->offset[row] != PROFILE_SITE_REST && first && 2 * (uint64_t)s->same > s->all)
            code = (s->fetches ? profile_add_fetch_stride : profile_add_stride)(
                n->profile, &(struct profile_stride){row, s->bytes, s->all, s->same}, n->err);
    }
    free(strides);
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
    return compare_keys(keys, sizeof keys / sizeof keys[0]);
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
            code = naming_place(n, image, c->sites[site].made, path.offset,
                                lines ? NAMING_LINES : NAMING_FUNCTION, &path.frame, &outer);
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
        code = store_pairs(n);
    return code == 0 ? store_strides(n) : code;
}
