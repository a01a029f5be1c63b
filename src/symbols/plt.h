/* SPDX-License-Identifier: Apache-2.0 */
/* plt.h - entries of a procedure linkage table, which have no symbols: of the functions that they jump to. */
#ifndef CACHEGRAM_SYMBOLS_PLT_H
#define CACHEGRAM_SYMBOLS_PLT_H

#include <gelf.h>
#include <stdint.h>

/* The name, as it is in the file's dynamic symbols, of the function that the entry at an address of the file
 * jumps to; NULL: there is no such entry, or the function has no name. */
const char *symbols_plt_name(Elf *elf, uint64_t address);

#endif
