/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.h - which references an instruction makes, reported from the registers before it.
 *
 * Shares the decoder with the agent, but no code. Order within an instruction: loads before stores; an
 * explicit operand before the stack; of a string instruction [rsi] before [rdi]; elements from the lowest.
 */
#ifndef CACHEGRAM_TESTS_ORACLE_H
#define CACHEGRAM_TESTS_ORACLE_H

#include <stdint.h>
#include <ucontext.h>
#include "isa.h"

#define ORACLE_MOST 64 /* references of one instruction, or of one element of a string instruction */

/* Where the state components lie in an xsave area, from cpuid; 0: not there. */
struct oracle_layout {
    uint32_t component[10];
};

void oracle_init(const struct oracle_layout *layout, uint64_t base);
/*
 * References of the instruction at the context's instruction pointer: at most ORACLE_MOST, their number
 * is returned. A repeated string instruction counts for one element, since it is stepped that way.
 */
unsigned oracle_references(const ucontext_t *uc, struct isa_ref *refs);
/* Whether it is a gather or scatter: those stop between two elements for a fault or, under the trap flag, a
 * trap. */
int oracle_is_gather(const ucontext_t *uc);

#endif
