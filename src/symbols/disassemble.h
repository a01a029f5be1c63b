/* SPDX-License-Identifier: Apache-2.0 */
/* disassemble.h - instructions of an ELF file as text (Zydis, Intel's syntax). */
#ifndef CACHEGRAM_SYMBOLS_DISASSEMBLE_H
#define CACHEGRAM_SYMBOLS_DISASSEMBLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct disassembler;

/* NULL with err: the file cannot be read, or is not an ELF file. */
struct disassembler *disassembler_open(const char *path, struct error *err);
void disassembler_close(struct disassembler *d); /* NULL is allowed */
/* The instruction at an offset of the file, as text without control characters. Its length in bytes; 0: there
 * is none. */
unsigned disassembler_insn(const struct disassembler *d, uint64_t offset, char *text, size_t size);
/* A memory operand: the numbers in debug information (DWARF) of the registers that are added to a constant.
 */
struct disassembler_address {
    unsigned registers[2], n;
    int is_indexed; /* another register is added, or a multiple of one */
    int64_t displacement;
};
/* That of the instruction at an offset of the file, if it has exactly one, with a register. 0, or -1. */
int disassembler_memory(const struct disassembler *d, uint64_t offset, struct disassembler_address *address);
/* The instruction at an offset of the file: if it copies 64 bits from memory to a register, that memory, and
 * the register's number (otherwise -1). Its length; 0: there is none. */
unsigned disassembler_load(const struct disassembler *d, uint64_t offset, struct disassembler_address *from,
                           int *number);
/* Whether the instruction at an offset of the file is a call of 5 bytes, to an address that it has. */
int disassembler_is_near_call(const struct disassembler *d, uint64_t offset);
/* The memory to which an instruction copies a value. */
struct disassembler_copy {
    enum { DISASSEMBLER_NOWHERE, DISASSEMBLER_STATIC, DISASSEMBLER_MEMORY } to;
    uint64_t static_address;             /* as disassembler_address has it */
    struct disassembler_address address; /* by registers */
};
/* The instruction at an offset of the file: what it does with a value that is in the registers *held (64
 * bits; bit n: DWARF's number n), which become those that have it afterwards; functions keep what they must.
 * Its length; 0 if no register has it any more, or if another instruction than the following one is executed
 * next where the value is not 0. */
unsigned disassembler_follow(const struct disassembler *d, uint64_t offset, uint32_t *held,
                             struct disassembler_copy *copy);
/* What a register has from the instruction at an offset of the file. */
struct disassembler_origin {
    uint64_t offset;
    enum {
        DISASSEMBLER_ADDED,         /* the address below */
        DISASSEMBLER_LOADED,        /* the memory there; */
        DISASSEMBLER_STATIC_VALUE,  /* static_address, as disassembler_address has it */
        DISASSEMBLER_LOADED_STATIC, /* the memory there */
        DISASSEMBLER_ENTRY          /* what it had when the function began, whose offset is the above */
    } how;
    struct disassembler_address address;
    uint64_t static_address;
    int is_sum;    /* of that and what the register had before, such as an index */
    uint64_t step; /* what was added since then is a multiple of it; 0: nothing */
};
/* Where the value comes from that a register (DWARF's number) has at the instruction at an offset of the
 * file, in a function that is at [low, high): from an instruction before, with no branch or call in between;
 * or from the only one in the function that sets the register; or it is that of the beginning. Instructions
 * that add a constant to it, as loops over arrays do, are the step, but for those before it with no branch in
 * between or to one of these. 0, or -1: not known. */
int disassembler_origin(const struct disassembler *d, uint64_t low, uint64_t high, uint64_t offset,
                        unsigned number, struct disassembler_origin *origin);
/* The address of an offset of the file, as its program headers and objdump have it. */
uint64_t disassembler_address(const struct disassembler *d, uint64_t offset);

#endif
