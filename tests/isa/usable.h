/* SPDX-License-Identifier: Apache-2.0 */
/* usable.h - which instructions the tests may run on this processor. */
#ifndef CACHEGRAM_TESTS_USABLE_H
#define CACHEGRAM_TESTS_USABLE_H

#include <Zydis/Zydis.h>

void usable_init(void);
/*
 * Nonzero if the instruction can be run at any place of a sequence: the processor has it, it does not branch,
 * and what it does depends on nothing but registers and memory (no clocks, no processor numbers, none of
 * the addresses that the x87 unit keeps of its last instruction, which translation changes).
 */
int usable(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op);

#endif
