/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locals.c - a variable's place is an offset from the frame base of its function (DW_OP_fbreg), which is the
 * CFA (gcc) or a register (clang). For the latter the function's unwind information says how far the CFA is
 * from that register.
 */
#include "symbols/locals.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbols/members.h"
#include "symbols/scopes.h"

/* Deeper nesting is corrupt. */
#define MOST_DEPTH 512u
#define NAME_BYTES 512u

struct symbols_locals {
    struct symbols_image *image;
    struct symbols_function **functions; /* those without variables too */
    size_t n, capacity;
};

/* The function that is read. */
struct reading {
    struct symbols_locals *locals;
    struct symbols_function *f;
    struct definitions *definitions;
    int64_t base; /* of the frame, from the CFA */
};

struct symbols_locals *symbols_locals_new(struct symbols_image *image)
{
    struct symbols_locals *l = calloc(1, sizeof *l);
    if (l != NULL)
        l->image = image;
    return l;
}

void symbols_locals_free(struct symbols_locals *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->n; i++) {
        for (size_t k = 0; k < l->functions[i]->n; k++)
            free((char *)l->functions[i]->list[k].name);
        free((char *)l->functions[i]->lengths.name);
        free(l->functions[i]->list);
        free(l->functions[i]);
    }
    free(l->functions);
    free(l);
}

/* The frame base of a function, from the CFA. rule may be NULL. 0, or -1: not known. */
static int find_base(Dwarf_Die *function, const struct symbols_rule *rule, int64_t *base)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) == NULL ||
        dwarf_getlocation(&attribute, &ops, &n) != 0 || n < 1)
        return -1;
    *base = 0;
    if (n == 3 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_consts &&
        ops[2].atom == DW_OP_plus) { /* clang and rustc, if there is no register for it */
        *base = (int64_t)ops[1].number;
        return 0;
    }
    if (n > 1)
        return -1;
    if (ops[0].atom == DW_OP_call_frame_cfa)
        return 0;
    int by_rbp = ops[0].atom == DW_OP_reg6 || ops[0].atom == DW_OP_breg6;
    int by_rsp = ops[0].atom == DW_OP_reg7 || ops[0].atom == DW_OP_breg7;
    if (rule == NULL || rule->in_memory || (rule->by_rbp ? !by_rbp : !by_rsp))
        return -1;
    *base = -rule->offset;
    if (ops[0].atom == DW_OP_breg6 || ops[0].atom == DW_OP_breg7)
        *base += (int64_t)ops[0].number;
    return 0;
}

/* Whether the compiler made the variable: gfortran has "A.9". */
static int is_made(Dwarf_Die *variable)
{
    const char *name = dwarf_diename(variable);
    return name == NULL || strchr(name, '.') != NULL || dwarf_hasattr(variable, DW_AT_artificial) ||
           dwarf_hasattr(variable, DW_AT_declaration) || dwarf_hasattr(variable, DW_AT_external);
}

/* A variable's place, from the frame base or the stack pointer. 0, or -1: it has none, or none that is fixed.
 */
static int find_place(Dwarf_Die *variable, int64_t *place, int *by_sp)
{
    Dwarf_Attribute location;
    Dwarf_Addr base, start, end;
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_attr(variable, DW_AT_location, &location) == NULL)
        return -1;
    for (ptrdiff_t at = 0; (at = dwarf_getlocations(&location, at, &base, &start, &end, &ops, &n)) > 0;)
        if (n == 1 && (ops[0].atom == DW_OP_fbreg || ops[0].atom == DW_OP_breg7)) {
            *place = (int64_t)ops[0].number;
            *by_sp = ops[0].atom == DW_OP_breg7;
            return 0;
        }
    return -1;
}

/* Whether a name is in "main::a|b". */
static int has_name(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at != NULL && (at = strstr(at, name)) != NULL; at++)
        if (at > list && (at[-1] == ':' || at[-1] == '|') && (at[n] == '|' || at[n] == '\0'))
            return 1;
    return 0;
}

/* An array whose bytes are not known. 0 or -1. */
static int add_length(struct symbols_function *f, const char *function, const char *name)
{
    char text[NAME_BYTES];
    if (has_name(f->lengths.name, name)) /* in a function that is inlined several times */
        return 0;
    if (f->lengths.name == NULL)
        snprintf(text, sizeof text, "%s::%s", function, name);
    else
        snprintf(text, sizeof text, "%s|%s", f->lengths.name, name);
    free((char *)f->lengths.name);
    f->lengths.name = strdup(text);
    return f->lengths.name != NULL ? 0 : -1;
}

static int add_variable(struct reading *r, Dwarf_Die *die, Dwarf_Die *scope, const char *function)
{
    struct symbols_function *f = r->f;
    struct symbols_local local = {.scope = *scope, .defined = r->definitions};
    const char *name = dwarf_diename(die);
    char text[NAME_BYTES];
    uint64_t bytes;
    int64_t place;
    if (is_made(die) || symbols_members_type(r->definitions, die, &local.type) != 0)
        return 0;
    if (dwarf_tag(&local.type) == DW_TAG_array_type &&
        symbols_members_size(r->definitions, &local.type, &bytes) != 0)
        return add_length(f, function, name);
    if (find_place(die, &place, &local.by_sp) != 0 ||
        symbols_members_size(r->definitions, &local.type, &bytes) != 0 || bytes < SYMBOLS_LOCAL_BYTES ||
        bytes > INT64_MAX / 2)
        return 0;
    local.low = place + (local.by_sp ? 0 : r->base);
    local.high = local.low + (int64_t)bytes;
    if (f->placed && !local.by_sp && local.low >= 0) /* a parameter: it is in the caller's frame */
        return 0;
    snprintf(text, sizeof text, "%s::%s", function, name);
    if (ARRAY_GROW(f->list, f->n, f->capacity) < 0 || (local.name = strdup(text)) == NULL)
        return -1;
    f->low = local.low < f->low && !local.by_sp ? local.low : f->low;
    f->list[f->n++] = local;
    return 0;
}

static int add_children(struct reading *r, Dwarf_Die *parent, const char *function, unsigned depth)
{
    Dwarf_Die die;
    int status = 0;
    if (depth > MOST_DEPTH || dwarf_child(parent, &die) != 0)
        return 0;
    do {
        const char *inlined;
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
        case DW_TAG_formal_parameter:
            status = add_variable(r, &die, parent, function);
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
            status = add_children(r, &die, function, depth + 1);
            break;
        case DW_TAG_inlined_subroutine:
            inlined = symbols_image_name(r->locals->image, &die);
            status = add_children(r, &die, inlined != NULL ? inlined : function, depth + 1);
            break;
        default:
            break;
        }
    } while (status == 0 && dwarf_siblingof(&die, &die) == 0);
    return status;
}

/* Lists the variables of a function, around an offset of the file. */
static void read_function(struct reading *r, Dwarf_Die *function, uint64_t offset,
                          const struct symbols_rule *rule)
{
    struct symbols_frame frames[SYMBOLS_MOST_FRAMES];
    unsigned n = symbols_image_frames(r->locals->image, offset, 1, frames);
    r->f->placed = find_base(function, rule, &r->base) == 0;
    if (n > 0 && frames[n - 1].function != NULL)
        add_children(r, function, frames[n - 1].function, 0);
}

/* The function itself, not one that is inlined there. *address: of the offset. 0, or -1: not known. */
static int find_function(struct symbols_locals *l, uint64_t offset, Dwarf_Die *function, uint64_t *address,
                         struct definitions **definitions)
{
    const struct scopes *scopes = symbols_image_scopes(l->image, offset, address);
    const struct scope *scope = scopes != NULL ? scopes_find(scopes, *address) : NULL;
    for (; scope != NULL; scope = scopes_outer(scopes, scope)) {
        *function = scope->die;
        *definitions = scopes_definitions(scopes);
        if (dwarf_tag(function) == DW_TAG_subprogram)
            return 0;
    }
    return -1;
}

static int has_variables(const struct symbols_function *f)
{
    return f->n > 0 || f->lengths.name != NULL;
}

struct symbols_function *symbols_locals_function(struct symbols_locals *l, uint64_t offset,
                                                 const struct symbols_rule *rule)
{
    struct reading r = {.locals = l};
    Dwarf_Die function;
    uint64_t address, begin;
    if (find_function(l, offset, &function, &address, &r.definitions) != 0)
        return NULL;
    for (size_t i = 0; i < l->n; i++)
        if (l->functions[i]->die == function.addr)
            return has_variables(l->functions[i]) ? l->functions[i] : NULL;
    if (ARRAY_GROW(l->functions, l->n, l->capacity) < 0 || (r.f = calloc(1, sizeof *r.f)) == NULL)
        return NULL;
    l->functions[l->n++] = r.f;
    r.f->die = function.addr;
    r.f->lengths.low = SYMBOLS_LOCAL_NOWHERE;
    r.f->offset = dwarf_entrypc(&function, &begin) == 0 ? offset - (address - begin) : offset;
    read_function(&r, &function, offset, rule);
    return has_variables(r.f) ? r.f : NULL;
}

/* Where a variable begins in a frame; UINT64_MAX: not known. */
static uint64_t beginning(const struct symbols_local *v, const struct symbols_in_frame *frame)
{
    if (v->low == SYMBOLS_LOCAL_NOWHERE || (v->by_sp && frame->sp == 0))
        return UINT64_MAX;
    return (v->by_sp ? frame->sp : frame->cfa) + (uint64_t)v->low;
}

struct symbols_local *symbols_function_at(struct symbols_locals *l, struct symbols_function *f,
                                          const struct symbols_in_frame *frame, uint64_t address,
                                          uint64_t *begin)
{
    struct symbols_local *found = NULL;
    struct definitions *definitions;
    Dwarf_Die function;
    uint64_t code;
    for (size_t i = 0; i < f->n && f->placed; i++) {
        struct symbols_local *v = &f->list[i];
        uint64_t low = beginning(v, frame);
        if (address < low || address - low >= (uint64_t)(v->high - v->low))
            continue;
        if (found == NULL || (find_function(l, frame->offset, &function, &code, &definitions) == 0 &&
                              dwarf_haspc(&v->scope, code) == 1 && dwarf_haspc(&found->scope, code) != 1))
            found = v;
    }
    if (found == NULL && f->lengths.name != NULL && address < frame->cfa + (uint64_t)f->low)
        found = &f->lengths;
    *begin = found != NULL ? beginning(found, frame) : UINT64_MAX;
    return found;
}

struct symbols_local *symbols_function_named(struct symbols_function *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->list[i].name, name) == 0)
            return &f->list[i];
    return NULL;
}
