/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pointees.h - which structures code works on, by the variables and functions of debug information: for
 * memory that has no symbol.
 */
#ifndef CACHEGRAM_SYMBOLS_POINTEES_H
#define CACHEGRAM_SYMBOLS_POINTEES_H

#include <elfutils/libdw.h>
#include <stdint.h>
#include "symbols/scopes.h"

/* The structure to which a variable points that is in a register (DWARF's number) at the instruction. 0, or
 * -1: there is no such variable, or two that differ. */
int symbols_pointees_register(const struct scopes *s, uint64_t address, unsigned number, Dwarf_Die *type);
/* Likewise, by a pointer whose value is the register's and a constant, to a structure in which an access is
 * that is *displacement from the register: then *displacement becomes its place in the structure. */
int symbols_pointees_near(const struct scopes *s, uint64_t address, unsigned number, int64_t *displacement,
                          Dwarf_Die *type);
/* Likewise, a variable so many bytes from the frame pointer, in a function that has one. */
int symbols_pointees_frame(const struct scopes *s, uint64_t address, int64_t displacement, Dwarf_Die *type);
/* Likewise, whatever the variable points to. */
int symbols_pointees_any(const struct scopes *s, uint64_t address, unsigned number, Dwarf_Die *type);
/* What a pointer points to that is stored so many bytes from the beginning of something of the type `around`:
 * a member of a structure, or one of an array of pointers. 0, or -1: it is no pointer. */
int symbols_pointees_stored(struct definitions *d, Dwarf_Die *around, int64_t displacement, Dwarf_Die *type);
/* What a variable, or a function's result, points to. 0: a structure; 1: something else (addr of the type is
 * NULL: void); -1: it is no pointer. */
int symbols_pointees_of(struct definitions *d, Dwarf_Die *die, Dwarf_Die *type);
/* Whether the function, as it was compiled, returns a void *, as one that allocates for its callers does. */
int symbols_pointees_returns_memory(const struct scopes *s, uint64_t address);
/* What a library allocates at that address: in C++ T of the function `allocate` that returns a T * (of
 * several that call each other, the outermost), or of std::make_unique<T>; in Rust T of Box<T>, of RawVec<T>,
 * which is the storage of Vec<T>, or of RawTable<T>, that of HashMap and HashSet (*is_table). 0: a structure;
 * 1: something else, which has no fields; -1: there is no such function. */
int symbols_pointees_allocated(const struct scopes *s, uint64_t address, Dwarf_Die *type, int *is_table);

/* A RawTable's memory has entries, and after them a control byte for each. Which of these the code at the
 * address works on. */
enum symbols_table_part {
    SYMBOLS_TABLE_UNKNOWN, /* it is not Rust, such as memset */
    SYMBOLS_TABLE_ENTRIES,
    SYMBOLS_TABLE_CONTROL
};
enum symbols_table_part symbols_pointees_table_part(const struct scopes *s, uint64_t address);

#endif
