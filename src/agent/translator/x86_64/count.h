/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.h - blocks that count their references and record nothing.
 *
 * They are copies that add to a counter in a vector register, and borrow nothing else: zmm31 where the
 * processor has AVX-512VL, else ymm15. The target's own value of it lies in T_VECTOR; an instruction that
 * names the register gets it back meanwhile. A block begins with what it adds:
 *
 *      mov gs:[stop], rsp                 if it may close a loop
 *      vpaddq xmm31, xmm31, gs:[steps + 16 * references]
 *      add rax, [rbx]                     the target's: one reference
 *      push rax                           another one
 *      jne ...
 *
 * `steps` is a page of the thread's: 0, 1, 2, ... A block without references adds 0 if it may close a loop.
 *
 * `stop` is another page, to which nothing but that store writes. Closing it, so that it can only be read,
 * stops the thread at the beginning of the next block that may close a loop, where nothing of the block has
 * been executed yet and all registers are the target's. (The target may read any page, by system calls and in
 * other threads, too: to close one for reading would do harm.)
 *
 * The counter does not begin at 0, but below COUNT_GOAL by as many references as there are to be up to a
 * mark. Blocks that may close a loop look whether it is there, before they add:
 *
 *      vucomisd xmm31, gs:[goal]          where no flags are lost by it; else
 *      jae mark                           mov gs:[scratch], rcx; vmovq rcx, xmm31; rorx rcx, rcx, 56
 *                                         movzx ecx, cl; jrcxz on; jmp mark; on: mov rcx, gs:[scratch]
 *
 * A repeated string instruction counts as one reference, or two if it has a source and a target: its elements
 * are no steps of the program's, and one instruction may have millions. They are added up beside, without
 * flags, by their size: rcx before, and less what is left of it behind. Blocks that follow each other are
 * written one behind the other, without jumps.
 *
 * Calls and returns are calls and returns, for the sake of the processor's prediction of returns. A call
 * pushes the address of the `landing` behind it, at once overwritten with the target's own return address; a
 * return puts the landing in place of that, and the landing puts it back:
 *
 *      call 1f                            ...
 *      landing: is rax the target's address behind the call? mov [rsp - 8], rax; rax, rcx back
 *      ...
 *   1: lea rsp, [rsp + 8]; push qword [rip + address behind the call]; jmp callee
 *
 *      mov gs:[scratch], rcx; mov gs:[spill_a], rax; mov rax, [rsp]; pext rcx, rax, gs:[table_mask]
 *      mov rcx, gs:[rcx * 8 + returns]; mov [rsp], rcx; ret
 *
 * Where blocks overlap, they share one copy of the call that ends them: what the processor predicts is the
 * landing behind the copy that was executed, and the table has only one.
 *
 * Indirect branches find the landing of their target in another such table. Both hold one place for each of
 * the lowest bits of an address, for all threads: a landing sees for itself whether it is the right one.
 */
#ifndef CACHEGRAM_X86_64_COUNT_H
#define CACHEGRAM_X86_64_COUNT_H

#include "agent/translator/x86_64/cache.h"
#include "agent/translator/x86_64/emit.h"
#include "agent/translator/x86_64/insn.h"
#include "agent/translator/x86_64/template.h"

/* The counter at its mark: the lowest number with its highest byte set; and a normal double, as are those
 * from COUNT_NO_AIM below, so that comparing two of them as such tells which is larger. */
#define COUNT_GOAL (1ull << 56)
/* What is added at once, at most. `steps` has as many entries, and again as many for blocks that end with a
 * turn: a return or an indirect branch, which are looked up. */
#define COUNT_STEPS 128u

int count_init_vector(void); /* number of the register, by what the session says; 0: none */
/* Whether the instruction names the register, or all of them. */
int count_names_vector(const struct insn *d);
/* Whether a block that `end` ends may be the last one of a loop's round. */
int count_may_loop(const struct insn *end);

/* Block for pc and what follows it, unless that is there (count-block.c). NULL: cannot, and
 * t->translation.leave_end says why. The lock is held. */
struct block *count_block(struct thread *t, uint64_t pc);

/* Before which instruction of a block that may close a loop it is to look for the mark; n: it is not. */
unsigned count_mark_place(const struct insn *insns, unsigned n);
/* Asks the dispatcher if the counter is at its mark; in front of that instruction (count-mark.c). */
void emit_count_mark(const struct insn *before);
/* Stores the counter in T_COUNTER, loads it from there, compares it with T_GOAL (changes flags: above or
 * equal if the mark is met), has its highest byte in rcx. */
void emit_count_store(struct emitter *e);
void emit_count_load(struct emitter *e);
void emit_count_compare(struct emitter *e);
void emit_count_high_byte(struct emitter *e);
/* Adds to the counter; n below COUNT_STEPS. turns: the block ends with a turn. */
void emit_count_add(struct emitter *e, unsigned n, int turns);
/* Adds the elements of a string instruction to `strings` number `string`, `times` for each; back: takes off
 * what is left. */
void emit_count_elements(struct emitter *e, unsigned times, unsigned string, int back);
/* Before an instruction with an element mask: adds n unless it is zero. */
void emit_count_masked(struct emitter *e, const struct insn *d, unsigned n);
/* Around an instruction that names the register. */
void emit_count_vector_out(struct emitter *e);
void emit_count_vector_in(struct emitter *e);
/* The target is to be loaded into rax behind this. */
void emit_count_save(struct emitter *e);
/* ... and looked up behind that: goes there, or returns to there. */
void emit_count_index(struct emitter *e, uint32_t exit_id);
void emit_count_jump(struct emitter *e);
void emit_count_return(struct emitter *e);
/* The landing for pc; `returns`: of returns. The block's code is to follow. */
void emit_count_landing(struct emitter *e, uint64_t pc, int returns);
/* Where landings lead that are the wrong ones. */
void emit_count_miss(struct emitter *e, int returns);

/* From now on indirect branches, or returns, to the block's source find it by themselves. The lock is held.
 */
void count_remember(struct block *b, int returns);

#endif
