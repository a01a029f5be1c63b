/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.h - blocks that count their references and record nothing.
 *
 * They are copies that add to a counter in a vector register, and borrow nothing else: zmm31 if the
 * processor has AVX-512VL, else ymm15. The target's own value of it is in T_VECTOR; an instruction that
 * names the register gets it back meanwhile. A block begins with what it adds:
 *
 *      mov gs:[stop], rsp                 if it may close a loop
 *      vpaddq xmm31, xmm31, gs:[steps + 16 * references]
 *      add rax, [rbx]                     the target's: one reference
 *      push rax                           another one
 *      jne ...
 *
 * `steps` is a page of the thread's that contains 0, 1, 2, ... A block without references adds 0 if it may
 * close a loop.
 *
 * `stop` is another page, which only that store writes to. Making it read-only stops the thread at the
 * beginning of the next block that may close a loop, where no instruction of the block has been executed
 * yet and all registers are the target's. (It stays readable, since the target may read any page, by system
 * calls and in other threads, too.)
 *
 * The counter does not start at 0, but below COUNT_GOAL by the number of references up to the next mark.
 * Blocks that may close a loop check before they add whether the mark has been reached:
 *
 *      vucomisd xmm31, gs:[goal]          where no flags are lost by it; else
 *      jae mark                           mov gs:[scratch], rcx; vmovq rcx, xmm31; rorx rcx, rcx, 56
 *                                         movzx ecx, cl; jrcxz on; jmp mark; on: mov rcx, gs:[scratch]
 *
 * A repeated string instruction counts as one reference, or two if it has a source and a destination: its
 * elements are not steps of the program, and one instruction may have millions. They are summed separately,
 * without changing flags, by their size: rcx before the instruction is added, and rcx after it subtracted.
 * Blocks that follow each other are written one after the other, without jumps.
 *
 * Calls and returns stay calls and returns, for the processor's return prediction. A call pushes the
 * address of the `landing` after it, which is overwritten at once by the target's own return address. A
 * return replaces that by the landing, and the landing restores it:
 *
 *      call 1f                            ...
 *      landing: is rax the target's return address? mov [rsp - 8], rax; restore rax, rcx
 *      ...
 *   1: lea rsp, [rsp + 8]; push qword [rip + the target's return address]; jmp callee
 *
 *      mov gs:[scratch], rcx; mov gs:[spill_a], rax; mov rax, [rsp]
 *      mov ecx, 14; shlx ecx, eax, ecx; rorx ecx, ecx, 14
 *      mov rcx, gs:[rcx * 8 + returns]; mov [rsp], rcx; ret
 *
 * Where blocks overlap, they share one copy of the call that ends them: the processor predicts the landing
 * after the copy that was executed, and the table has only one.
 *
 * Indirect branches find the landing of their target in another such table. Both tables are indexed by the
 * lowest 18 bits of an address, and are shared by all threads: a landing verifies that it is the right one.
 * (The bits are extracted without changing flags. `pext` would do it in one instruction, which takes 80
 * cycles on AMD before Zen 3.)
 */
#ifndef CACHEGRAM_X86_64_COUNT_H
#define CACHEGRAM_X86_64_COUNT_H

#include "agent/translator/x86_64/cache.h"
#include "agent/translator/x86_64/emit.h"
#include "agent/translator/x86_64/insn.h"
#include "agent/translator/x86_64/template.h"

/* Value of the counter at its mark: the lowest number whose highest byte is set. It is also a normal
 * double, as are the numbers from COUNT_NO_AIM below it, so comparing two of them as doubles shows which is
 * larger. */
#define COUNT_GOAL (1ull << 56)
/* Largest number that is added at once. `steps` has as many entries, and as many again for blocks that end
 * with a return or an indirect branch, which are counted separately since they need a lookup. */
#define COUNT_STEPS 128u

int count_init_vector(void); /* number of the register, as chosen by the session; 0: none */
/* Whether the instruction names the register, or all vector registers. */
int count_names_vector(const struct insn *d);
/* Whether a block that ends with `end` may close a loop. */
int count_may_loop(const struct insn *end);

/* Makes the blocks for pc and what follows it, unless they exist (count-block.c). NULL: not possible,
 * t->translation.leave_end says why. The caller holds the lock. */
int count_block_init(void); /* 0, or -1: no memory */
struct block *count_block(struct thread *t, uint64_t pc);

/* Before which instruction a block that may close a loop checks for the mark; n: it does not. */
unsigned count_mark_place(const struct insn *insns, unsigned n);
/* Calls the dispatcher if the counter has reached its mark; emitted before that instruction (count-mark.c).
 */
void emit_count_mark(const struct insn *before);
/* Stores the counter in T_COUNTER; loads it from there; compares it with T_GOAL (changes flags: above or
 * equal if the mark is reached); puts its highest byte into rcx. */
void emit_count_store(struct emitter *e);
void emit_count_load(struct emitter *e);
void emit_count_compare(struct emitter *e);
void emit_count_high_byte(struct emitter *e);
/* Adds to the counter; n < COUNT_STEPS. turns: the block ends with a return or an indirect branch. */
void emit_count_add(struct emitter *e, unsigned n, int turns);
/* Adds the elements of a string instruction to the thread's strings[string], `times` for each; back:
 * subtracts what is left of them. */
void emit_count_elements(struct emitter *e, unsigned times, unsigned string, int back);
/* Before an instruction with an element mask: adds n unless the mask is zero. */
void emit_count_masked(struct emitter *e, const struct insn *d, unsigned n);
/* Before and after an instruction that names the register. */
void emit_count_vector_out(struct emitter *e);
void emit_count_vector_in(struct emitter *e);
/* An indirect branch: saves rcx and rax, before the branch target is loaded into rax. */
void emit_count_save(struct emitter *e);
void emit_count_index(struct emitter *e, uint32_t exit_id); /* computes the index of its landing */
void emit_count_jump(struct emitter *e);                    /* jumps to the landing with that index */
void emit_count_return(struct emitter *e);                  /* returns to it */
/* The landing for pc; `returns`: of returns. The block's code must follow. */
void emit_count_landing(struct emitter *e, uint64_t pc, int returns);
/* Where a landing leads if it is the wrong one. */
void emit_count_miss(struct emitter *e, int returns);

/* From now on indirect branches, or returns, to the block's source find it by themselves. The caller holds
 * the lock. */
void count_remember(struct block *b, int returns);

#endif
