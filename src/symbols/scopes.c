/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/scopes.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/array.h"

/* Deeper nesting is corrupt. */
#define MOST_DEPTH 512u

struct range {
    Dwarf_Addr low, high;
    uint32_t scope;
};

struct scopes {
    struct definitions *definitions;
    struct scope *list;
    size_t n, capacity;
    struct range *ranges; /* by low; of equal ones the outer one first */
    Dwarf_Addr *reach;    /* the largest high up to there */
    size_t nranges, ranges_capacity;
};

static int add_scope(struct scopes *s, Dwarf_Die *die, uint32_t outer, uint32_t depth)
{
    Dwarf_Addr base, low, high;
    if (ARRAY_GROW(s->list, s->n, s->capacity) < 0)
        return -1;
    s->list[s->n++] = (struct scope){*die, outer, depth};
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &low, &high)) > 0;) {
        if (low >= high)
            continue;
        if (ARRAY_GROW(s->ranges, s->nranges, s->ranges_capacity) < 0)
            return -1;
        s->ranges[s->nranges++] = (struct range){low, high, (uint32_t)s->n - 1};
    }
    return 0;
}

/* Whether the linker left the function out. What is inlined there may have addresses of other functions. */
static int is_left_out(Dwarf_Die *function)
{
    Dwarf_Addr base, low, high;
    return dwarf_ranges(function, 0, &base, &low, &high) > 0 && low == SCOPES_LEFT_OUT;
}

/* The children of a DIE; outer, depth: of the scope that they are in. */
static int add_children(struct scopes *s, Dwarf_Die *parent, uint32_t outer, uint32_t depth, unsigned nesting)
{
    Dwarf_Die die;
    if (nesting > MOST_DEPTH || dwarf_child(parent, &die) != 0)
        return 0;
    do {
        uint32_t inner = outer, deeper = depth;
        switch (dwarf_tag(&die)) {
        case DW_TAG_subprogram:
            if (is_left_out(&die))
                continue;
            __attribute__((fallthrough));
        case DW_TAG_inlined_subroutine:
            deeper = depth + 1;
            if (add_scope(s, &die, outer, deeper) < 0)
                return -1;
            inner = (uint32_t)s->n;
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
            break;
        default:
            continue;
        }
        if (add_children(s, &die, inner, deeper, nesting + 1) < 0)
            return -1;
    } while (dwarf_siblingof(&die, &die) == 0);
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return x->scope < y->scope ? -1 : x->scope > y->scope; /* outer ones were read first */
}

Dwarf_Die scopes_whole_unit(const Dwarf_Die *unit)
{
    Dwarf_Die split = {0};
    uint8_t kind = 0;
    if (dwarf_cu_info(unit->cu, NULL, &kind, NULL, &split, NULL, NULL, NULL) == 0 && kind == DW_UT_skeleton &&
        split.cu != NULL)
        return split;
    return *unit;
}

struct scopes *scopes_new(Dwarf_Die *unit, struct definitions *definitions)
{
    struct scopes *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->definitions = definitions;
    if (add_children(s, unit, 0, 0, 0) < 0 ||
        (s->reach = malloc((s->nranges + 1) * sizeof *s->reach)) == NULL) {
        scopes_free(s);
        return NULL;
    }
    if (s->nranges > 0)
        qsort(s->ranges, s->nranges, sizeof *s->ranges, compare);
    Dwarf_Addr reach = 0;
    for (size_t i = 0; i < s->nranges; i++)
        s->reach[i] = reach = s->ranges[i].high > reach ? s->ranges[i].high : reach;
    return s;
}

struct definitions *scopes_definitions(const struct scopes *s)
{
    return s->definitions;
}

void scopes_free(struct scopes *s)
{
    if (s == NULL)
        return;
    free(s->list);
    free(s->ranges);
    free(s->reach);
    free(s);
}

const struct scope *scopes_find(const struct scopes *s, Dwarf_Addr address)
{
    const struct scope *best = NULL;
    for (size_t i = s != NULL ? ARRAY_UP_TO(s->ranges, s->nranges, low, address) : 0;
         i > 0 && s->reach[i - 1] > address; i--) {
        const struct range *range = &s->ranges[i - 1];
        const struct scope *scope = &s->list[range->scope];
        if (address < range->high && (best == NULL || scope->depth > best->depth))
            best = scope;
    }
    return best;
}

const struct scope *scopes_outer(const struct scopes *s, const struct scope *scope)
{
    return scope->outer != 0 ? &s->list[scope->outer - 1] : NULL;
}
