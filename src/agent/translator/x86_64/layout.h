/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of the members of struct thread from the GS base, for generated code. Also for the assembler. */
#ifndef CACHEGRAM_X86_64_LAYOUT_H
#define CACHEGRAM_X86_64_LAYOUT_H

#define T_CURSOR 8
#define T_SPILL_A 16
#define T_SPILL_B 24
#define T_SCRATCH 32
#define T_JUMP_TO 40
#define T_EXIT_ID 48
#define T_DISPATCH 56
#define T_DISPATCH_STACK 64
#define T_APP_RSP 72
#define T_INDIRECT 80
#define T_SAVED 88
#define T_GATE_RESUME 152 /* code after the system call, if the cache has not changed */
#define T_APP_MASK 160
#define T_BURST_MASK 168
#define T_SPILL_EXTRA 176
#define T_ELEMENTS 192
#define T_COUNTER 208
#define T_GOAL 224
#define T_VECTOR 256
#define T_STRINGS 320
#define T_LEFT 384
#define T_FS_BASE 400
#define T_FILTER 408
#define T_ZERO 664
#define T_STEPS 4096
#define T_STOP 8192
#define T_TARGETS 12288
#define T_JUMPS (T_TARGETS + (16 << TARGET_BITS))
#define T_RETURNS (T_JUMPS + (8 << COUNT_TABLE_BITS))

/* In T_EXIT_ID: the thread comes from the system call gate, and is not inside the cache. No exit has this
 * id. */
#define GATE_EXIT_ID 0

#include "agent/tunables.h"

#ifndef __ASSEMBLER__
#include "agent/thread.h"

#define AT(member, offset) _Static_assert(offsetof(struct thread, member) == (offset), #member)
AT(generated.cursor, T_CURSOR);
AT(generated.spill_a, T_SPILL_A);
AT(generated.spill_b, T_SPILL_B);
AT(generated.scratch, T_SCRATCH);
AT(generated.jump_to, T_JUMP_TO);
AT(generated.exit_id, T_EXIT_ID);
AT(generated.dispatch, T_DISPATCH);
AT(generated.dispatch_stack, T_DISPATCH_STACK);
AT(generated.app_rsp, T_APP_RSP);
AT(generated.indirect_target, T_INDIRECT);
AT(generated.saved, T_SAVED);
AT(generated.gate_resume, T_GATE_RESUME);
AT(generated.app_mask, T_APP_MASK);
AT(generated.burst_mask, T_BURST_MASK);
AT(generated.spill_extra, T_SPILL_EXTRA);
AT(generated.elements, T_ELEMENTS);
AT(generated.counter, T_COUNTER);
AT(generated.goal, T_GOAL);
AT(generated.vector, T_VECTOR);
AT(generated.strings, T_STRINGS);
AT(generated.left, T_LEFT);
AT(generated.fs_base, T_FS_BASE);
AT(generated.filter, T_FILTER);
AT(generated.zero, T_ZERO);
AT(tables.steps, T_STEPS);
AT(tables.stop, T_STOP);
AT(tables.targets, T_TARGETS);
AT(tables.jumps, T_JUMPS);
AT(tables.returns, T_RETURNS);
#undef AT

/* General registers by their number in instructions. */
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, NO_REG = -1 };

#endif /* __ASSEMBLER__ */
#endif
