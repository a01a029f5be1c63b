/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - the code cache: its memory, blocks by the address of their source and of their code, and the
 * exits between them.
 *
 * Code is only appended, under the lock, until all of it becomes stale at once (arch_flush). If a thread is
 * in the cache at that moment, the stale code stays where it is, but no jump and no table leads to it any
 * more, so each thread is in new code from its next block on. The memory is reused when no thread is
 * inside. `cache_out` is where blocks are written, one after the other. Rarely executed code is written to
 * `cache_cold`, to keep the rest dense. Kinds of blocks: translate.h, count.h.
 */
#ifndef CACHEGRAM_X86_64_CACHE_H
#define CACHEGRAM_X86_64_CACHE_H

#include "agent/translator/x86_64/emit.h"
#include "agent/tunables.h"

#define BLOCK_CODE_MAX 8192 /* larger than any block */
#define PLACES_OF_A_BLOCK (4 * BLOCK_INSNS + 8)

/* From `code_offset` on, instruction `insn` (at pc_offset) is executed. */
struct place {
    uint16_t code_offset, pc_offset, insn;
    /* Counting blocks only: references of the block before this place; how often rcx was added in advance,
     * and to which of the thread's `strings`; PLACE_... */
    uint16_t refs;
    uint8_t repeats, string;
    uint8_t state;
    int8_t extra; /* register whose own value is in T_SPILL_EXTRA; -1: none */
};
/* The counter is in T_COUNTER, and the target's vector in its register. */
#define PLACE_VECTOR_OUT 1u
/* rcx and rax are in T_SCRATCH and T_SPILL_A. */
#define PLACE_SAVED 2u

struct block {
    uint64_t pc;
    uint8_t *code;
    uint8_t *fast; /* recording blocks: entry for blocks that borrow the same pair */
    /* Counting blocks: landings of indirect branches and of returns (count.h); NULL: none yet. */
    uint8_t *landing, *return_landing;
    uint64_t call_pc; /* the call whose copy is right before return_landing; 0: none */
    struct place *places;
    uint32_t code_bytes;
    uint16_t nplaces;
    uint16_t source_bytes;  /* bytes that it was made from, starting at pc */
    int8_t scratch, cursor; /* recording blocks: the borrowed pair; -1: the block borrows nothing */
    uint16_t check_end;     /* offset after the check of the source; 0: none, since it cannot change */
    uint16_t stale;         /* the source has changed: lookups skip it */
    uint16_t counts;        /* nonzero: a counting block */
    uint16_t refs;          /* references that it adds at each execution */
    uint16_t stops;         /* nonzero: after the check it stops if requested (count.h) */
    uint16_t filtered;      /* the block filters lines: offset after its header is written; else 0 */
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

/* An exit of a block to C code. */
struct exit {
    uint64_t target;             /* INDIRECT: the branch itself */
    uint8_t *patch, *fast_patch; /* jumps that are patched to lead to the target once it exists, */
    uint8_t *stub, *fast_stub;   /* and where they lead until then */
    uint8_t *resume; /* SYSCALL: the instruction itself (`after`: after it). MARK, BACK: after it */
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
uint8_t *cache_leave_gate(void);
/* Nonzero: there is room for a block and its data. If not, all translations will be discarded soon. */
int cache_has_room(void);
/* Entries of the largest tables of blocks by pc; a power of two. */
#define CACHE_HASH_BITS 20
#define CACHE_HASH_SIZE (1u << CACHE_HASH_BITS)
_Static_assert(CACHE_HASH_SIZE == 2 * WIRE_MAX_BLOCKS, "tables of blocks are never more than half full");
uint32_t cache_hash(uint64_t pc); /* below CACHE_HASH_SIZE; smaller tables use its low bits */
struct block *cache_find(uint64_t pc, int counts);
struct block *cache_find_code(uint64_t code_address);
/* Whether that is an entry of a block that must not be entered any more (arch_code_changes). */
int cache_is_poisoned(const struct block *b, uint64_t code_address);
struct block *cache_next(void); /* the next block, to be filled in */
/* Adds it to the cache, with these places; its code ends at cache_out. */
struct block *cache_add(const struct place *places, unsigned nplaces);
/* Removes all ways to existing code; a thread that executes it calls the dispatcher at the end of its
 * block. The caller holds the lock. */
void cache_make_stale(void);
uint32_t cache_blocks(void);          /* blocks so far, plus one */
struct exit *cache_exit(uint64_t id); /* NULL: there is none */
uint32_t cache_exit_id(const struct exit *x);
struct exit *cache_new_exit(enum exit_kind kind, uint64_t target, int counts);
/* Emits code that calls the dispatcher with a new exit. */
struct exit *cache_emit_exit(struct emitter *e, enum exit_kind kind, uint64_t target, int counts);
void cache_link(struct exit *x); /* patches its jumps, if the target exists */

#endif
