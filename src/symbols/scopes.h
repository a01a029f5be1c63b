/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scopes.h - the functions of one unit of debug information, and those inlined into them. libdw's
 * dwarf_getscopes walks the whole unit for each address; this walks it once.
 */
#ifndef CACHEGRAM_SYMBOLS_SCOPES_H
#define CACHEGRAM_SYMBOLS_SCOPES_H

#include <elfutils/libdw.h>
#include <stdint.h>
#include "symbols/definitions.h"

struct scope {
    Dwarf_Die die;  /* DW_TAG_subprogram or DW_TAG_inlined_subroutine */
    uint32_t outer; /* number of the enclosing one, + 1; 0: none */
    uint32_t depth;
};

/* Where functions begin that the linker left out (--gc-sections, another copy of a template): they keep their
 * debug information. No file has code there. */
#define SCOPES_LEFT_OUT 0u

struct scopes;

/* definitions: of the file, which must live longer; or NULL. NULL when memory is short. */
struct scopes *scopes_new(Dwarf_Die *unit, struct definitions *definitions);
struct definitions *scopes_definitions(const struct scopes *s);
/* With -gsplit-dwarf a file has the addresses and lines of a unit; its functions and variables are in another
 * file (.dwo): the DIE of the unit there, if it is found. Otherwise the unit's. */
Dwarf_Die scopes_whole_unit(const Dwarf_Die *unit);
void scopes_free(struct scopes *s); /* NULL is allowed */
/* The innermost one that contains the address; NULL: none. s may be NULL. */
const struct scope *scopes_find(const struct scopes *s, Dwarf_Addr address);
/* The enclosing one; NULL: none. */
const struct scope *scopes_outer(const struct scopes *s, const struct scope *scope);

#endif
