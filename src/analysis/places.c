/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/places.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fit-text.h"
#include "analysis/hotspots.h"
#include "profile/fields.h"
#include "analysis/recorded.h"

/* Least part of the references that is reported: each may wait for the line some 50 to 100 ns, which a
 * hundred others take without it. */
#define LEAST_SHARED 0.005
/* Likewise; each waits a few nanoseconds for the next cache. */
#define LEAST_CONFLICTS 0.01
/* If threads use the same bytes in more than this part of the cases, separating them does not help: it is
 * true sharing. */
#define MOST_SAME 0.25
/* Least part of the references that true sharing is reported for. It is counted from the first turn on,
 * unlike false sharing, so memory that is handed over once has some. */
#define LEAST_TRUE 0.02
/* Part of the object's references that one line of source must have to be named. */
#define MOST_OF_IT 0.5
/* A member that is named has at least this part of the references to members of the object. */
#define LEAST_OF_IT 0.1
/* Of the cache for which the objects' references are counted: any. */
#define SIZE 32768.

static const struct kind {
    const char *references; /* key of `run`: number of those that were looked at */
    double least;           /* part of these that is reported */
    int truly;              /* true sharing is counted, instead of false sharing or conflicts */
    int members;            /* these are named, too */
} falsely = {"sharing_refs", LEAST_SHARED, 0, 1}, truly = {"sharing_refs", LEAST_TRUE, 1, 0},
  conflicts = {"conflict_refs", LEAST_CONFLICTS, 0, 0};

/* A site's references to an object: those that are asked for, and those of the other kind of sharing. */
struct entry {
    uint32_t object; /* index; UINT32_MAX: not known */
    const char *module;
    const struct profile_frame *frame, *outer; /* NULL: not known */
    double counted, others;
};

/* References to an object: entries [first .. end). */
struct sum {
    size_t first, end;
    double counted, others;
};

static int compare_places(const struct entry *x, const struct entry *y)
{
    const char *xs[] = {x->outer ? x->outer->function : "", x->module, x->frame ? x->frame->file : ""};
    const char *ys[] = {y->outer ? y->outer->function : "", y->module, y->frame ? y->frame->file : ""};
    uint32_t a = x->frame ? x->frame->line : 0, b = y->frame ? y->frame->line : 0;
    for (size_t i = 0; i < sizeof xs / sizeof xs[0]; i++)
        if (strcmp(xs[i], ys[i]) != 0)
            return strcmp(xs[i], ys[i]);
    return a < b ? -1 : a > b;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    return compare_places(x, y);
}

static int compare_sums(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    if (x->counted != y->counted)
        return x->counted > y->counted ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int is_same_function(const struct entry *x, const struct entry *y)
{
    return x->outer && y->outer && strcmp(x->outer->function, y->outer->function) == 0 &&
           strcmp(x->module, y->module) == 0;
}

static void name_object(const struct analysis_hotspots *h, uint32_t object, struct analysis_place *place)
{
    analysis_object_text(object < h->ndata ? &h->data[object] : NULL, place->object, sizeof place->object);
    place->stack = object < h->ndata && h->data[object].kind == PROFILE_OBJECT_STACK;
}

/* The function with most of the entries, which are sorted, and its line. */
static void name_code(const struct entry *entries, const struct sum *sum, struct analysis_place *place)
{
    const struct entry *function = NULL, *line = NULL;
    double most = 0, most_of_line = 0;
    for (size_t i = sum->first, end; i < sum->end; i = end) {
        double here = 0;
        for (end = i; end < sum->end && (end == i || is_same_function(&entries[i], &entries[end])); end++)
            here += entries[end].counted;
        if (here > most && entries[i].outer) {
            most = here;
            function = &entries[i];
        }
    }
    for (size_t i = sum->first, end; function && i < sum->end; i = end) {
        double here = 0;
        for (end = i; end < sum->end && compare_places(&entries[i], &entries[end]) == 0; end++)
            here += entries[end].counted;
        if (here > most_of_line && is_same_function(&entries[i], function)) {
            most_of_line = here;
            line = &entries[i];
        }
    }
    if (!function || !*function->outer->function)
        return;
    fit_text(place->function, sizeof place->function, "", function->outer->function);
    snprintf(place->module, sizeof place->module, "%s", function->module);
    if (line->frame && *line->frame->file && most_of_line >= MOST_OF_IT * most) {
        snprintf(place->file, sizeof place->file, "%s", line->frame->file);
        place->line = line->frame->line;
        if (strcmp(line->frame->function, place->function) != 0)
            fit_text(place->inlined, sizeof place->inlined, "", line->frame->function);
    }
}

/* Entries of the known sites, sorted by object. Returns their number. */
static size_t make_entries(const struct analysis_hotspots *h, const struct kind *kind,
                           const struct profile_sharing *list, size_t n, struct entry *entries)
{
    const struct profile_site *sites = h->recorded->sites;
    size_t nsites = h->recorded->nsites;
    size_t used = 0;
    for (size_t i = 0, at = 0; i < n; i++) {
        while (at < nsites && sites[at].id < list[i].site)
            at++;
        if (at == nsites || sites[at].id != list[i].site)
            continue;
        const struct profile_image *image = analysis_image_of(h, sites[at].image);
        const struct profile_object *object = analysis_object_of(h, list[i].object);
        entries[used++] =
            (struct entry){.object = object ? (uint32_t)(object - h->data) : UINT32_MAX,
                           .module = image ? image->path : "",
                           .frame = analysis_own_frame(h, analysis_frame_of(h, sites[at].frame)),
                           .outer = analysis_frame_of(h, sites[at].outer),
                           .counted = (double)(kind->truly ? list[i].same : list[i].apart),
                           .others = (double)(kind->truly ? list[i].apart : list[i].same)};
    }
    if (used > 0)
        qsort(entries, used, sizeof *entries, compare_entries);
    return used;
}

/* The object's share of all references; object: as of entries. 1: not known. */
static double object_share(const struct analysis_hotspots *h, uint32_t object)
{
    const struct profile_object *o = object < h->ndata ? &h->data[object] : NULL;
    for (size_t i = 0; i < h->n; i++)
        if (h->rows[i].object == o)
            return h->rows[i].shares.references_share;
    return 1;
}

struct member {
    const char *name;
    double references;
};

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->references != y->references)
        return x->references > y->references ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void name_members(const struct analysis_hotspots *h, uint32_t object,
                         const struct profile_field *fields, size_t nfields,
                         const struct profile_sharing_field *list, size_t n, struct member *members,
                         struct analysis_place *place)
{
    size_t used = 0;
    double all = 0;
    for (size_t i = 0; i < n && object < h->ndata; i++) {
        uint64_t id = list[i].field;
        if (analysis_object_of(h, list[i].object) != &h->data[object] || id < 1 || id > nfields ||
            fields[id - 1].id != id || !*fields[id - 1].name)
            continue;
        size_t k = 0;
        while (k < used && strcmp(members[k].name, fields[id - 1].name) != 0)
            k++;
        used += k == used;
        members[k].name = fields[id - 1].name;
        members[k].references += (double)list[i].references;
        all += (double)list[i].references;
    }
    if (used > 0)
        qsort(members, used, sizeof *members, compare_members);
    while (place->nfields < used && place->nfields < PLACES_FIELDS &&
           members[place->nfields].references >= LEAST_OF_IT * all) {
        fit_text(place->fields[place->nfields], sizeof place->fields[0], "", members[place->nfields].name);
        place->nfields++;
    }
    memset(members, 0, used * sizeof *members);
}

/* The members of the places' data: sums[i] are those of places[i]. None if they cannot be read. */
static void find_members(struct profile *p, const struct analysis_hotspots *h, const struct entry *entries,
                         const struct sum *sums, struct analysis_place *places, size_t nplaces)
{
    struct profile_field *fields = NULL;
    struct profile_sharing_field *list = NULL;
    struct member *members = NULL;
    size_t nfields = 0, n = 0;
    struct error ignored;
    if (nplaces > 0 && profile_fields(p, &fields, &nfields, &ignored) == 0 &&
        profile_sharing_fields(p, &list, &n, &ignored) == 0 &&
        (members = calloc(n + 1, sizeof *members)) != NULL)
        for (size_t i = 0; i < nplaces; i++)
            name_members(h, entries[sums[i].first].object, fields, nfields, list, n, members, &places[i]);
    free(members);
    free(list);
    profile_fields_free(fields, nfields);
}

/* Places of a kind. They were looked for in pieces of the run, in which the object can have more references
 * than in all of it. */
static size_t find(struct profile *p, const struct analysis_hotspots *h, const struct kind *kind,
                   const struct entry *entries, struct sum *sums, size_t n,
                   struct analysis_place places[PLACES_MOST])
{
    unsigned line_bytes;
    double references;
    size_t nsums = 0, found = 0;
    if (profile_get_number(p, kind->references, &references, NULL) != 0 ||
        profile_line_bytes(p, &line_bytes, NULL) != 0)
        return 0;
    for (size_t i = 0, end; i < n; i = end) {
        struct sum sum = {.first = i};
        for (end = i; end < n && entries[end].object == entries[i].object; end++) {
            sum.counted += entries[end].counted;
            sum.others += entries[end].others;
        }
        sum.end = end;
        int is_true =
            kind->truly ? sum.counted > MOST_SAME * sum.others : sum.others > MOST_SAME * sum.counted;
        if (sum.counted >= kind->least * references && is_true == kind->truly)
            sums[nsums++] = sum;
    }
    if (nsums > 0)
        qsort(sums, nsums, sizeof *sums, compare_sums);
    for (; found < nsums && found < PLACES_MOST; found++) {
        double share = sums[found].counted / references;
        places[found] =
            (struct analysis_place){.share = fmin(share, object_share(h, entries[sums[found].first].object)),
                                    .line_bytes = line_bytes};
        name_object(h, entries[sums[found].first].object, &places[found]);
        name_code(entries, &sums[found], &places[found]);
    }
    return found;
}

/* A failure counts as none found, since the rest of the report says what is wrong with the profile. */
static size_t load_and_find(struct profile *p, const char *name, const char *wrappers,
                            const struct kind *kind, const struct profile_sharing *list, size_t n,
                            struct analysis_place places[PLACES_MOST])
{
    const struct analysis_hotspots_question question = {
        .size_bytes = SIZE, .by = ANALYSIS_BY_NOTHING, .objects = 1, .wrappers = wrappers};
    struct analysis_hotspots h = {0};
    struct entry *entries = NULL;
    struct sum *sums = NULL;
    size_t found = 0;
    struct error ignored;
    if (n > 0 && analysis_hotspots(p, name, &question, &h, &ignored) == 0 &&
        (entries = calloc(n, sizeof *entries)) && (sums = calloc(n, sizeof *sums)))
        found = find(p, &h, kind, entries, sums, make_entries(&h, kind, list, n, entries), places);
    if (kind->members && sums)
        find_members(p, &h, entries, sums, places, found);
    analysis_hotspots_clear(&h);
    free(entries);
    free(sums);
    return found;
}

static size_t find_shared(struct profile *p, const char *name, const char *wrappers, const struct kind *kind,
                          struct analysis_place places[PLACES_MOST])
{
    struct profile_sharing *list = NULL;
    struct error ignored;
    size_t n = 0, found = 0;
    if (profile_sharings(p, &list, &n, &ignored) == 0)
        found = load_and_find(p, name, wrappers, kind, list, n, places);
    free(list);
    return found;
}

size_t analysis_shared(struct profile *p, const char *name, const char *wrappers,
                       struct analysis_place places[PLACES_MOST])
{
    return find_shared(p, name, wrappers, &falsely, places);
}

size_t analysis_shared_truly(struct profile *p, const char *name, const char *wrappers,
                             struct analysis_place places[PLACES_MOST])
{
    return find_shared(p, name, wrappers, &truly, places);
}

size_t analysis_conflicts(struct profile *p, const char *name, const char *wrappers,
                          struct analysis_place places[PLACES_MOST])
{
    struct profile_conflict *list = NULL;
    struct profile_sharing *entries = NULL;
    struct error ignored;
    size_t n = 0, found = 0;
    if (profile_conflicts(p, &list, &n, &ignored) == 0 && (entries = calloc(n + 1, sizeof *entries))) {
        for (size_t i = 0; i < n; i++)
            entries[i] = (struct profile_sharing){list[i].site, list[i].object, list[i].references, 0};
        found = load_and_find(p, name, wrappers, &conflicts, entries, n, places);
    }
    free(list);
    free(entries);
    return found;
}
