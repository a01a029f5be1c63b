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
#define DESCRIPTOR_ADDRESS 8u

/* The walk down a type. */
struct walk {
    uint64_t offset; /* in the current type */
    Dwarf_Die type;
    struct definitions *definitions;
    struct symbols_field *field;
    int named; /* a structure's field is in the name */
};

static int put(struct walk *w, const char *before, const char *text)
{
    size_t used = strlen(w->field->name), room = sizeof w->field->name - used;
    int n = snprintf(w->field->name + used, room, "%s%s", before, text);
    return n >= 0 && (size_t)n < room ? 0 : -1;
}

int symbols_members_type(struct definitions *d, Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute attribute;
    Dwarf_Die named;
    if (dwarf_attr_integrate(die, DW_AT_type, &attribute) == NULL ||
        dwarf_formref_die(&attribute, &named) == NULL || dwarf_peel_type(&named, type) != 0)
        return -1;
    definitions_resolve(d, type);
    return 0;
}

/* Where indices of arrays begin, unless debug information says otherwise: 1 in Fortran. Units that dwz makes
 * of what several units have in common are in no language. */
static Dwarf_Word usual_first(Dwarf_Die *type)
{
    Dwarf_Die unit;
    Dwarf_Sword first = 0;
    if (dwarf_diecu(type, &unit, NULL, NULL) == NULL ||
        dwarf_default_lower_bound(dwarf_srclang(&unit), &first) != 0)
        return 0;
    return (Dwarf_Word)first;
}

/* Elements of an array in one dimension. 0, or -1. */
static int elements_of(Dwarf_Die *range, uint64_t *elements)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number, first = usual_first(range);
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

/* libdw does not know the size of an array if its unit only declares the elements, or is in no language. */
static int array_size(struct definitions *d, Dwarf_Die *type, uint64_t *bytes)
{
    Dwarf_Die child, array = *type, element;
    uint64_t all = 1, elements;
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
        if (symbols_members_type(d, &array, &element) != 0)
            return -1;
        array = element;
    }
    if (dwarf_aggregate_size(&array, bytes) != 0)
        return -1;
    *bytes *= all;
    return 0;
}

int symbols_members_size(struct definitions *d, Dwarf_Die *type, uint64_t *bytes)
{
    if (dwarf_aggregate_size(type, bytes) == 0)
        return 0;
    return dwarf_tag(type) == DW_TAG_array_type ? array_size(d, type, bytes) : -1;
}

int symbols_members_parameter(struct definitions *d, Dwarf_Die *die, const char *name, Dwarf_Die *type)
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
                    return symbols_members_type(d, &child, type);
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

int symbols_members_is_template(const char *name, const char *of)
{
    size_t length = strlen(of);
    return strncmp(name, of, length) == 0 && (name[length] == '<' || name[length] == '\0');
}

static int is_of_rust(Dwarf_Die *die)
{
    Dwarf_Die unit;
    return dwarf_diecu(die, &unit, NULL, NULL) != NULL && dwarf_srclang(&unit) == DW_LANG_Rust;
}

/* As in the source: a tuple's fields are 0, 1 and so on in Rust, __0 and __1 in its debug information. */
static const char *member_name(Dwarf_Die *member)
{
    const char *name = dwarf_diename(member);
    int is_numbered = name != NULL && strncmp(name, "__", 2) == 0 && name[2] != '\0' &&
                      name[2 + strspn(name + 2, "0123456789")] == '\0';
    return is_numbered && is_of_rust(member) ? name + 2 : name;
}

/* Structures of Rust's library which hold one value: their only field says nothing more. */
static int is_transparent(Dwarf_Die *type)
{
    static const char *const names[] = {"MaybeUninit<", "ManuallyDrop<", "MaybeDangling<", "UnsafeCell<",
                                        "Cell<",        "NonNull<",      "Unique<",        "RawVec<"};
    const char *name = dwarf_diename(type);
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof names[0]; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return is_of_rust(type);
    return 0;
}

/* The structure that the field's name is relative to, without the allocator that all containers of Rust have.
 */
static void set_type(struct walk *w, const char *name)
{
    static const char usual[] = ", alloc::alloc::Global";
    char *type = w->field->type;
    snprintf(type, sizeof w->field->type, "%s", name != NULL ? name : "");
    for (char *at; (at = strstr(type, usual)) != NULL;)
        memmove(at, at + sizeof usual - 1, strlen(at + sizeof usual - 1) + 1);
}

int symbols_members_is_structure(Dwarf_Die *type)
{
    int tag = dwarf_tag(type);
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* Bytes in which the containers of GNU's C++ library make an element: on to that. If it is a structure, names
 * begin anew with it: the program's is better known than the container's node. */
static int step_buffer(struct walk *w)
{
    const char *name = dwarf_diename(&w->type);
    Dwarf_Die element;
    if (name == NULL ||
        (!symbols_members_is_template(name, "__aligned_membuf") &&
         !symbols_members_is_template(name, "__aligned_buffer")) ||
        symbols_members_parameter(w->definitions, &w->type, "_Tp", &element) != 0)
        return -1;
    w->type = element;
    if (symbols_members_is_structure(&element)) {
        *w->field = (struct symbols_field){0};
        w->named = 0;
    }
    return 0;
}

/* In an array: on to the element. */
static int step_array(struct walk *w)
{
    Dwarf_Die element, child;
    Dwarf_Word bytes;
    if (symbols_members_type(w->definitions, &w->type, &element) != 0 ||
        symbols_members_size(w->definitions, &element, &bytes) != 0 || bytes == 0)
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

int symbols_members_is_descriptor(Dwarf_Die *type)
{
    return dwarf_tag(type) == DW_TAG_array_type && dwarf_hasattr(type, DW_AT_data_location);
}

/* The bytes of a structure in which a member lies, from low up to high. */
static int span_of(struct definitions *d, Dwarf_Die *member, Dwarf_Die *type, uint64_t *low, uint64_t *high)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0, bits, bytes;
    if (symbols_members_type(d, member, type) != 0)
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
    if (symbols_members_is_descriptor(type))
        bytes = DESCRIPTOR_ADDRESS;
    else if (symbols_members_size(d, type, &bytes) != 0)
        return -1;
    *low = value;
    *high = value + bytes;
    return 0;
}

/* Whether a class has no data of its own. As a base class it lies where other members do. */
static int is_empty(struct definitions *d, Dwarf_Die *type, unsigned depth)
{
    Dwarf_Die child, base;
    if (depth == MOST_STEPS)
        return 0;
    if (dwarf_child(type, &child) == 0)
        do
            if ((dwarf_tag(&child) == DW_TAG_member && !dwarf_hasattr_integrate(&child, DW_AT_external)) ||
                (dwarf_tag(&child) == DW_TAG_inheritance &&
                 (symbols_members_type(d, &child, &base) != 0 || !is_empty(d, &base, depth + 1))))
                return 0;
        while (dwarf_siblingof(&child, &child) == 0);
    return 1;
}

/* The member of a structure that has the byte; low: where it begins. 0, or -1. */
static int member_at(struct definitions *d, Dwarf_Die *structure, uint64_t offset, Dwarf_Die *member,
                     Dwarf_Die *type, uint64_t *low)
{
    uint64_t high;
    if (dwarf_child(structure, member) == 0)
        do
            if (dwarf_tag(member) == DW_TAG_member && span_of(d, member, type, low, &high) == 0 &&
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
            member_at(w->definitions, &variant, w->offset, &payload, &of, &low) != 0 ||
            member_at(w->definitions, &of, w->offset - low, &member, &type, &within) != 0)
            continue;
        if (n < MOST_TOGETHER) {
            names[n][0] = member_name(&payload);
            names[n][1] = member_name(&member);
        }
        n++;
        only = type;
        start = low + within;
    } while (dwarf_siblingof(&variant, &variant) == 0);
    if (!w->named && !some)
        set_type(w, name);
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

/* Members that have a byte of a structure. */
struct members {
    const char *names[MOST_TOGETHER]; /* NULL: a base class */
    unsigned n;
    Dwarf_Die type; /* of the last one, and where it begins */
    uint64_t start;
    Dwarf_Die variants; /* the structure is an enum of Rust */
    int has_variants;
};

/* Whether a member is an array of which the debug information has no length, at the end of a structure: *low:
 * where it begins. The structure's size says nothing about it. */
static int is_open(struct definitions *d, Dwarf_Die *member, uint64_t *low)
{
    Dwarf_Attribute attribute;
    Dwarf_Die type, next = *member;
    uint64_t bytes;
    if (dwarf_tag(member) != DW_TAG_member || symbols_members_type(d, member, &type) != 0 ||
        dwarf_tag(&type) != DW_TAG_array_type || symbols_members_is_descriptor(&type) ||
        (symbols_members_size(d, &type, &bytes) == 0 && bytes > 0) ||
        dwarf_attr_integrate(member, DW_AT_data_member_location, &attribute) == NULL ||
        dwarf_formudata(&attribute, low) != 0)
        return 0;
    while (dwarf_siblingof(&next, &next) == 0)
        if (dwarf_tag(&next) == DW_TAG_member)
            return 0;
    return 1;
}

int symbols_members_is_open(struct definitions *d, Dwarf_Die *type, uint64_t *low)
{
    Dwarf_Die child;
    if (!symbols_members_is_structure(type) || dwarf_child(type, &child) != 0)
        return 0;
    do
        if (is_open(d, &child, low))
            return 1;
    while (dwarf_siblingof(&child, &child) == 0);
    return 0;
}

/* Whether a member of a structure which begins at `base` has the byte; *low: where it begins. */
static int has_byte(const struct walk *w, Dwarf_Die *member, uint64_t base, Dwarf_Die *type, uint64_t *low)
{
    uint64_t high;
    if (span_of(w->definitions, member, type, low, &high) == 0 && high > *low)
        return w->offset >= base + *low && w->offset < base + high;
    return w->offset >= base && is_open(w->definitions, member, low) && w->offset - base >= *low &&
           symbols_members_type(w->definitions, member, type) == 0;
}

/* Those of structures without a name are members of what they are in. base: where the structure begins. */
static void find_members(const struct walk *w, Dwarf_Die *structure, uint64_t base, struct members *found,
                         unsigned depth)
{
    Dwarf_Die child, type;
    uint64_t low;
    if (depth == MOST_STEPS || dwarf_child(structure, &child) != 0)
        return;
    do {
        int tag = dwarf_tag(&child);
        const char *name = member_name(&child);
        if (tag == DW_TAG_variant_part) {
            found->variants = child;
            found->has_variants = 1;
            return;
        }
        if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
            dwarf_hasattr_integrate(&child, DW_AT_external) || !has_byte(w, &child, base, &type, &low) ||
            (tag == DW_TAG_inheritance && is_empty(w->definitions, &type, 0)))
            continue;
        if (tag == DW_TAG_member && name == NULL) {
            find_members(w, &type, base + low, found, depth + 1);
            continue;
        }
        if (found->n < MOST_TOGETHER)
            found->names[found->n] = tag == DW_TAG_member ? name : NULL;
        found->n++;
        found->type = type;
        found->start = base + low;
    } while (dwarf_siblingof(&child, &child) == 0);
}

/* In a structure: on to the member. 1: there is more than one, and no way further. */
static int step_structure(struct walk *w)
{
    struct members found = {0};
    if (step_buffer(w) == 0)
        return 0;
    find_members(w, &w->type, 0, &found, 0);
    if (found.has_variants)
        return step_enum(w, &found.variants);
    if (found.n == 0)
        return -1;
    int shown = found.names[0] != NULL && !is_transparent(&w->type);
    if (!w->named && shown)
        set_type(w, dwarf_diename(&w->type));
    w->named |= shown;
    for (unsigned i = 0; i < found.n && i < MOST_TOGETHER && shown; i++)
        if (found.names[i] != NULL && put(w, i == 0 ? "." : "|", found.names[i]) != 0)
            return -1;
    w->offset -= found.start;
    w->type = found.type;
    return found.n > 1;
}

/* Down to what has no members. 1: it has; 2: several lie at that place. Negative: there is none. */
static int walk_down(struct walk *w)
{
    int code = 0;
    for (unsigned steps = 0; code == 0 && steps < MOST_STEPS; steps++) {
        switch (dwarf_tag(&w->type)) {
        case DW_TAG_array_type:
            code = symbols_members_is_descriptor(&w->type) ? 1 : step_array(w);
            break;
        case DW_TAG_structure_type:
        case DW_TAG_class_type:
        case DW_TAG_union_type:
            code = 2 * step_structure(w);
            break;
        default:
            code = 1;
        }
    }
    return code;
}

int symbols_members_find(struct definitions *d, Dwarf_Die *type, uint64_t offset, struct symbols_field *field)
{
    struct walk w = {.offset = offset, .type = *type, .definitions = d, .field = field};
    *field = (struct symbols_field){0};
    return walk_down(&w) > 0 && w.named ? 0 : -1;
}

int symbols_members_pointee(struct definitions *d, Dwarf_Die *type, uint64_t offset, Dwarf_Die *pointee)
{
    struct symbols_field field = {0};
    struct walk w = {.offset = offset, .type = *type, .definitions = d, .field = &field};
    return walk_down(&w) == 1 && w.offset == 0 &&
                   (dwarf_tag(&w.type) == DW_TAG_pointer_type || symbols_members_is_descriptor(&w.type))
               ? symbols_members_type(d, &w.type, pointee)
               : -1;
}

int symbols_members_is_pointer(struct definitions *d, Dwarf_Die *type, uint64_t offset)
{
    struct symbols_field field = {0};
    struct walk w = {.offset = offset, .type = *type, .definitions = d, .field = &field};
    int is_inside = dwarf_tag(type) != DW_TAG_pointer_type && !symbols_members_is_descriptor(type);
    return (!is_inside || walk_down(&w) == 1) && w.offset == 0 &&
           (dwarf_tag(&w.type) == DW_TAG_pointer_type || symbols_members_is_descriptor(&w.type));
}

int symbols_members_is_storage(struct definitions *d, Dwarf_Die *type, uint64_t offset)
{
    struct symbols_field field = {0};
    struct walk w = {.offset = offset, .type = *type, .definitions = d, .field = &field};
    Dwarf_Word bytes;
    size_t n;
    return walk_down(&w) == 1 && (n = strlen(field.name)) > 0 && field.name[n - 1] == ']' &&
           symbols_members_size(d, &w.type, &bytes) == 0 && bytes == 1;
}
