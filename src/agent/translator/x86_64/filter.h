/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h - blocks that filter lines: of their references, they record the addresses only of those whose
 * lines are in the sample (wire.h, "The filter"). This is the agent's part of `--mode full --lines`.
 *
 * A block that recorded all references would be cheap to execute, but 15 of 16 would be decoded for nothing.
 * So generated code computes the class of each line, writes the address in any case, and advances by the
 * number of bytes that the filter has for that class, 0 or 8, so that the next address overwrites it or not.
 * There is no branch, which would be mispredicted for every line in the sample, and flags do not change:
 *
 *     lea    s, [the address]
 *     mov    [cursor], s
 *     rorx   s, s, 6                   the line
 *     crc32  s, gs:[zero]              its class, in the low byte
 *     movzx  s, s8
 *     movzx  s, byte gs:[s + filter]   8: in the sample; 0: not
 *     lea    cursor, [cursor + s]
 *
 * References whose addresses differ by constants, such as the fields of one structure, are a group. A group
 * makes as few touches as reach each of its lines, whatever the value of its base register: where two touched
 * bytes are at most a line apart, nothing between them is in a third line. That is done before the group's
 * first instruction. So a line that a block touches several times is recorded once, and the order of lines
 * within a block is not exact. Both are far below the distances that a sample of lines can measure.
 */
#ifndef CACHEGRAM_X86_64_FILTER_H
#define CACHEGRAM_X86_64_FILTER_H

#include "agent/translator/x86_64/insn.h"
#include "agent/translator/x86_64/template.h"

/*
 * Plans the touches of a block of n instructions; the block is filtered. 0: it must be recorded whole, since
 * it has references that are not plain, or too many. Otherwise *t has its template: references without
 * addresses.
 */
int filter_plan(struct template *t, const struct insn *insns, unsigned n, uint64_t pc);
/* Emits the touches that come before instruction i of the block planned last. */
void filter_emit(struct emitter *e, unsigned i, int scratch, int cursor);

#endif
