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
/* What a library allocates at that address: in C++ T of the innermost function `allocate` that returns a T *,
 * or of std::make_unique<T>; in Rust T of Box<T> or of RawVec<T>, which is the storage of Vec<T>. 0: a
 * structure; 1: something else, which has no fields; -1: there is no such function. */
int symbols_pointees_allocated(const struct scopes *s, uint64_t address, Dwarf_Die *type);

#endif
