/* SPDX-License-Identifier: Apache-2.0 */
/* receivers.h - which variable gets the address that a call allocates. */
#ifndef CACHEGRAM_SYMBOLS_RECEIVERS_H
#define CACHEGRAM_SYMBOLS_RECEIVERS_H

#include <elfutils/libdw.h>
#include <stdint.h>
#include "symbols/files.h"

struct symbols_receiver {
    /* malloc'ed: "function::variable", perhaps with a member of it, "structure::member", or of a variable
     * outside of functions "variable", in Fortran "module::variable". */
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

/* Likewise of a call of a method, as of std::vector: the object that it is called for, if that is a variable
 * or a member of one, or of a structure. */
int symbols_receiver_object(struct symbols_files *files, const char *path, uint64_t end_of_call,
                            struct symbols_receiver *receiver);

#endif
