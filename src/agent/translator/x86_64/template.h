/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h - turns the memory operands of an instruction into code that records them and template
 * entries that explain the record.
 *
 * A record's words are values of (base, index * scale) pairs, each stored once and used by every
 * reference of the block whose address differs only by a constant: displacements, but also push and
 * pop, and add or sub of a constant. So `push rbx; push rbp; mov eax, [rsp+24]` costs one word.
 */
#ifndef CACHEGRAM_X86_64_TEMPLATE_H
#define CACHEGRAM_X86_64_TEMPLATE_H

#include "agent/translator/x86_64/emit.h"
#include "agent/translator/x86_64/insn.h"
#include "agent/tunables.h"
#include "wire/wire.h"

struct known_address {
    int base, index, scale;
    int slot;
    int64_t adjust; /* value now = recorded value + adjust */
};

struct template
{
    struct emitter *e;
    int scratch, cursor; /* the two borrowed registers */
    int slots;           /* words so far, header included */
    unsigned nrefs, nknown;
    unsigned loads, stores, special;
    struct wire_ref refs[BLOCK_REFS + 32];
    struct known_address known[BLOCK_WORDS];
};

void template_init(struct template *t, struct emitter *e, int scratch, int cursor);
/* Before the instruction: emits what records its references. `index`: its number in the block. */
void template_record(struct template *t, const struct insn *d, unsigned index, uint32_t pc_offset);
/* After a string instruction with a repeat prefix: what is left of its counters. */
void template_record_after(struct template *t, const struct insn *d);
/* After the instruction: which recorded values still hold. */
void template_follow(struct template *t, const struct insn *d);
/* The element mask of an instruction whose operand is WIRE_REF_MASKED or WIRE_REF_PACKED, into a register. */
void template_emit_mask(struct emitter *e, const struct insn *d, int to);
/* Room for one more instruction? */
static inline int template_full(const struct template *t)
{
    return t->nrefs >= BLOCK_REFS || t->slots >= BLOCK_WORDS - 24;
}
void template_cpu(int has_avx512bw);

#endif
