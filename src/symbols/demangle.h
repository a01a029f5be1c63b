/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.h - names of C++, Rust, D and Fortran as in the source. */
#ifndef CACHEGRAM_SYMBOLS_DEMANGLE_H
#define CACHEGRAM_SYMBOLS_DEMANGLE_H

/*
 * The name without parameters ("ns::Table<int>::find"), malloc'ed; a name that is not mangled, or in an
 * unknown way, or would be longer than 64 KB, unchanged. NULL when memory is short.
 */
char *symbols_demangle(const char *name);

/* With parameters ("ns::Table<int>::find(int) const"), malloc'ed. NULL: it has none, or memory is short. */
char *symbols_demangle_overload(const char *name);

/* Whether a name, mangled or as symbols_demangle has it, is that of a function in the standard libraries of
 * C++ or Rust, most of which are compiled into the programs that use them. */
int symbols_is_of_standard_library(const char *name);

#endif
