/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.h - blocks that count their references and record nothing.
 *
 * They are made as recording blocks are, with the same two registers borrowed, but the cursor walks by one
 * byte a reference through memory that is only read (agent/count.c), and the block's own references are added
 * by one lea at its end. Behind that memory lies a guard region: the probe, a load from where the cursor
 * stands, faults there, at a block's start, where nothing of the block has been executed yet. Only blocks
 * that may close a loop have one: a branch backwards, or one to who knows where. Of the others there cannot
 * be so many in a row that the guard region is jumped over.
 *
 *      mov gs:[spill_a], scratch; mov gs:[spill_b], cursor; mov cursor, gs:[cursor]
 *      movzx scratch, byte [cursor]       the probe
 *      add rax, [rbx]                     the target's: one reference
 *      push rax                           another one
 *      lea cursor, [cursor + 2]
 *      jne ...
 *
 * The elements of a repeated string instruction are added without flags: rcx before, and not(rcx) + 1 behind.
 * A loop without any reference would never end a stretch: such a block advances the cursor by one all the
 * same and tells so (struct thread, idle_rounds).
 */
#ifndef CACHEGRAM_X86_64_COUNT_H
#define CACHEGRAM_X86_64_COUNT_H

#include "agent/arch/x86_64/emit.h"
#include "agent/arch/x86_64/insn.h"
#include "agent/arch/x86_64/template.h"
#include "agent/arch/x86_64/translate.h"

/* Whether a block that `end` ends may be the last one of a loop's round. */
int count_may_loop(const struct insn *end);
/*
 * References that the template's entries from `from` on stand for, a gather or scatter as if it touched all
 * its elements; *repeats is how many a string instruction makes for each element, and *masked how many there
 * are unless an element mask is all zeros: these are not in the result.
 */
unsigned count_references(const struct template *t, unsigned from, unsigned *repeats, unsigned *masked);
/* Before an instruction with an element mask, `masked` from count_references. Changes no flags. */
void emit_count_masked(struct emitter *e, const struct insn *d, int cursor, unsigned masked);
void emit_count_probe(struct emitter *e, int scratch, int cursor);
/* Around a string instruction, `repeats` from count_references. */
void emit_count_before(struct emitter *e, int cursor, unsigned repeats);
void emit_count_after(struct emitter *e, int scratch, int cursor, unsigned repeats);
/* A round of a loop without references. */
void emit_count_idle(struct emitter *e, int scratch, int cursor);

/*
 * Indirect branches. The thread's table `landings`, by the CRC of the target's address, says where to jump at
 * once; the landing there sees for itself whether it is the right one, and is entered with the target in
 * COUNT_TARGET, the cursor in COUNT_CURSOR, their own values spilled as usual, and rcx in T_SCRATCH. So what
 * most blocks borrow stays where it is.
 */
#define COUNT_TARGET R11
#define COUNT_CURSOR R10
#define COUNT_LANDING_BYTES 96
/* From a block that borrows scratch, which holds the target, and cursor; the exit is what a miss tells. */
void emit_count_indirect(struct emitter *e, uint32_t exit_id, int scratch, int cursor);
void emit_count_landing(struct emitter *e, const struct block *b, const uint8_t *miss);
void emit_count_miss(struct emitter *e);

#endif
