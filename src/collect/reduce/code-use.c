/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/reduce/code-use.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "base/array.h"

struct code_use {
    struct code *code; /* the caller's */
    struct symbols_use *uses;
    struct symbols_offset *offsets, *shared_offsets;
    struct symbols_stride *strides;
    struct symbols_sharing *sharings;
    struct symbols_conflict *conflicts;
    size_t nuses, noffsets, nshared_offsets, nstrides, nsharings, nconflicts;
    size_t uses_capacity, offsets_capacity, shared_offsets_capacity;
    size_t strides_capacity, sharings_capacity, conflicts_capacity;
    double conflict_references;  /* among which conflicts were looked for */
    uint64_t sharing_references; /* among which sharing was looked for */
};

struct code_use *code_use_new(struct code *code)
{
    struct code_use *u = calloc(1, sizeof(*u));
    if (u != NULL)
        u->code = code;
    return u;
}

void code_use_free(struct code_use *u)
{
    if (u == NULL)
        return;
    free(u->uses);
    free(u->offsets);
    free(u->shared_offsets);
    free(u->strides);
    free(u->sharings);
    free(u->conflicts);
    free(u);
}

static int add_offsets(struct code_use *u, const struct shape_lines *lines, uint32_t site)
{
    uint64_t n = lines->noffsets;
    if (ARRAY_GROW_BY(u->offsets, u->noffsets, n, u->offsets_capacity) < 0)
        return -ENOMEM;
    for (uint64_t i = 0; i < n; i++)
        u->offsets[u->noffsets++] =
            (struct symbols_offset){.site = site,
                                    .object = lines->object,
                                    .offset = lines->offsets[i],
                                    .lines = (uint64_t)llround(lines->inside / (double)n)};
    return 0;
}

/* The site of an instruction of a process: 1, or 0 if its place is not known, or -ENOMEM. */
static int find_site(struct code_use *u, const struct code_process *code, uint64_t pc, uint32_t *site)
{
    int64_t found = pc != 0 ? code_add_place(u->code, code, pc) : -ENOENT;
    *site = (uint32_t)found;
    return found >= 0 ? 1 : found == -ENOMEM ? -ENOMEM : 0;
}

/* How lines are used, by the instructions' places instead of addresses. */
static int add_lines(struct code_use *u, const struct shape *shape, const struct code_process *code)
{
    size_t n;
    uint32_t site;
    const struct shape_lines *lines = shape_lines(shape, &n);
    for (size_t i = 0; i < n; i++) {
        int known = find_site(u, code, lines[i].pc, &site);
        if (known < 0 || ARRAY_GROW(u->uses, u->nuses, u->uses_capacity) < 0)
            return -ENOMEM;
        if (!known)
            continue;
        struct symbols_use *use = &u->uses[u->nuses++];
        *use = (struct symbols_use){
            .site = site, .object = lines[i].object, .lines = (uint64_t)llround(lines[i].lines)};
        /* The stays that ended are the short ones where many did not. */
        if (lines[i].open <= lines[i].ended / 2 && lines[i].shown > 0) {
            use->known = (uint64_t)llround(lines[i].shown);
            /* Of that whole number: not more than all of them. */
            use->bytes = (uint64_t)llround(lines[i].bytes * (double)use->known / lines[i].shown);
            use->whole = lines[i].whole;
        }
        if (add_offsets(u, &lines[i], site) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int add_stride(struct code_use *u, const struct shape_stride *stride, int fetches,
                      const struct code_process *code)
{
    uint32_t site;
    int known = find_site(u, code, stride->all > 0 ? stride->pc : 0, &site);
    if (known < 0 || ARRAY_GROW(u->strides, u->nstrides, u->strides_capacity) < 0)
        return -ENOMEM;
    if (known)
        u->strides[u->nstrides++] = (struct symbols_stride){.site = site,
                                                            .fetches = fetches,
                                                            .bytes = stride->bytes,
                                                            .all = stride->all,
                                                            .same = stride->same};
    return 0;
}

/* Likewise strides. */
static int add_strides(struct code_use *u, const struct shape *shape, const struct code_process *code)
{
    const struct shape_stride *stride;
    for (size_t i = 0; (stride = shape_stride(shape, i)) != NULL; i++)
        if (add_stride(u, stride, 0, code) < 0 || add_stride(u, shape_fetch_stride(shape, i), 1, code) < 0)
            return -ENOMEM;
    return 0;
}

/* Likewise conflicts within sets. */
static int add_conflicts(struct code_use *u, const struct shape *shape, const struct code_process *code)
{
    size_t n;
    double of;
    uint32_t site;
    const struct shape_conflicts *list = shape_conflicts(shape, &n, &of);
    u->conflict_references += of;
    for (size_t i = 0; i < n; i++) {
        int known = find_site(u, code, list[i].pc, &site);
        if (known < 0 || ARRAY_GROW(u->conflicts, u->nconflicts, u->conflicts_capacity) < 0)
            return -ENOMEM;
        if (known)
            u->conflicts[u->nconflicts++] = (struct symbols_conflict){
                .site = site, .object = list[i].object, .references = (uint64_t)llround(list[i].references)};
    }
    return 0;
}

static int add_shared_offsets(struct code_use *u, const struct sharing_refs *refs, double scale,
                              uint32_t site)
{
    uint64_t n = refs->noffsets;
    if (ARRAY_GROW_BY(u->shared_offsets, u->nshared_offsets, n, u->shared_offsets_capacity) < 0)
        return -ENOMEM;
    for (uint64_t i = 0; i < n; i++)
        u->shared_offsets[u->nshared_offsets++] =
            (struct symbols_offset){.site = site,
                                    .object = refs->object,
                                    .offset = refs->offsets[i],
                                    .lines = (uint64_t)llround((double)refs->apart * scale / (double)n)};
    return 0;
}

/* Likewise lines that threads share. */
static int add_sharing(struct code_use *u, const struct sharing *sharing, const struct code_process *code)
{
    size_t n;
    uint32_t site;
    const struct sharing_refs *refs = sharing_refs(sharing, &n);
    double scale = sharing_scale(sharing);
    u->sharing_references += sharing_total(sharing);
    for (size_t i = 0; i < n; i++) {
        int known = find_site(u, code, refs[i].pc, &site);
        if (known < 0 || ARRAY_GROW(u->sharings, u->nsharings, u->sharings_capacity) < 0)
            return -ENOMEM;
        if (!known)
            continue;
        if (add_shared_offsets(u, &refs[i], scale, site) < 0)
            return -ENOMEM;
        u->sharings[u->nsharings++] =
            (struct symbols_sharing){.site = site,
                                     .object = refs[i].object,
                                     .apart = (uint64_t)llround((double)refs[i].apart * scale),
                                     .same = (uint64_t)llround((double)refs[i].same * scale)};
    }
    return 0;
}

int code_use_add(struct code_use *u, const struct shape *shape, const struct sharing *sharing,
                 const struct code_process *code)
{
    int status = add_lines(u, shape, code);
    if (status == 0)
        status = add_strides(u, shape, code);
    if (status == 0)
        status = add_conflicts(u, shape, code);
    return status == 0 ? add_sharing(u, sharing, code) : status;
}

int code_use_store(const struct code_use *u, struct profile *p, struct error *err)
{
    int status = profile_set_number(p, "sharing_refs", (double)u->sharing_references, err);
    return status == 0 ? profile_set_number(p, "conflict_refs", u->conflict_references, err) : status;
}

void code_use_describe(const struct code_use *u, struct symbols_code *code)
{
    code->uses = u->uses;
    code->nuses = u->nuses;
    code->offsets = u->offsets;
    code->noffsets = u->noffsets;
    code->strides = u->strides;
    code->nstrides = u->nstrides;
    code->sharings = u->sharings;
    code->nsharings = u->nsharings;
    code->shared_offsets = u->shared_offsets;
    code->nshared_offsets = u->nshared_offsets;
    code->conflicts = u->conflicts;
    code->nconflicts = u->nconflicts;
}
