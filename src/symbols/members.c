/* SPDX-License-Identifier: Apache-2.0 */
/* members.c - walks down a type: through arrays to their elements, through structures to the member that has
 * the byte; through enums of Rust to the variants that have it. */
#include "symbols/members.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

/* Deeper nesting, or more origins of a definition, are corrupt: there may be a cycle. */
#define MOST_STEPS 64u
/* Fields at one place that are named. */
#define MOST_TOGETHER 3u

/* The walk down a type. */
struct walk {
    uint64_t offset; /* in the current type */
    Dwarf_Die type;
    struct symbols_field *field;
    int named; /* a structure's field is in the name */
};

static int put(struct walk *w, const char *before, const char *text)
{
    size_t used = strlen(w->field->name), room = sizeof w->field->name - used;
    int n = snprintf(w->field->name + used, room, "%s%s", before, text);
    return n >= 0 && (size_t)n < room ? 0 : -1;
}

int symbols_members_type(Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute attribute;
    Dwarf_Die named;
    return dwarf_attr_integrate(die, DW_AT_type, &attribute) != NULL &&
                   dwarf_formref_die(&attribute, &named) != NULL && dwarf_peel_type(&named, type) == 0
               ? 0
               : -1;
}

/* Elements of an array in one dimension. 0, or -1. */
static int elements_of(Dwarf_Die *range, uint64_t *elements)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number, first = 0;
    if (dwarf_attr_integrate(range, DW_AT_count, &attribute) != NULL)
        return dwarf_formudata(&attribute, elements) == 0 ? 0 : -1;
    if (dwarf_attr_integrate(range, DW_AT_lower_bound, &attribute) != NULL &&
        dwarf_formudata(&attribute, &first) != 0)
        return -1;
    if (dwarf_attr_integrate(range, DW_AT_upper_bound, &attribute) == NULL ||
        dwarf_formudata(&attribute, &number) != 0)
        return -1;
    *elements = number + 1 - first;
    return 0;
}

/* Units that dwz makes of what several units have in common are in no language, and libdw knows the size of
 * an array only if it knows where its language begins to count. Other languages than Fortran do so at 0. */
static int array_size(Dwarf_Die *type, uint64_t *bytes)
{
    Dwarf_Die unit, child, array = *type, element;
    uint64_t all = 1, elements;
    if (dwarf_diecu(type, &unit, NULL, NULL) == NULL || dwarf_srclang(&unit) != -1)
        return -1;
    for (unsigned steps = 0; dwarf_tag(&array) == DW_TAG_array_type; steps++) {
        if (steps == MOST_STEPS || dwarf_child(&array, &child) != 0)
            return -1;
        do {
            if (dwarf_tag(&child) == DW_TAG_subrange_type) {
                if (elements_of(&child, &elements) != 0)
                    return -1;
                all *= elements;
            }
        } while (dwarf_siblingof(&child, &child) == 0);
        if (symbols_members_type(&array, &element) != 0)
            return -1;
        array = element;
    }
    if (dwarf_aggregate_size(&array, bytes) != 0)
        return -1;
    *bytes *= all;
    return 0;
}

int symbols_members_size(Dwarf_Die *type, uint64_t *bytes)
{
    if (dwarf_aggregate_size(type, bytes) == 0)
        return 0;
    return dwarf_tag(type) == DW_TAG_array_type ? array_size(type, bytes) : -1;
}

int symbols_members_parameter(Dwarf_Die *die, const char *name, Dwarf_Die *type)
{
    static const unsigned origins[] = {DW_AT_abstract_origin, DW_AT_specification};
    Dwarf_Die at = *die, child, origin;
    for (unsigned steps = 0; steps < MOST_STEPS; steps++) {
        Dwarf_Attribute attribute;
        if (dwarf_child(&at, &child) == 0)
            do {
                const char *found =
                    dwarf_tag(&child) == DW_TAG_template_type_parameter ? dwarf_diename(&child) : NULL;
                if (found != NULL && strcmp(found, name) == 0)
                    return symbols_members_type(&child, type);
            } while (dwarf_siblingof(&child, &child) == 0);
        size_t i = 0, n = sizeof origins / sizeof origins[0];
        while (i < n && (dwarf_attr(&at, origins[i], &attribute) == NULL ||
                         dwarf_formref_die(&attribute, &origin) == NULL))
            i++;
        if (i == n)
            return -1;
        at = origin;
    }
    return -1;
}

/* Bytes in which the containers of GNU's C++ library make an element: on to that. */
static int step_buffer(struct walk *w)
{
    const char *name = dwarf_diename(&w->type);
    Dwarf_Die element;
    if (name == NULL ||
        (strncmp(name, "__aligned_membuf<", 17) != 0 && strncmp(name, "__aligned_buffer<", 17) != 0) ||
        symbols_members_parameter(&w->type, "_Tp", &element) != 0)
        return -1;
    w->type = element;
    return 0;
}

/* In an array: on to the element. */
static int step_array(struct walk *w)
{
    Dwarf_Die element, child;
    Dwarf_Word bytes;
    if (symbols_members_type(&w->type, &element) != 0 || symbols_members_size(&element, &bytes) != 0 ||
        bytes == 0)
        return -1;
    if (dwarf_child(&w->type, &child) == 0)
        do
            if (dwarf_tag(&child) == DW_TAG_subrange_type && put(w, "[", "]") != 0)
                return -1;
        while (dwarf_siblingof(&child, &child) == 0);
    w->offset %= bytes;
    w->type = element;
    return 0;
}

/* The bytes of a structure in which a member lies, from low up to high. */
static int span_of(Dwarf_Die *member, Dwarf_Die *type, uint64_t *low, uint64_t *high)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0, bits, bytes;
    if (symbols_members_type(member, type) != 0)
        return -1;
    if (dwarf_attr_integrate(member, DW_AT_data_bit_offset, &attribute) != NULL) {
        if (dwarf_formudata(&attribute, &value) != 0 ||
            dwarf_attr_integrate(member, DW_AT_bit_size, &attribute) == NULL ||
            dwarf_formudata(&attribute, &bits) != 0 || bits == 0)
            return -1;
        *low = value / 8;
        *high = (value + bits + 7) / 8;
        return 0;
    }
    if (dwarf_attr_integrate(member, DW_AT_data_member_location, &attribute) != NULL &&
        dwarf_formudata(&attribute, &value) != 0)
        return -1; /* such as a virtual base class */
    if (symbols_members_size(type, &bytes) != 0)
        return -1;
    *low = value;
    *high = value + bytes;
    return 0;
}

/* Whether a class has no data of its own. As a base class it lies where other members do. */
static int is_empty(Dwarf_Die *type)
{
    Dwarf_Die child;
    if (dwarf_child(type, &child) == 0)
        do
            if ((dwarf_tag(&child) == DW_TAG_member && !dwarf_hasattr_integrate(&child, DW_AT_external)) ||
                dwarf_tag(&child) == DW_TAG_inheritance)
                return 0;
        while (dwarf_siblingof(&child, &child) == 0);
    return 1;
}

/* The member of a structure that has the byte; low: where it begins. 0, or -1. */
static int member_at(Dwarf_Die *structure, uint64_t offset, Dwarf_Die *member, Dwarf_Die *type, uint64_t *low)
{
    uint64_t high;
    if (dwarf_child(structure, member) == 0)
        do
            if (dwarf_tag(member) == DW_TAG_member && span_of(member, type, low, &high) == 0 &&
                offset >= *low && offset < high)
                return 0;
        while (dwarf_siblingof(member, member) == 0);
    return -1;
}

static int is_option(Dwarf_Die *type)
{
    const char *name = dwarf_diename(type);
    return name != NULL && strncmp(name, "Option<", 7) == 0;
}

/* In an enum of Rust: on to the variant that has a field there; its name is a part of the field's, except for
 * Some of an Option, whose field is the value. 1: several have one, or none, as it is the number that tells
 * which variant it is. */
static int step_enum(struct walk *w, Dwarf_Die *part)
{
    Dwarf_Die variant, payload, member, type, only = {0};
    const char *name = dwarf_diename(&w->type), *names[MOST_TOGETHER][2] = {{0}};
    uint64_t low, within, start = 0;
    unsigned n = 0;
    int some = is_option(&w->type);
    if (dwarf_child(part, &variant) != 0)
        return -1;
    do {
        Dwarf_Die of;
        if (dwarf_tag(&variant) != DW_TAG_variant ||
            member_at(&variant, w->offset, &payload, &of, &low) != 0 ||
            member_at(&of, w->offset - low, &member, &type, &within) != 0)
            continue;
        if (n < MOST_TOGETHER) {
            names[n][0] = dwarf_diename(&payload);
            names[n][1] = dwarf_diename(&member);
        }
        n++;
        only = type;
        start = low + within;
    } while (dwarf_siblingof(&variant, &variant) == 0);
    if (!w->named && !some)
        snprintf(w->field->type, sizeof w->field->type, "%s", name != NULL ? name : "");
    if (n == 0) {
        w->named |= !some;
        return some || put(w, ".", "{variant}") == 0 ? 1 : -1;
    }
    for (unsigned i = 0; i < n && i < MOST_TOGETHER && !some; i++)
        if (names[i][0] == NULL || names[i][1] == NULL || put(w, i == 0 ? "." : "|", names[i][0]) != 0 ||
            put(w, ".", names[i][1]) != 0)
            return -1;
    w->named |= !some;
    w->offset -= start;
    w->type = only;
    return n > 1;
}

/* In a structure: on to the member. 1: there is more than one, and no way further. */
static int step_structure(struct walk *w)
{
    Dwarf_Die child, type, only = {0};
    const char *names[MOST_TOGETHER] = {0};
    uint64_t low, high, start = 0;
    unsigned n = 0;
    if (step_buffer(w) == 0)
        return 0;
    if (dwarf_child(&w->type, &child) != 0)
        return -1;
    do {
        int tag = dwarf_tag(&child);
        if (tag == DW_TAG_variant_part)
            return step_enum(w, &child);
        if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
            dwarf_hasattr_integrate(&child, DW_AT_external) || span_of(&child, &type, &low, &high) != 0 ||
            w->offset < low || w->offset >= high || (tag == DW_TAG_inheritance && is_empty(&type)))
            continue;
        if (n < MOST_TOGETHER)
            names[n] = tag == DW_TAG_member ? dwarf_diename(&child) : NULL;
        n++;
        only = type;
        start = low;
    } while (dwarf_siblingof(&child, &child) == 0);
    if (n == 0)
        return -1;
    const char *name = dwarf_diename(&w->type);
    if (!w->named && names[0] != NULL)
        snprintf(w->field->type, sizeof w->field->type, "%s", name != NULL ? name : "");
    w->named |= names[0] != NULL;
    for (unsigned i = 0; i < n && i < MOST_TOGETHER; i++)
        if (names[i] != NULL && put(w, i == 0 ? "." : "|", names[i]) != 0)
            return -1;
    w->offset -= start;
    w->type = only;
    return n > 1;
}

int symbols_members_find(Dwarf_Die *type, uint64_t offset, struct symbols_field *field)
{
    struct walk w = {.offset = offset, .type = *type, .field = field};
    int code = 0;
    *field = (struct symbols_field){0};
    for (unsigned steps = 0; code == 0 && steps < MOST_STEPS; steps++) {
        switch (dwarf_tag(&w.type)) {
        case DW_TAG_array_type:
            code = step_array(&w);
            break;
        case DW_TAG_structure_type:
        case DW_TAG_class_type:
        case DW_TAG_union_type:
            code = step_structure(&w);
            break;
        default:
            code = 1;
        }
    }
    return code > 0 && w.named ? 0 : -1;
}
