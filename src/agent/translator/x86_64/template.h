/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h - generates code that records the memory operands of an instruction, and the template entries
 * that explain the record.
 *
 * A record's words are values of (base, index * scale) pairs. Each is stored once and used by every
 * reference of the block whose address differs only by a constant: by displacements, but also by push and
 * pop, and by add or sub of a constant. So `push rbx; push rbp; mov eax, [rsp+24]` takes one word.
 */
#ifndef CACHEGRAM_X86_64_TEMPLATE_H
#define CACHEGRAM_X86_64_TEMPLATE_H

#include "agent/translator/x86_64/emit.h"
#include "agent/translator/x86_64/insn.h"
#include "agent/tunables.h"
#include "wire/wire.h"

struct recorded_address {
    int base, index, scale;
    int slot;
    int64_t adjust; /* current value = recorded value + adjust */
};

struct template
{
    struct emitter *e;
    int scratch, cursor; /* the two borrowed registers */
    int slots;           /* words so far, including the header */
    unsigned nrefs, nknown;
    unsigned loads, stores, special;
    struct wire_ref refs[BLOCK_REFS + 32];
    struct recorded_address known[BLOCK_WORDS];
};

void template_init(struct template *t, struct emitter *e, int scratch, int cursor);
/* Before the instruction: emits code that records its references. `index`: its number in the block. */
void template_record(struct template *t, const struct insn *d, unsigned index, uint32_t pc_offset);
/* Before a return that is not the target's: emits code that records the stack pointer, without a reference.
 */
void template_record_return(struct template *t);
/* After a repeated string instruction: records the remaining count and the final pointer. */
void template_record_after(struct template *t);
/* After the instruction: updates which recorded values are still valid. */
void template_follow(struct template *t, const struct insn *d);
/* Loads the element mask of an instruction whose operand is WIRE_REF_MASKED or WIRE_REF_PACKED into a
 * register. */
void template_emit_mask(struct emitter *e, const struct insn *d, int to);
/* Whether there is no room for one more instruction. */
static inline int template_full(const struct template *t)
{
    return t->nrefs >= BLOCK_REFS || t->slots >= BLOCK_WORDS - 24;
}
void template_cpu(int has_avx512bw);

#endif
