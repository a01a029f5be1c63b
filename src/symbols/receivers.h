/* SPDX-License-Identifier: Apache-2.0 */
/* receivers.h - which variable gets the address that a call allocates. */
#ifndef CACHEGRAM_SYMBOLS_RECEIVERS_H
#define CACHEGRAM_SYMBOLS_RECEIVERS_H

#include <elfutils/libdw.h>
#include <stdint.h>
#include "symbols/files.h"

struct symbols_receiver {
    /* malloc'ed: "function::variable", "structure::member", or of a variable outside of functions "variable",
     * in Fortran "module::variable". */
    char *name;
    Dwarf_Die elements; /* of an array of Fortran: their type; addr NULL: not known, or another variable */
};

/*
 * Of the call that ends at an offset of a file. stored: only if the address is stored in static memory or in
 * a structure. 0, or -1: none that is seen, or a variable of a library's header (C++'s containers; but the
 * variable that is a container is one).
 */
int symbols_receiver(struct symbols_files *files, const char *path, uint64_t end_of_call, int stored,
                     struct symbols_receiver *receiver);

#endif
