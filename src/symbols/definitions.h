/* SPDX-License-Identifier: Apache-2.0 */
/*
 * definitions.h - structures that a unit of debug information only declares, and another one defines.
 * Compilers write a class with virtual functions only where its virtual table is, and every type once with
 * -fdebug-types-section.
 */
#ifndef CACHEGRAM_SYMBOLS_DEFINITIONS_H
#define CACHEGRAM_SYMBOLS_DEFINITIONS_H

#include <elfutils/libdw.h>

struct Dwfl_Module;
struct definitions; /* of one file; listed when the first one is asked for */

/* The module must live longer. NULL when memory is short. */
struct definitions *definitions_new(struct Dwfl_Module *module);
void definitions_free(struct definitions *d); /* NULL is allowed */
/* If the type is a declaration only, it becomes the definition of the same name; it stays as it is if there
 * is none, or several of different sizes. d NULL: definitions by name are not known. */
void definitions_resolve(struct definitions *d, Dwarf_Die *type);

#endif
