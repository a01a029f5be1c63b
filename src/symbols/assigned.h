/* SPDX-License-Identifier: Apache-2.0 */
/* assigned.h - which structure a call allocates, by the variable that its result is assigned to. */
#ifndef CACHEGRAM_SYMBOLS_ASSIGNED_H
#define CACHEGRAM_SYMBOLS_ASSIGNED_H

#include <elfutils/libdw.h>
#include <stdint.h>
#include "symbols/files.h"

/*
 * Of the call that ends at an offset of a file: the structure, or array of it, that the result is. `bytes`:
 * what is allocated has so many bytes, or a multiple; 0: not known. 0, or -1: the result is not assigned to a
 * pointer to a structure of such a size, as far as can be seen; it may be to a base class. Or the structure
 * ends with an array of any length, so that its size is not that of what is allocated.
 */
int symbols_assigned(struct symbols_files *files, const char *path, uint64_t end_of_call, uint64_t bytes,
                     Dwarf_Die *type);

#endif
