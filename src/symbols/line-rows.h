/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line-rows.h - the line table of a unit, without the rows of functions that the linker left out.
 *
 * Such a function (--gc-sections, another copy of a C++ template) keeps its debug information, at address 0.
 * If it is larger than what comes before the code in a file, its rows lie among those of other functions.
 */
#ifndef CACHEGRAM_SYMBOLS_LINE_ROWS_H
#define CACHEGRAM_SYMBOLS_LINE_ROWS_H

#include <elfutils/libdw.h>
#include <stddef.h>

/* By address; to be freed. unit: the one in the file that has the code, not that of a split unit. NULL: there
 * are none, or memory is short. */
Dwarf_Line **line_rows_new(Dwarf_Die *unit, size_t *n);

#endif
