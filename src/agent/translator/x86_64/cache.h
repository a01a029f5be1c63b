/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - the code cache: memory, blocks by the address of their source and of their code, the exits
 * between them.
 *
 * Code is only ever appended, under the lock, until all of it becomes stale at once (arch_flush). If a thread
 * is in the cache then, the stale code stays where it is, but no jump and no table leads to it any more, so
 * that each thread is in new code from its next block on; the memory is used again when nobody is inside.
 * `cache_out` is where blocks are written, one behind the other; what is seldom run is written to
 * `cache_cold`, to keep the other dense. Kinds of blocks: translate.h, count.h.
 */
#ifndef CACHEGRAM_X86_64_CACHE_H
#define CACHEGRAM_X86_64_CACHE_H

#include "agent/translator/x86_64/emit.h"
#include "agent/tunables.h"

#define BLOCK_CODE_MAX 8192 /* more than any block can take */
#define PLACES_OF_A_BLOCK (4 * BLOCK_INSNS + 8)

/* From `code_offset` on, instruction `insn` (at pc_offset) is being executed. */
struct place {
    uint16_t code_offset, pc_offset, insn;
    /* Counting blocks only: references of the block before it; how often rcx was added ahead, to which of the
     * thread's `strings`; PLACE_... */
    uint16_t refs;
    uint8_t repeats, string;
    uint8_t state;
    int8_t extra; /* register whose own value lies in T_SPILL_EXTRA; -1: none */
};
/* The counter is in T_COUNTER, and the target's vector in its register. */
#define PLACE_VECTOR_OUT 1u
/* rcx and rax are in T_SCRATCH and T_SPILL_A. */
#define PLACE_SAVED 2u

struct block {
    uint64_t pc;
    uint8_t *code;
    uint8_t *fast; /* recording blocks: where blocks that borrow the same pair enter */
    /* Counting blocks: where indirect branches and returns come in (count.h); NULL: none did so far. */
    uint8_t *landing, *return_landing;
    uint64_t call_pc; /* the call whose copy stands right before return_landing; 0: none */
    struct place *places;
    uint32_t code_bytes;
    uint16_t nplaces;
    uint16_t source_bytes;  /* that it was made from, from pc on */
    int8_t scratch, cursor; /* recording blocks: the borrowed pair; -1: the block borrows nothing */
    uint16_t check_end;     /* offset behind the check of the source; 0: none, it cannot change */
    uint16_t stale;         /* the source has changed: not to be found any more */
    uint16_t counts;        /* nonzero: a counting block */
    uint16_t refs;          /* that it counts each time */
    uint16_t stops;         /* nonzero: behind the check it looks whether it is to stop (count.h) */
};

enum exit_kind {
    EXIT_LINK,
    EXIT_INDIRECT,
    EXIT_SYSCALL,
    EXIT_STEP,
    EXIT_END,
    EXIT_STALE,
    EXIT_MARK,
    EXIT_BACK
};

/* A way out of a block that C code is asked about. */
struct exit {
    uint64_t target;             /* INDIRECT: the branch itself */
    uint8_t *patch, *fast_patch; /* jumps to be pointed at the target once it is there, */
    uint8_t *stub, *fast_stub;   /* and where they lead until then */
    uint8_t *resume; /* SYSCALL: the instruction itself; `after`: behind it. MARK, BACK: behind it */
    uint8_t *after;
    struct block *block; /* STALE, SYSCALL: the block itself */
    uint8_t kind;
    uint8_t counts;  /* of a counting block */
    uint8_t returns; /* INDIRECT: a return */
    int8_t scratch, cursor;
    uint16_t detail;
    uint16_t insn;        /* INDIRECT: number of the branch in its block */
    int32_t popped_bytes; /* INDIRECT: what the branch has added to the stack pointer */
};

extern struct emitter cache_out, cache_cold;

int cache_init(void); /* 0, or -1: no memory */
void cache_lock(void);
void cache_unlock(void);
uint8_t *cache_leave_gate(void);
/* Room for a block and what belongs to it; if there is none, what is there will be thrown away soon. */
int cache_has_room(void);
struct block *cache_find(uint64_t pc, int counts);
struct block *cache_find_code(uint64_t code_address);
/* Whether that is an entry of the block, and it must not be entered any more (arch_code_changes). */
int cache_is_poisoned(const struct block *b, uint64_t code_address);
struct block *cache_next(void); /* the block that is added next: to be filled in */
/* Makes it one of the cache, with these places; its code begins there and ends where cache_out stands. */
struct block *cache_add(const struct place *places, unsigned nplaces);
uint32_t cache_blocks(void);          /* blocks so far, plus one */
struct exit *cache_exit(uint64_t id); /* NULL: there is none */
uint32_t cache_exit_id(const struct exit *x);
struct exit *cache_new_exit(enum exit_kind kind, uint64_t target, int counts);
/* Code that asks the dispatcher about a new exit. */
struct exit *cache_emit_exit(struct emitter *e, enum exit_kind kind, uint64_t target, int counts);
void cache_link(struct exit *x); /* points its jumps at the target, if that is there */

#endif
