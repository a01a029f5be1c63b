/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types.c - a variable is found by the address that its DW_AT_location has.
 *
 * Variables outside of functions are listed first. Those inside take a walk through the whole debug
 * information, which is done only if an address is not among the others.
 *
 * A COMMON block of Fortran is one variable for the linker. Its members are variables for the compiler, which
 * may have other names in each unit: those names together are the field.
 */
#include "symbols/types.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbols/members.h"
#include "symbols/pointees.h"
#include "symbols/scopes.h"

/* Deeper nesting is corrupt. */
#define MOST_DEPTH 512u
/* Members of COMMON blocks at one place that are named. */
#define MOST_TOGETHER 3u

struct variable {
    uint64_t address;
    Dwarf_Die die;
    int in_common;
};

struct symbols_types {
    Dwfl_Module *module;
    struct definitions *definitions;
    struct variable *variables; /* by address */
    size_t n, capacity;
    int has_locals; /* variables of functions are in the list */
};

/* --- variables --- */

static int address_of(Dwarf_Die *die, uint64_t *address)
{
    Dwarf_Attribute location, operand;
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_attr(die, DW_AT_location, &location) == NULL || dwarf_getlocation(&location, &ops, &n) != 0 ||
        n < 1 || n > 2)
        return -1;
    if (n == 2 && (ops[1].atom == DW_OP_form_tls_address || ops[1].atom == DW_OP_GNU_push_tls_address)) {
        *address = ops[0].number | SYMBOLS_TYPES_TLS;
        return ops[0].atom == DW_OP_const8u || ops[0].atom == DW_OP_const4u || ops[0].atom == DW_OP_addr ? 0
                                                                                                         : -1;
    }
    if (ops[0].atom == DW_OP_addr)
        *address = ops[0].number;
    else if ((ops[0].atom != DW_OP_addrx && ops[0].atom != DW_OP_GNU_addr_index) ||
             dwarf_getlocation_attr(&location, &ops[0], &operand) != 0 ||
             dwarf_formaddr(&operand, address) != 0)
        return -1;
    if (n == 2 && ops[1].atom != DW_OP_plus_uconst)
        return -1;
    *address += n == 2 ? ops[1].number : 0;
    return 0;
}

static int add_variable(struct symbols_types *t, Dwarf_Die *die, int in_common)
{
    uint64_t address;
    if (address_of(die, &address) != 0)
        return 0;
    if (ARRAY_GROW(t->variables, t->n, t->capacity) < 0)
        return -1;
    t->variables[t->n++] = (struct variable){address, *die, in_common};
    return 0;
}

static int add_children(struct symbols_types *t, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die die;
    if (depth > MOST_DEPTH || dwarf_child(parent, &die) != 0)
        return 0;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
            if (add_variable(t, &die, dwarf_tag(parent) == DW_TAG_common_block) < 0)
                return -1;
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_common_block:
            if (add_children(t, &die, depth + 1) < 0)
                return -1;
            break;
        case DW_TAG_subprogram: /* in Fortran also the main program's variables */
        case DW_TAG_lexical_block:
        case DW_TAG_inlined_subroutine:
            if (t->has_locals && add_children(t, &die, depth + 1) < 0)
                return -1;
            break;
        default:
            break;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct variable *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void list_variables(struct symbols_types *t)
{
    Dwarf_Addr bias;
    t->n = 0;
    for (Dwarf_Die *unit = NULL; (unit = dwfl_module_nextcu(t->module, unit, &bias)) != NULL;) {
        Dwarf_Die whole = scopes_whole_unit(unit);
        if (add_children(t, &whole, 0) < 0)
            break;
    }
    if (t->n > 0)
        qsort(t->variables, t->n, sizeof *t->variables, compare);
}

static struct variable *find_variable(struct symbols_types *t, uint64_t address)
{
    const struct variable key = {.address = address};
    struct variable *found = NULL;
    if (t->n > 0)
        found = bsearch(&key, t->variables, t->n, sizeof *t->variables, compare);
    if (found == NULL && !t->has_locals) {
        t->has_locals = 1;
        list_variables(t);
        return find_variable(t, address);
    }
    return found;
}

static int has_name(const char *const *names, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

/* The members of a COMMON block that have the byte at `at`, and begin at the same place. 0, or -1. */
static int find_member(const struct symbols_types *t, uint64_t address, uint64_t at,
                       struct symbols_field *field)
{
    struct symbols_field inner, kept = {0};
    const char *names[MOST_TOGETHER];
    unsigned n = 0;
    uint64_t start = 0;
    for (size_t i = ARRAY_UP_TO(t->variables, t->n, address, at);
         i > 0 && t->variables[i - 1].address >= address; i--) {
        struct variable *v = &t->variables[i - 1];
        const char *name = dwarf_diename(&v->die);
        Dwarf_Die type;
        Dwarf_Word bytes;
        if (n > 0 && v->address != start)
            break;
        if (!v->in_common || name == NULL || n == MOST_TOGETHER || has_name(names, n, name) ||
            symbols_members_type(t->definitions, &v->die, &type) != 0 ||
            symbols_members_size(t->definitions, &type, &bytes) != 0 || at - v->address >= bytes)
            continue;
        start = v->address;
        names[n++] = name;
        if (symbols_members_find(t->definitions, &type, at - start, &inner) == 0)
            kept = inner;
    }
    *field = (struct symbols_field){0};
    size_t used = 0;
    for (unsigned i = 0; i < n && used < sizeof field->name; i++)
        used += (size_t)snprintf(field->name + used, sizeof field->name - used, "%s%s", i > 0 ? "|" : ".",
                                 names[i]);
    if (n == 1 && used < sizeof field->name) {
        snprintf(field->name + used, sizeof field->name - used, "%s", kept.name);
        memcpy(field->type, kept.type, sizeof field->type);
    }
    return n > 0 ? 0 : -1;
}

static int is_common(const struct symbols_types *t, const struct variable *found)
{
    const struct variable *first = found, *end = t->variables + t->n;
    while (first > t->variables && first[-1].address == found->address)
        first--;
    for (; first < end && first->address == found->address; first++)
        if (first->in_common)
            return 1;
    return 0;
}

struct symbols_types *symbols_types_new(struct symbols_image *image)
{
    Dwfl_Module *module = symbols_image_module(image);
    struct symbols_types *t = module != NULL ? calloc(1, sizeof *t) : NULL;
    if (t == NULL)
        return NULL;
    t->module = module;
    t->definitions = symbols_image_definitions(image);
    list_variables(t);
    return t;
}

void symbols_types_free(struct symbols_types *t)
{
    if (t == NULL)
        return;
    free(t->variables);
    free(t);
}

int symbols_types_find(struct symbols_types *t, uint64_t address, uint64_t offset,
                       struct symbols_field *field)
{
    struct variable *variable = find_variable(t, address);
    Dwarf_Die type;
    if (variable != NULL && is_common(t, variable))
        return find_member(t, address, address + offset, field);
    return variable != NULL && symbols_members_type(t->definitions, &variable->die, &type) == 0
               ? symbols_members_find(t->definitions, &type, offset, field)
               : -1;
}

int symbols_types_variable(struct symbols_types *t, uint64_t address, Dwarf_Die *variable)
{
    const struct variable *found = find_variable(t, address);
    if (found == NULL)
        return -1;
    *variable = found->die;
    return 0;
}

int symbols_types_around(struct symbols_types *t, uint64_t address, Dwarf_Die *variable, uint64_t *offset)
{
    size_t i = ARRAY_UP_TO(t->variables, t->n, address, address);
    Dwarf_Die type;
    uint64_t bytes;
    if (i > 0 && symbols_members_type(t->definitions, &t->variables[i - 1].die, &type) == 0 &&
        symbols_members_size(t->definitions, &type, &bytes) == 0 &&
        address - t->variables[i - 1].address < bytes) {
        *variable = t->variables[i - 1].die;
        *offset = address - t->variables[i - 1].address;
        return 0;
    }
    if (t->has_locals)
        return -1;
    t->has_locals = 1;
    list_variables(t);
    return symbols_types_around(t, address, variable, offset);
}

struct definitions *symbols_types_definitions(struct symbols_types *t)
{
    return t->definitions;
}

int symbols_types_element(struct symbols_types *t, uint64_t address, Dwarf_Die *type)
{
    struct variable *variable = find_variable(t, address);
    if (variable == NULL || symbols_members_type(t->definitions, &variable->die, type) != 0)
        return -1;
    for (unsigned steps = 0; dwarf_tag(type) == DW_TAG_array_type; steps++)
        if (steps == MOST_DIMENSIONS || symbols_members_type(t->definitions, type, type) != 0)
            return -1;
    return 0;
}

int symbols_types_pointee(struct symbols_types *t, uint64_t address, Dwarf_Die *type)
{
    struct variable *variable = find_variable(t, address);
    return variable != NULL && symbols_pointees_of(t->definitions, &variable->die, type) == 0 ? 0 : -1;
}
