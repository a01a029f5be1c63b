/* SPDX-License-Identifier: Apache-2.0 */
/*
 * definitions.c - a declaration is found by its name with those of the namespaces and structures around it
 * ("shop::order::line"), of which a hash is kept. Structures in functions and in namespaces without a name
 * belong to one unit, which defines them.
 */
#include "symbols/definitions.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>

#include "symbols/scopes.h"

/* Deeper nesting is corrupt. */
#define MOST_DEPTH 64u
#define FIRST_SLOTS 256u

struct entry {
    uint64_t key; /* 0: an empty slot */
    Dwarf_Die die;
    Dwarf_Word bytes;
    int differ; /* several, of different sizes */
};

/* Open addressing. */
struct table {
    struct entry *slots;
    size_t n, capacity;
};

struct definitions {
    Dwfl_Module *module;
    int listed;
    struct table by_name;
    struct table asked; /* by the address of the declaration; as it is, if there is no definition */
};

/* --- the table --- */

static struct entry *slot_of(const struct table *t, uint64_t key)
{
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (t->capacity - 1);
    while (t->slots[at].key != 0 && t->slots[at].key != key)
        at = (at + 1) & (t->capacity - 1);
    return &t->slots[at];
}

/* The key's entry, which is empty if it is new. NULL when memory is short. */
static struct entry *find_or_make(struct table *t, uint64_t key)
{
    if (2 * t->n >= t->capacity) {
        struct table wider = {.n = t->n, .capacity = t->capacity > 0 ? 2 * t->capacity : FIRST_SLOTS};
        wider.slots = calloc(wider.capacity, sizeof *wider.slots);
        if (wider.slots == NULL)
            return NULL;
        for (size_t i = 0; i < t->capacity; i++)
            if (t->slots[i].key != 0)
                *slot_of(&wider, t->slots[i].key) = t->slots[i];
        free(t->slots);
        *t = wider;
    }
    struct entry *entry = slot_of(t, key);
    t->n += entry->key == 0;
    return entry;
}

/* --- names --- */

static int is_structure(int tag)
{
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static int is_declaration(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    bool is = false;
    return dwarf_attr(die, DW_AT_declaration, &attribute) != NULL && dwarf_formflag(&attribute, &is) == 0 &&
           is;
}

/* Of a name in what has that key; outside of everything: 0. FNV-1a, never 0. */
static uint64_t key_in(uint64_t outer, const char *name)
{
    uint64_t key = outer ^ UINT64_C(0xcbf29ce484222325);
    for (; *name != '\0'; name++)
        key = (key ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return key | 1;
}

/* Of a DIE, by all that is around it. 0: it has no name, or belongs to one unit. */
static uint64_t key_of(Dwarf_Die *die)
{
    Dwarf_Die *scopes = NULL;
    uint64_t key = 0;
    int n = dwarf_getscopes_die(die, &scopes);
    for (int i = n - 1; i >= 0; i--) {
        int tag = dwarf_tag(&scopes[i]);
        const char *name = dwarf_diename(&scopes[i]);
        if (tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit || tag == DW_TAG_type_unit)
            continue;
        if (name == NULL || (tag != DW_TAG_namespace && !is_structure(tag))) {
            key = 0;
            break;
        }
        key = key_in(key, name);
    }
    free(scopes);
    return key;
}

/* --- definitions --- */

static int add(struct definitions *d, uint64_t key, Dwarf_Die *die)
{
    Dwarf_Word bytes;
    if (dwarf_aggregate_size(die, &bytes) != 0)
        return 0;
    struct entry *entry = find_or_make(&d->by_name, key);
    if (entry == NULL)
        return -1;
    if (entry->key == 0)
        *entry = (struct entry){.key = key, .die = *die, .bytes = bytes};
    entry->differ |= entry->bytes != bytes;
    return 0;
}

static int add_children(struct definitions *d, Dwarf_Die *parent, uint64_t outer, unsigned depth)
{
    Dwarf_Die die, declared;
    Dwarf_Attribute specification;
    if (depth > MOST_DEPTH || dwarf_child(parent, &die) != 0)
        return 0;
    do {
        int tag = dwarf_tag(&die);
        const char *name = dwarf_diename(&die);
        if ((tag != DW_TAG_namespace && !is_structure(tag)) || name == NULL)
            continue;
        uint64_t key = key_in(outer, name);
        /* Such as struct outer::inner { ... }, which is declared in outer. */
        if (dwarf_attr(&die, DW_AT_specification, &specification) != NULL &&
            dwarf_formref_die(&specification, &declared) != NULL)
            key = key_of(&declared);
        if (key == 0)
            continue;
        if ((is_structure(tag) && !is_declaration(&die) && add(d, key, &die) < 0) ||
            add_children(d, &die, key, depth + 1) < 0)
            return -1;
    } while (dwarf_siblingof(&die, &die) == 0);
    return 0;
}

static void list_definitions(struct definitions *d)
{
    Dwarf_Addr bias;
    Dwarf *dwarf = dwfl_module_getdwarf(d->module, &bias);
    Dwarf_Die first;
    d->listed = 1;
    /* Units of types, too, which dwfl_module_nextcu leaves out. */
    for (Dwarf_CU *unit = NULL;
         dwarf != NULL && dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &first, NULL) == 0;) {
        Dwarf_Die whole = scopes_whole_unit(&first);
        if (add_children(d, &whole, 0, 0) < 0)
            return;
    }
}

static void find_by_name(struct definitions *d, Dwarf_Die *type)
{
    if (!d->listed)
        list_definitions(d);
    uint64_t key = key_of(type);
    if (key == 0 || d->by_name.capacity == 0)
        return;
    const struct entry *entry = slot_of(&d->by_name, key);
    if (entry->key != 0 && !entry->differ)
        *type = entry->die;
}

struct definitions *definitions_new(struct Dwfl_Module *module)
{
    struct definitions *d = calloc(1, sizeof *d);
    if (d != NULL)
        d->module = module;
    return d;
}

void definitions_free(struct definitions *d)
{
    if (d == NULL)
        return;
    free(d->by_name.slots);
    free(d->asked.slots);
    free(d);
}

void definitions_resolve(struct definitions *d, Dwarf_Die *type)
{
    Dwarf_Attribute signature;
    Dwarf_Die defined;
    if (!is_structure(dwarf_tag(type)))
        return;
    if (dwarf_attr(type, DW_AT_signature, &signature) != NULL) {
        if (dwarf_formref_die(&signature, &defined) != NULL)
            *type = defined;
        return;
    }
    if (d == NULL || !is_declaration(type))
        return;
    struct entry *entry = find_or_make(&d->asked, (uint64_t)(uintptr_t)type->addr);
    if (entry == NULL)
        return;
    if (entry->key == 0) {
        entry->key = (uint64_t)(uintptr_t)type->addr;
        entry->die = *type;
        find_by_name(d, &entry->die);
    }
    *type = entry->die;
}
