/* SPDX-License-Identifier: Apache-2.0 */
/* allocatables.h - which array of Fortran a call allocates, by the descriptor that the address goes to. */
#ifndef CACHEGRAM_SYMBOLS_ALLOCATABLES_H
#define CACHEGRAM_SYMBOLS_ALLOCATABLES_H

#include <elfutils/libdw.h>
#include <stdint.h>
#include "symbols/files.h"

/* An allocatable array, or a pointer to an array. */
struct symbols_allocatable {
    char *name;         /* malloc'ed: "module::name", or "name" if it is of a function */
    Dwarf_Die elements; /* their type; addr NULL: not known */
};

/* The one that gets what the call allocates that ends at an offset of a file. 0, or -1: none that is seen. */
int symbols_allocatable(struct symbols_files *files, const char *path, uint64_t end_of_call,
                        struct symbols_allocatable *array);

#endif
