/* SPDX-License-Identifier: Apache-2.0 */
/* places.h - which variable of a function is in a register, or at a place in the function's frame. */
#ifndef CACHEGRAM_SYMBOLS_PLACES_H
#define CACHEGRAM_SYMBOLS_PLACES_H

#include <elfutils/libdw.h>
#include <stdint.h>
#include "symbols/disassemble.h"
#include "symbols/image.h"
#include "symbols/scopes.h"

/* Where the address may be, or the variable that begins with it. */
struct symbols_place {
    enum {
        SYMBOLS_PLACE_REGISTERS,  /* in one of these registers */
        SYMBOLS_PLACE_FRAME,      /* so many bytes from what DW_OP_fbreg counts from */
        SYMBOLS_PLACE_BY_REGISTER /* where a register points to */
    } where;
    uint32_t held;
    int64_t displacement;
    /* In the frame: the same place by a register, if it is known by one. */
    unsigned number;
    int64_t from_register;
    int64_t inside; /* result, in the frame: from where the variable begins */
};
#define SYMBOLS_PLACE_NO_REGISTER ~0u

/* The variable of a function or inlined function, or of the blocks in it, that is at the place while the code
 * at the address runs, and its type: a pointer, a descriptor of Fortran (which may be a parameter), or in the
 * frame anything that contains the place. NULL: there is none but those of a library. */
const char *symbols_places_variable(struct definitions *d, Dwarf_Die *scope, uint64_t address,
                                    struct symbols_place *place, Dwarf_Die *type);
/* The place in the frame of memory that an instruction addresses, at that address of a function. 0, or -1:
 * not in the frame, or not known. */
int symbols_places_in_frame(struct symbols_image *image, const struct scopes *scopes, uint64_t address,
                            const struct disassembler_address *at, struct symbols_place *place);

#endif
