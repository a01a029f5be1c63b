/* SPDX-License-Identifier: Apache-2.0 */
/* insn.h - a decoded instruction, and what the translator needs to know about it. */
#ifndef CACHEGRAM_X86_64_INSN_H
#define CACHEGRAM_X86_64_INSN_H

#include <Zydis/Zydis.h>
#include <stdint.h>

enum insn_class {
    INSN_PLAIN, /* copied */
    INSN_REP,   /* string instruction with a repeat prefix */
    INSN_JUMP,
    INSN_CONDITIONAL,
    INSN_COUNTED, /* jrcxz, loop */
    INSN_CALL,
    INSN_CALL_INDIRECT,
    INSN_JUMP_INDIRECT,
    INSN_RETURN,
    INSN_SYSCALL,
    INSN_STEP, /* single-stepped natively; the burst continues */
    INSN_END,  /* ends the burst */
};

struct insn {
    ZydisDecodedInstruction in;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    uint64_t pc;
    const uint8_t *bytes;
    uint16_t reads, writes; /* general registers, bit n: register n */
    enum insn_class class;
    int rip_operand; /* index of the operand relative to the instruction pointer, or -1 */
};

/* Decodes the instruction at `bytes` (at most `available` bytes), whose address is pc. */
void insn_decode(struct insn *insn, const uint8_t *bytes, unsigned available, uint64_t pc);
void insn_init(int bmi2);
/* Whether it ends a block and is not executed as a copy: a system call, or one that must run natively. */
static inline int insn_is_native(const struct insn *d)
{
    return d->class == INSN_STEP || d->class == INSN_END || d->class == INSN_SYSCALL;
}
/* Nonzero if it writes to memory, except by a push. */
int insn_stores(const struct insn *d);
/* Number of a general register, whichever part of it is named; -1: another kind. */
int insn_register(ZydisRegister reg);

#endif
