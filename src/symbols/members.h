/* SPDX-License-Identifier: Apache-2.0 */
/* members.h - the fields of a type in debug information. */
#ifndef CACHEGRAM_SYMBOLS_MEMBERS_H
#define CACHEGRAM_SYMBOLS_MEMBERS_H

#include <elfutils/libdw.h>
#include <stdint.h>
#include "symbols/definitions.h"

/* Dimensions of an array; more are corrupt. */
#define MOST_DIMENSIONS 64u

struct symbols_field {
    /* What follows the variable's name in an expression: "[].position.x". Fields that lie at the same place
     * (in a union, bit fields) have '|' between them: ".a|b". */
    char name[256];
    char type[128]; /* name of the first structure on this path; "": it has none */
};

/* The definitions are those of the file that has the debug information; NULL: none are known. */

/* The type of a variable, member, function's result or pointer, without typedefs and qualifiers. 0, or -1. */
int symbols_members_type(struct definitions *d, Dwarf_Die *die, Dwarf_Die *type);
/* In bytes. 0, or -1: not known. */
int symbols_members_size(struct definitions *d, Dwarf_Die *type, uint64_t *bytes);
/* The type argument for a parameter of a template, or of a generic function of Rust. 0, or -1. */
int symbols_members_parameter(struct definitions *d, Dwarf_Die *die, const char *name, Dwarf_Die *type);
/* Whether the name is that of a template, with its arguments ("list<int>") or, as -gsimple-template-names has
 * it, without. */
int symbols_members_is_template(const char *name, const char *of);
/* The field at that offset of a type. 0, or -1: it has no fields, or none there. */
int symbols_members_find(struct definitions *d, Dwarf_Die *type, uint64_t offset,
                         struct symbols_field *field);
/* A structure, class or union: a type that has fields. */
int symbols_members_is_structure(Dwarf_Die *type);
/* An array of Fortran that is allocated: memory has a descriptor there, which begins with its address. */
int symbols_members_is_descriptor(Dwarf_Die *type);
/* What the pointer, or a descriptor of Fortran, at that offset of a type points to. 0, or -1: there is none.
 */
int symbols_members_pointee(struct definitions *d, Dwarf_Die *type, uint64_t offset, Dwarf_Die *pointee);
/* Whether a pointer, or a descriptor, begins at that offset of a type. */
int symbols_members_is_pointer(struct definitions *d, Dwarf_Die *type, uint64_t offset);
/* Whether that offset is in an array of bytes, in which structures of other types may be. */
int symbols_members_is_storage(struct definitions *d, Dwarf_Die *type, uint64_t offset);
/* Whether a structure ends with an array of unknown length, as "struct node *next[];", which begins at *low:
 * its elements are found at any offset from there on. */
int symbols_members_is_open(struct definitions *d, Dwarf_Die *type, uint64_t *low);

#endif
