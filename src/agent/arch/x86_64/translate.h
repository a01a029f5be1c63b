/* SPDX-License-Identifier: Apache-2.0 */
/*
 * translate.h - the code cache: blocks, the exits between them, and what faults need to know.
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
 * A counting block (count.h) is made of the same code and lives beside the recording one.
 */
#ifndef CACHEGRAM_X86_64_TRANSLATE_H
#define CACHEGRAM_X86_64_TRANSLATE_H

#include "agent/agent.h"
#include "agent/arch/x86_64/insn.h"

/* From `code_offset` on, instruction `insn` (at pc_offset) is being executed. */
struct place {
    uint16_t code_offset, pc_offset, insn;
    /* Counting blocks: references of the block before it; how often the cursor has run ahead by rcx. */
    uint16_t refs, repeats;
};

struct block {
    uint64_t pc;
    uint8_t *code, *fast;
    uint8_t *landing; /* counting blocks: where indirect branches come in; NULL: none did so far */
    struct place *places;
    uint32_t code_bytes;
    uint16_t nplaces;
    int8_t scratch, cursor; /* -1: the block borrows nothing */
    uint16_t check_end;     /* offset behind the check of the source; 0: none, it cannot change */
    uint16_t stale;         /* the source has changed: not to be found any more */
    uint16_t probe;         /* counting blocks: offset of the probe; 0: none */
    uint16_t counts;        /* nonzero: a counting block */
    uint16_t refs;          /* that it counts each time, string instructions aside */
    uint16_t extra_from;    /* offset from where on `extra`'s own value lies in T_SPILL_EXTRA */
    int8_t extra;           /* counting blocks: a third register, borrowed by this block alone; -1: none */
};

enum exit_kind { EXIT_LINK, EXIT_INDIRECT, EXIT_SYSCALL, EXIT_STEP, EXIT_END, EXIT_STALE };

/* A way out of a block that C code is asked about. */
struct exit {
    uint64_t target;             /* INDIRECT: the branch itself */
    uint8_t *patch, *fast_patch; /* jumps to be pointed at the target once it is there */
    uint8_t *resume;             /* SYSCALL: the instruction itself; `after`: behind it */
    uint8_t *after;
    struct block *block; /* STALE, SYSCALL: the block itself */
    uint8_t kind;
    uint8_t counts; /* of a counting block */
    uint8_t call;   /* LINK: it leads into another function */
    int8_t scratch, cursor;
    uint16_t detail;
    uint16_t insn;        /* INDIRECT: number of the branch in its block */
    int32_t popped_bytes; /* INDIRECT: what the branch has added to the stack pointer */
};

int translate_init(int bmi2);
struct exit *translate_exit(uint64_t id);
/* Block for pc, of the kind that t is in, made if need be; the hint is the pair that the caller has borrowed.
 * NULL: cannot. */
struct block *translate_block(struct thread *t, uint64_t pc, int hint_scratch, int hint_cursor);
/* The source of x->block has changed: a new block. */
struct block *translate_again(struct thread *t, const struct exit *x);
void translate_link(struct exit *x);
/* Where indirect branches of counting blocks enter that one; NULL: no room. The lock is held. */
uint8_t *translate_landing(struct block *b);
uint8_t *translate_miss(void); /* where they go as long as the target is not known */
struct block *translate_find_code(uint64_t code_address);
void translate_lock(void);
void translate_unlock(void);
uint8_t *translate_leave_gate(void);

#endif
