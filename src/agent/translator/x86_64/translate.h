/* SPDX-License-Identifier: Apache-2.0 */
/*
 * translate.h - makes the blocks that record.
 *
 * A block is a copy of a basic block of the target (or of a part of one) in which every instruction
 * is preceded by the stores that record its references. Two registers that the block does not use
 * are borrowed: `cursor` points at the block's record, `scratch` is for addresses. Their own values
 * lie behind the GS base. A block has two entries:
 *
 *   code:  spill both, load the cursor      (from anywhere)
 *   fast:  the borrowed pair is already so  (from a block that borrows the same pair)
 *
 * Nothing added changes flags, and nothing checks for the end of the buffer: the guard page does.
 *
 * A block that counts (count.h) is made of the same code and lives beside the recording one.
 */
#ifndef CACHEGRAM_X86_64_TRANSLATE_H
#define CACHEGRAM_X86_64_TRANSLATE_H

#include "agent/translator/x86_64/cache.h"

/* Block for pc, of the kind that t is in, made if need be; the hint is the pair that the caller has borrowed.
 * NULL: cannot. The lock is held, here and below. */
struct block *translate_block(struct thread *t, uint64_t pc, int hint_scratch, int hint_cursor);
/* The source of x->block has changed: a new block. */
struct block *translate_again(struct thread *t, const struct exit *x);
/* Whether a block can begin there; if not, t->translation.leave_end says why. */
int translate_may(struct thread *t, uint64_t pc);

#endif
