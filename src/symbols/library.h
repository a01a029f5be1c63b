/* SPDX-License-Identifier: Apache-2.0 */
/* library.h - what belongs to a library, and not to the program: its names say nothing to the program's user.
 */
#ifndef CACHEGRAM_SYMBOLS_LIBRARY_H
#define CACHEGRAM_SYMBOLS_LIBRARY_H

#include <elfutils/libdw.h>

/* Whether it is declared in a header of the system's, or in a module of Rust's library. */
int symbols_library_declares(Dwarf_Die *die);

#endif
