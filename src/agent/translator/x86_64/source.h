/* SPDX-License-Identifier: Apache-2.0 */
/* source.h - reading the target's code, instruction by instruction, and copying it to elsewhere. */
#ifndef CACHEGRAM_X86_64_SOURCE_H
#define CACHEGRAM_X86_64_SOURCE_H

#include "agent/translator/x86_64/emit.h"
#include "agent/translator/x86_64/insn.h"
#include "agent/tunables.h"

/* A stretch of code that is being read. */
struct source {
    uint64_t pc;          /* where it begins */
    unsigned have, taken; /* bytes read from there, and instructions' bytes taken */
    uint64_t fixed_end;   /* code up to here cannot change */
    int may_change; /* one of the instructions looked at may be changed: the block must check its source */
    int stores;     /* an instruction that was taken stores to memory */
    uint8_t bytes[BLOCK_SOURCE_MAX + 32];
};

void source_begin(struct source *s, uint64_t pc);
/* Decodes the instruction behind those taken; one that cannot be read, or is not executable to its last byte,
 * is invalid. 0: it must not be in the same block. */
int source_look(struct source *s, struct insn *d);
/* Makes it one of the block. Nonzero: the block must end behind it, as it may have changed what follows. */
int source_take(struct source *s, const struct insn *d);

/* If the instruction, of a block at pc, tells of a restartable sequence, the block is not to go on into it:
 * *stop. */
void source_find_sequence(const struct insn *d, uint64_t pc, uint64_t *stop);
/* Whether an instruction copied to `place` or a little further on needs a register for its RIP-relative
 * operand, since that is out of reach. */
int source_is_far(const struct insn *d, const uint8_t *place);
/* Copies an instruction, setting a RIP-relative operand right for its new place; scratch: a low register that
 * the instruction does not use, needed if it is far. 0, or -1: cannot. */
int source_copy(struct emitter *e, const struct insn *d, int scratch);
/* mov to, <operand>: the target of an indirect call or jump. */
void source_load_target(struct emitter *e, const struct insn *d, int to);
/* Where a direct branch leads. */
static inline uint64_t source_branch_target(const struct insn *d)
{
    return d->pc + d->in.length +
           (uint64_t)(d->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? d->op[0].imm.value.s : 0);
}

#endif
