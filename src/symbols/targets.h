/* SPDX-License-Identifier: Apache-2.0 */
/* targets.h - what the registers of an instruction point to, by the variables of the program. */
#ifndef CACHEGRAM_SYMBOLS_TARGETS_H
#define CACHEGRAM_SYMBOLS_TARGETS_H

#include <elfutils/libdw.h>
#include <stdint.h>
#include "symbols/disassemble.h"
#include "symbols/files.h"
#include "symbols/scopes.h"

/* Longer functions are not searched for where a register got its value: to decode so many bytes takes some
 * 0.5 ms. */
#define SYMBOLS_MOST_FUNCTION 16384u

/* An instruction. */
struct symbols_access {
    const char *path;
    struct disassembler *disassembler;
    const struct scopes *scopes;
    uint64_t offset, address; /* of the file */
};

/* What a register points to. */
struct symbols_target {
    Dwarf_Die type;
    int64_t displacement; /* of the register from where that begins */
    int is_indexed;
    uint64_t step; /* what loops add to it, if not 0: multiples */
};

/* That of a register (DWARF's number) before the instruction: by the variable in it, or by where it got its
 * value from, which is the sum of such a pointer and something, or the memory where one is stored. 0, or -1:
 * not known. */
int symbols_target(struct symbols_files *files, const struct symbols_access *access, unsigned number,
                   struct symbols_target *t);

#endif
