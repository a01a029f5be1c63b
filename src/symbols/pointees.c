/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/pointees.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"
#include "symbols/members.h"

/* Deeper nesting is corrupt. */
#define MOST_DEPTH 64u

int symbols_pointees_of(struct definitions *d, Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Die pointer;
    if (symbols_members_type(d, die, &pointer) != 0)
        return -1;
    int tag = dwarf_tag(&pointer);
    if (tag != DW_TAG_pointer_type && tag != DW_TAG_reference_type && tag != DW_TAG_rvalue_reference_type)
        return -1;
    if (symbols_members_type(d, &pointer, type) != 0) {
        *type = (Dwarf_Die){0};
        return 1;
    }
    return symbols_members_is_structure(type) ? 0 : 1;
}

static int is_in_register(Dwarf_Die *die, Dwarf_Addr address, unsigned number)
{
    Dwarf_Attribute location;
    Dwarf_Op *ops;
    size_t n;
    return dwarf_attr(die, DW_AT_location, &location) != NULL &&
           dwarf_getlocation_addr(&location, address, &ops, &n, 1) == 1 && n == 1 &&
           ((ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31 &&
             (unsigned)(ops[0].atom - DW_OP_reg0) == number) ||
            (ops[0].atom == DW_OP_regx && ops[0].number == number));
}

/* An array, or structure, that is in memory to which a register points: Fortran passes them so. */
static int is_based(Dwarf_Die *die, Dwarf_Addr address, unsigned number)
{
    Dwarf_Attribute location;
    Dwarf_Op *ops;
    size_t n;
    return dwarf_attr(die, DW_AT_location, &location) != NULL &&
           dwarf_getlocation_addr(&location, address, &ops, &n, 1) == 1 && n == 1 &&
           ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31 &&
           (unsigned)(ops[0].atom - DW_OP_breg0) == number && ops[0].number == 0;
}

/* A pointer whose value is that of a register and a constant, *added: of code that keeps the address of
 * something around or before the structure, as of the node that an element of a list is in. */
static int is_from_register(Dwarf_Die *die, Dwarf_Addr address, unsigned number, int64_t *added)
{
    Dwarf_Attribute location;
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_attr(die, DW_AT_location, &location) == NULL ||
        dwarf_getlocation_addr(&location, address, &ops, &n, 1) != 1 || n != 2 || ops[0].atom < DW_OP_breg0 ||
        ops[0].atom > DW_OP_breg31 || (unsigned)(ops[0].atom - DW_OP_breg0) != number ||
        ops[1].atom != DW_OP_stack_value)
        return 0;
    *added = (int64_t)ops[0].number;
    return 1;
}

/* The structure that a variable is, or an array of. As symbols_pointees_of. */
static int structure_of(struct definitions *d, Dwarf_Die *die, Dwarf_Die *type)
{
    if (symbols_members_type(d, die, type) != 0)
        return -1;
    for (unsigned steps = 0; dwarf_tag(type) == DW_TAG_array_type; steps++)
        if (steps == MOST_DIMENSIONS || symbols_members_type(d, type, type) != 0)
            return -1;
    return symbols_members_is_structure(type) ? 0 : 1;
}

/* Where a variable is. */
struct place {
    int any; /* also variables that point to something else than a structure */
    int in_frame, near;
    unsigned number; /* of the register */
    int64_t
        displacement; /* in_frame: from what DW_OP_fbreg counts from; near: of an access, from the register */
    int64_t added;    /* result, near: to the register */
};

static int is_in_frame(Dwarf_Die *die, int64_t displacement)
{
    Dwarf_Attribute location;
    Dwarf_Op *ops;
    size_t n;
    return dwarf_attr(die, DW_AT_location, &location) != NULL &&
           dwarf_getlocation(&location, &ops, &n) == 0 && n == 1 && ops[0].atom == DW_OP_fbreg &&
           (int64_t)ops[0].number == displacement;
}

static int is_at(Dwarf_Die *die, Dwarf_Addr address, const struct place *place)
{
    return place->in_frame ? is_in_frame(die, place->displacement)
                           : is_in_register(die, address, place->number);
}

static int is_same(Dwarf_Die *a, Dwarf_Die *b)
{
    const char *x = dwarf_diename(a), *y = dwarf_diename(b);
    return a->addr == b->addr || (x != NULL && y != NULL && strcmp(x, y) == 0);
}

/* What a variable points to, or is, that is at a place. As symbols_pointees_of; -1 also: it is not there. */
static int pointee_at(struct definitions *d, Dwarf_Die *die, Dwarf_Addr address, const struct place *place,
                      int64_t *added, Dwarf_Die *type)
{
    Dwarf_Word bytes;
    *added = 0;
    if (place->near) {
        if (!is_from_register(die, address, place->number, added) || place->displacement < *added ||
            symbols_pointees_of(d, die, type) != 0 || symbols_members_size(d, type, &bytes) != 0)
            return -1;
        return (uint64_t)(place->displacement - *added) < bytes ? 0 : -1;
    }
    if (is_at(die, address, place))
        return symbols_pointees_of(d, die, type);
    return !place->in_frame && is_based(die, address, place->number) ? structure_of(d, die, type) : -1;
}

/* Variables of a scope and of the blocks in it. Returns how many point to structures (or to anything, if
 * place->any is set) that differ, at most 2; *type: the first of those. */
static int find_variables(struct definitions *d, Dwarf_Die *scope, Dwarf_Addr address, struct place *place,
                          int found, Dwarf_Die *type, unsigned depth)
{
    Dwarf_Die die, other;
    int64_t added;
    int code;
    if (depth > MOST_DEPTH || dwarf_child(scope, &die) != 0)
        return found;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
        case DW_TAG_formal_parameter:
            code = pointee_at(d, &die, address, place, &added, &other);
            if (code < 0 || (code > 0 && (!place->any || other.addr == NULL)))
                break;
            if (found == 0) {
                *type = other;
                place->added = added;
            }
            found += found == 0 || !is_same(type, &other) || place->added != added;
            break;
        case DW_TAG_lexical_block:
            if (dwarf_haspc(&die, address) == 1)
                found = find_variables(d, &die, address, place, found, type, depth + 1);
            break;
        default:
            break;
        }
    } while (found < 2 && dwarf_siblingof(&die, &die) == 0);
    return found;
}

static int find_in_register(const struct scopes *s, uint64_t address, struct place *place, Dwarf_Die *type)
{
    int found = 0;
    for (const struct scope *scope = scopes_find(s, address); scope != NULL && found < 2;
         scope = scopes_outer(s, scope)) {
        Dwarf_Die die = scope->die;
        found = find_variables(scopes_definitions(s), &die, address, place, found, type, 0);
    }
    return found == 1 ? 0 : -1;
}

int symbols_pointees_register(const struct scopes *s, uint64_t address, unsigned number, Dwarf_Die *type)
{
    struct place place = {.number = number};
    return find_in_register(s, address, &place, type);
}

int symbols_pointees_near(const struct scopes *s, uint64_t address, unsigned number, int64_t *displacement,
                          Dwarf_Die *type)
{
    struct place place = {.near = 1, .number = number, .displacement = *displacement};
    if (find_in_register(s, address, &place, type) != 0)
        return -1;
    *displacement -= place.added;
    return 0;
}

int symbols_pointees_any(const struct scopes *s, uint64_t address, unsigned number, Dwarf_Die *type)
{
    struct place place = {.any = 1, .number = number};
    return find_in_register(s, address, &place, type);
}

int symbols_pointees_stored(struct definitions *d, Dwarf_Die *around, int64_t displacement, Dwarf_Die *type)
{
    if (symbols_members_is_structure(around))
        return displacement < 0 ? -1 : symbols_members_pointee(d, around, (uint64_t)displacement, type);
    return dwarf_tag(around) == DW_TAG_pointer_type ? symbols_members_type(d, around, type) : -1;
}

/* What DW_OP_fbreg of a function counts from, relative to rbp: in code with a frame pointer, the canonical
 * frame address is 16 bytes above. 0, or -1: not known. */
static int frame_base(Dwarf_Die *function, int64_t *above)
{
    Dwarf_Attribute base;
    Dwarf_Op *ops;
    size_t n;
    if (dwarf_attr_integrate(function, DW_AT_frame_base, &base) == NULL ||
        dwarf_getlocation(&base, &ops, &n) != 0 || n != 1)
        return -1;
    *above = ops[0].atom == DW_OP_call_frame_cfa ? 16 : 0;
    return ops[0].atom == DW_OP_call_frame_cfa || ops[0].atom == DW_OP_reg6 ? 0 : -1;
}

int symbols_pointees_frame(const struct scopes *s, uint64_t address, int64_t displacement, Dwarf_Die *type)
{
    const struct scope *scope = scopes_find(s, address);
    Dwarf_Die die = scope != NULL ? scope->die : (Dwarf_Die){0};
    int64_t above;
    if (scope == NULL || dwarf_tag(&die) != DW_TAG_subprogram || frame_base(&die, &above) != 0)
        return -1;
    struct place place = {.in_frame = 1, .displacement = displacement - above};
    return find_variables(scopes_definitions(s), &die, address, &place, 0, type, 0) == 1 ? 0 : -1;
}

int symbols_pointees_returns_memory(const struct scopes *s, uint64_t address)
{
    const struct scope *scope = scopes_find(s, address);
    Dwarf_Attribute attribute;
    Dwarf_Die die;
    while (scope != NULL && scopes_outer(s, scope) != NULL)
        scope = scopes_outer(s, scope);
    if (scope == NULL)
        return 0;
    die = scope->die;
    for (unsigned steps = 0; steps < MOST_DEPTH; steps++) {
        if (dwarf_attr_integrate(&die, DW_AT_type, &attribute) == NULL ||
            dwarf_formref_die(&attribute, &die) == NULL)
            return 0;
        if (dwarf_tag(&die) != DW_TAG_typedef)
            return dwarf_tag(&die) == DW_TAG_pointer_type && !dwarf_hasattr(&die, DW_AT_type);
    }
    return 0;
}

static int begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static const char *mangled_name(Dwarf_Die *function)
{
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute) != NULL
               ? dwarf_formstring(&attribute)
               : NULL;
}

/* Whether a function of Rust allocates what its parameter T says: a method of Box, RawVec or RawTable, whose
 * names are alloc::boxed::Box<T>::new or, mangled in the newer way, <alloc::boxed::Box<program::Node>>::new.
 */
static int is_of_rust_storage(Dwarf_Die *function, int *is_table)
{
    const char *mangled = mangled_name(function);
    if (mangled == NULL || (strstr(mangled, "5alloc") == NULL && strstr(mangled, "9hashbrown") == NULL))
        return 0;
    char *name = symbols_demangle(mangled);
    const char *at = name != NULL && *name == '<' ? name + 1 : name;
    *is_table = at != NULL && begins_with(at, "hashbrown::raw::RawTable<");
    int is =
        *is_table ||
        (at != NULL && (begins_with(at, "alloc::boxed::Box<") || begins_with(at, "alloc::raw_vec::RawVec<")));
    free(name);
    return is;
}

/* What a function returns that allocates for others, whose name is `allocate` or, if wider is set, ends so,
 * as std::vector's _M_allocate. As symbols_pointees_of; -1 also: it is another one. */
static int allocate_result(struct definitions *d, Dwarf_Die *function, int wider, Dwarf_Die *type)
{
    static const char wanted[] = "allocate";
    const char *name = dwarf_diename(function);
    size_t length = name != NULL ? strlen(name) : 0, end = sizeof wanted - 1;
    return length >= end && (wider || length == end) && strcmp(name + length - end, wanted) == 0
               ? symbols_pointees_of(d, function, type)
               : -1;
}

/* As symbols_pointees_allocated, of one function. */
static int allocated_by(struct definitions *d, Dwarf_Die *function, Dwarf_Die *type, int *is_table)
{
    const char *name = dwarf_diename(function);
    int code = allocate_result(d, function, 0, type);
    if (code >= 0 || name == NULL)
        return code;
    int is_unique = symbols_members_is_template(name, "make_unique");
    if ((!is_unique && !is_of_rust_storage(function, is_table)) ||
        symbols_members_parameter(d, function, is_unique ? "_Tp" : "T", type) != 0)
        return -1;
    for (unsigned steps = 0; dwarf_tag(type) == DW_TAG_array_type; steps++)
        if (steps == MOST_DIMENSIONS || symbols_members_type(d, type, type) != 0)
            return 1;
    return symbols_members_is_structure(type) ? 0 : 1;
}

int symbols_pointees_allocated(const struct scopes *s, uint64_t address, Dwarf_Die *type, int *is_table)
{
    int code = -1;
    *is_table = 0;
    const struct scope *scope = scopes_find(s, address);
    for (; scope != NULL && code < 0; scope = scopes_outer(s, scope)) {
        Dwarf_Die die = scope->die;
        code = allocated_by(scopes_definitions(s), &die, type, is_table);
    }
    /* An allocator calls the one below it. GCC makes one function of those that are the same for types of the
     * same size: which of the types it is, only the outermost one says. */
    for (int outer; scope != NULL; scope = scopes_outer(s, scope)) {
        Dwarf_Die die = scope->die, other;
        if ((outer = allocate_result(scopes_definitions(s), &die, 1, &other)) < 0)
            break;
        code = outer;
        *type = other;
    }
    return code;
}

enum symbols_table_part symbols_pointees_table_part(const struct scopes *s, uint64_t address)
{
    static const char *const of_control[] = {"7control", "5Group", "RawTableInner8set_ctrl",
                                             "RawTableInner4ctrl"};
    const struct scope *scope = scopes_find(s, address);
    Dwarf_Die unit, innermost = scope != NULL ? scope->die : (Dwarf_Die){0};
    if (scope == NULL || dwarf_diecu(&innermost, &unit, NULL, NULL) == NULL ||
        dwarf_srclang(&unit) != DW_LANG_Rust)
        return SYMBOLS_TABLE_UNKNOWN;
    for (; scope != NULL; scope = scopes_outer(s, scope)) {
        Dwarf_Die die = scope->die;
        const char *mangled = mangled_name(&die);
        if (mangled == NULL || strstr(mangled, "9hashbrown") == NULL)
            continue;
        for (size_t i = 0; i < sizeof of_control / sizeof of_control[0]; i++)
            if (strstr(mangled, of_control[i]) != NULL)
                return SYMBOLS_TABLE_CONTROL;
    }
    return SYMBOLS_TABLE_ENTRIES;
}
