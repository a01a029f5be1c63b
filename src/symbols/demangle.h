/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.h - names of C++ and Rust as they were written. */
#ifndef CACHEGRAM_SYMBOLS_DEMANGLE_H
#define CACHEGRAM_SYMBOLS_DEMANGLE_H

/*
 * The name without parameters ("ns::Table<int>::find"), malloc'ed; a name that is not mangled, or not in a
 * way that is understood, as it is. NULL when memory is short.
 */
char *symbols_demangle(const char *name);

#endif
