/* SPDX-License-Identifier: Apache-2.0 */
/*
 * translate.h - makes the blocks that record.
 *
 * A block is a copy of a basic block of the target (or of part of one) in which each instruction is
 * preceded by stores that record its references. Two registers that the block does not use are borrowed:
 * `cursor` points to the block's record, `scratch` is for addresses. Their own values are in memory
 * relative to the GS base. A block has two entries:
 *
 *   code:  spill both, load the cursor      (from anywhere)
 *   fast:  both are set up already          (from a block that borrows the same pair)
 *
 * Nothing that is added changes flags, and nothing checks for the end of the buffer: the guard page does.
 *
 * A block that counts (count.h) is made of the same code and exists in addition to the recording one.
 */
#ifndef CACHEGRAM_X86_64_TRANSLATE_H
#define CACHEGRAM_X86_64_TRANSLATE_H

#include "agent/translator/x86_64/cache.h"

/* The block for pc, of the kind that t is executing, made if necessary; the hint is the pair that the
 * caller has borrowed. NULL: not possible. The caller holds the lock, here and below. */
int translate_init(void); /* 0, or -1: no memory */
struct block *translate_block(struct thread *t, uint64_t pc, int hint_scratch, int hint_cursor);
/* The source of x->block has changed: makes a new block. */
struct block *translate_again(struct thread *t, const struct exit *x);

#endif
