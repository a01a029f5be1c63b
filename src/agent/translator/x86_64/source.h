/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - reads the target's code, instruction by instruction, and copies it elsewhere. */
#ifndef CACHEGRAM_X86_64_SOURCE_H
#define CACHEGRAM_X86_64_SOURCE_H

#include "agent/translator/x86_64/emit.h"
#include "agent/translator/x86_64/insn.h"
#include "agent/tunables.h"

/* A stretch of code that is being read. */
struct source {
    uint64_t pc;          /* its first address */
    unsigned have, taken; /* bytes read; bytes of the instructions taken */
    uint64_t fixed_end;   /* code up to this address cannot change */
    int may_change; /* one of the instructions decoded may be changed: the block must check its source */
    int stores;     /* an instruction that was taken stores to memory */
    uint8_t bytes[BLOCK_SOURCE_MAX + 32];
};

void source_begin(struct source *s, uint64_t pc);
/* Decodes the instruction after those taken. It is invalid if it cannot be read, or is not executable to
 * its last byte. 0: it must not be in the same block. */
int source_decode(struct source *s, struct insn *d);
/* Adds it to the block. Nonzero: the block must end after it, since it may have changed what follows. */
int source_take(struct source *s, const struct insn *d);

/* If the instruction, in a block at pc, refers to a restartable sequence, the block must end before it:
 * *stop. */
void source_find_sequence(const struct insn *d, uint64_t pc, uint64_t *stop);
/* Whether the instruction, copied to `place` or shortly after, needs a register for its RIP-relative
 * operand, which is out of reach. */
int source_out_of_reach(const struct insn *d, const uint8_t *place);
/* Copies an instruction, and adjusts a RIP-relative operand to its new place. scratch: a low register that
 * the instruction does not use, needed if source_out_of_reach. 0, or -1: not possible. */
int source_copy(struct emitter *e, const struct insn *d, int scratch);
/* mov to, <operand>: the target of an indirect call or jump. */
void source_load_target(struct emitter *e, const struct insn *d, int to);
/* Target of a direct branch. */
static inline uint64_t source_branch_target(const struct insn *d)
{
    return d->pc + d->in.length +
           (uint64_t)(d->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? d->op[0].imm.value.s : 0);
}

#endif
