/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types.h - the fields of an ELF file's variables, by its debug information (in the file, or where image.h
 * finds it).
 */
#ifndef CACHEGRAM_SYMBOLS_TYPES_H
#define CACHEGRAM_SYMBOLS_TYPES_H

#include <stdint.h>
#include "symbols/image.h"
#include "symbols/members.h"

struct symbols_types;

/* Of a file's image, which must live longer. NULL if it has no debug information, or memory is short. */
struct symbols_types *symbols_types_new(struct symbols_image *image);
void symbols_types_free(struct symbols_types *t); /* NULL is allowed */
/* Added to the address of a thread-local variable, which is one within a thread's block. */
#define SYMBOLS_TYPES_TLS (UINT64_C(1) << 63)
/*
 * The field that is `offset` bytes into the variable at the address (as the file's symbol table has it). 0,
 * or -1: the variable's type is not known, has no fields, or none there.
 */
int symbols_types_find(struct symbols_types *t, uint64_t address, uint64_t offset,
                       struct symbols_field *field);
/* The variable at the address. 0, or -1: not known. */
int symbols_types_variable(struct symbols_types *t, uint64_t address, Dwarf_Die *variable);
/* The variable that contains the address, which is *offset bytes into it. Likewise. */
int symbols_types_around(struct symbols_types *t, uint64_t address, Dwarf_Die *variable, uint64_t *offset);
struct definitions *symbols_types_definitions(struct symbols_types *t);
/* What the variable at the address is, or is an array of. 0, or -1: not known. */
int symbols_types_element(struct symbols_types *t, uint64_t address, Dwarf_Die *type);
/* The structure to which the variable at the address points. 0, or -1. */
int symbols_types_pointee(struct symbols_types *t, uint64_t address, Dwarf_Die *type);

#endif
