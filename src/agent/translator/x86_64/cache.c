/* SPDX-License-Identifier: Apache-2.0 */
/* See cache.h. */
#include "agent/code/code.h"
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/translator/translator.h"
#include "agent/translator/x86_64/cache.h"
#include "agent/translator/x86_64/count.h"
#include "agent/translator/x86_64/landings.h"
#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define MAX_BLOCKS (WIRE_MAX_BLOCKS * 3u / 2) /* counting blocks have no id that the collector knows */
#define MAX_EXITS (2u * WIRE_MAX_BLOCKS)
#define EXITS_OF_A_BLOCK 8
/* The table grows with the number of blocks: a small program touches few of its pages. */
#define FIRST_HASH_SIZE 4096u
#define HLT 0xf4 /* it faults in user mode, and is the cheapest such instruction in a virtual machine */

struct emitter cache_out, cache_cold;

static uint8_t *cache, *cache_end, *arena, *arena_end;
static uint8_t *arena_at, *leave_gate, *cold_start;
static struct block *blocks;
static struct exit *exits;
static uint32_t *hash; /* numbers of blocks; the first hash_size entries are in use, a power of two */
static uint32_t hash_size = FIRST_HASH_SIZE;
static uint32_t nblocks, nexits;
static uint32_t first_current; /* the first block that is not stale since a flush */
static uint64_t generation = 1;
/* Structures of threads that were ever inside; they are reused, and never freed. */
static struct thread **known; /* 2 * MAX_THREADS */
static uint32_t nknown;
/* Threads that may execute code of the cache, or refer to its exits (arch_mark_inside). */
static uint32_t inside;
static int lock;

void arch_lock(void)
{
    spin_lock(&lock);
}

void arch_unlock(void)
{
    spin_unlock(&lock);
}

uint8_t *cache_leave_gate(void)
{
    return leave_gate;
}

static void forget_targets(struct thread *t)
{
    /* The memory reads as zeros afterwards, and untouched parts cost nothing. */
    sys3(SYS_madvise, t->tables.targets, sizeof t->tables.targets, MADV_DONTNEED);
}

int arch_mark_inside(struct thread *t)
{
    arch_lock();
    int same = t->translation.generation == generation;
    if (!t->translation.generation && nknown < 2 * MAX_THREADS) /* no more structures are made */
        known[nknown++] = t;
    if (!t->translation.inside)
        __atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
    t->translation.inside = 1;
    t->translation.generation = generation;
    if (!same)
        forget_targets(t);
    arch_unlock();
    return same;
}

void arch_mark_outside(struct thread *t)
{
    if (t->translation.inside)
        __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
    t->translation.inside = 0;
}

int arch_in_cache(uint64_t pc)
{
    return pc >= (uint64_t)cache && pc < (uint64_t)cache_end;
}

static void start_cache(void)
{
    cache_out.at = leave_gate = cache;
    emit_byte(&cache_out, HLT);
    cache_out.at = cache + 64;
    for (int is_return = 0; is_return < 2; is_return++) {
        landings_miss[is_return] = cache_out.at;
        emit_count_miss(&cache_out, is_return);
    }
    cache_cold.at = cold_start = cache + CODE_CACHE_BYTES / 4 * 3;
    arena_at = arena;
    nexits = nblocks = first_current = 1;
}

/* A place from which RIP-relative operands reach most code: below the program, if that has much code of its
 * own; else the kernel's choice (NULL), which is near libraries. */
static void *place_in_reach(void)
{
    const Elf64_Phdr *p = (const Elf64_Phdr *)getauxval(AT_PHDR);
    uint64_t n = getauxval(AT_PHNUM), base = 0, lowest = UINT64_MAX, code = 0;
    for (uint64_t i = 0; p && i < n; i++) {
        if (p[i].p_type == PT_PHDR)
            base = (uint64_t)p - p[i].p_vaddr;
        if (p[i].p_type == PT_LOAD && p[i].p_vaddr < lowest)
            lowest = p[i].p_vaddr;
        if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X)
            code += p[i].p_memsz;
    }
    uint64_t place = (base + lowest - CODE_CACHE_BYTES - CACHE_BELOW_PROGRAM) & ~(uint64_t)(WIRE_PAGE - 1);
    return base && code >= PROGRAM_CODE_LEAST ? (void *)place : NULL;
}

int cache_init(void)
{
    cache = own_map(place_in_reach(), CODE_CACHE_BYTES, OWN_CODE);
    arena = own_map(NULL, ARENA_BYTES, OWN_DATA);
    blocks = own_map(NULL, sizeof *blocks * MAX_BLOCKS, OWN_DATA);
    exits = own_map(NULL, sizeof *exits * MAX_EXITS, OWN_DATA);
    hash = own_map(NULL, sizeof *hash * CACHE_HASH_SIZE, OWN_DATA);
    known = own_map(NULL, sizeof(struct thread *) * 2 * MAX_THREADS, OWN_DATA);
    if (!cache || !arena || !blocks || !exits || !hash || !known)
        return -1;
    cache_end = cache + CODE_CACHE_BYTES;
    arena_end = arena + ARENA_BYTES;
    start_cache();
    return 0;
}

/* A thread that enters the block faults before it has executed anything of it (arch_fault). Only one byte
 * is written, so that a thread that enters at this moment executes either the old instruction or this one. */
static void poison(struct block *b)
{
    b->stale = 1;
    __atomic_store_n(b->code, HLT, __ATOMIC_RELEASE);
    if (b->fast)
        __atomic_store_n(b->fast, HLT, __ATOMIC_RELEASE);
}

int cache_is_poisoned(const struct block *b, uint64_t code_address)
{
    const uint8_t *at = (const uint8_t *)code_address;
    return b->stale && (at == b->code || at == b->fast) && *at == HLT;
}

void arch_code_changes(uint64_t address, uint64_t bytes)
{
    uint64_t start = address & ~(uint64_t)(WIRE_PAGE - 1), end = address + bytes + WIRE_PAGE - 1;
    end = end < address ? UINT64_MAX : end & ~(uint64_t)(WIRE_PAGE - 1);
    if (!regions_overlap_code(start, end - start))
        return;
    arch_lock();
    if (regions_mark_unstable(start, end)) {
        for (uint32_t i = 1; i < nblocks; i++)
            if (blocks[i].pc < end && blocks[i].pc + blocks[i].source_bytes > start && !blocks[i].stale)
                poison(&blocks[i]);
        /* Otherwise threads coming from blocks that stay would fault there each time. */
        for (uint32_t i = 1; i < nexits; i++) {
            struct exit *x = &exits[i];
            if (!x->patch || x->target >= end || x->target + BLOCK_SOURCE_MAX <= start ||
                cache_find(x->target, x->counts))
                continue;
            emit_patch(x->patch, x->stub);
            if (x->fast_patch)
                emit_patch(x->fast_patch, x->fast_stub);
        }
    }
    arch_unlock();
}

uint64_t arch_memory(void)
{
    return (uint64_t)(cache_out.at - cache) + (uint64_t)(cache_cold.at - cold_start) +
           (uint64_t)(arena_at - arena) + nblocks * sizeof *blocks + nexits * sizeof *exits +
           hash_size * sizeof *hash + landings_bytes();
}

static void forget_landings(const struct block *b)
{
    if (b->landing)
        landings_clear(b->pc, 0);
    if (b->return_landing)
        landings_clear(b->pc, 1);
}

/* The memory reads as zeros afterwards. */
static void clear_hash(void)
{
    sys3(SYS_madvise, hash, sizeof *hash * hash_size, MADV_DONTNEED);
}

static void discard_all(void)
{
    for (uint32_t i = 1; i < nblocks; i++)
        forget_landings(&blocks[i]);
    landings_flushed();
    clear_hash();
    generation++;
    start_cache();
}

/* A thread's lookup reads the code first, then the key: without the key it fails. */
static void forget_keys(struct thread *t)
{
    for (size_t i = 0; t->translation.inside && i < sizeof t->tables.targets / sizeof t->tables.targets[0];
         i += 2)
        if (t->tables.targets[i])
            __atomic_store_n(&t->tables.targets[i], 0, __ATOMIC_RELEASE);
}

void cache_make_stale(void)
{
    for (uint32_t i = 1; i < nblocks; i++)
        forget_landings(&blocks[i]);
    for (uint32_t i = 1; i < nexits; i++) {
        if (exits[i].patch)
            emit_patch(exits[i].patch, exits[i].stub);
        if (exits[i].fast_patch)
            emit_patch(exits[i].fast_patch, exits[i].fast_stub);
    }
    landings_flushed();
    clear_hash();
    first_current = nblocks;
    generation++;
    for (uint32_t i = 0; i < nknown; i++)
        forget_keys(known[i]);
}

void arch_flush(void)
{
    arch_lock();
    if (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) == 0)
        discard_all();
    else
        cache_make_stale();
    regions_forget();
    arch_unlock();
    count_add(&proc->count.flushes, 1);
}

void arch_forked(void)
{
    lock = 0;
    inside = 0;
    landings_forked();
    discard_all();
}

int cache_has_room(void)
{
    if (cache_out.at + BLOCK_CODE_MAX <= cold_start && cache_cold.at + BLOCK_CODE_MAX <= cache_end &&
        nblocks + 1 < MAX_BLOCKS && nexits + EXITS_OF_A_BLOCK < MAX_EXITS &&
        arena_at + sizeof(struct place) * PLACES_OF_A_BLOCK <= arena_end)
        return 1;
    regions_mark_stale(); /* the next burst starts with an empty cache, if no thread is in it */
    return 0;
}

uint32_t cache_hash(uint64_t pc)
{
    return (uint32_t)(pc * 0x9e3779b97f4a7c15ull >> (64 - CACHE_HASH_BITS));
}

struct block *cache_find(uint64_t pc, int counts)
{
    for (uint32_t h = cache_hash(pc) & (hash_size - 1); hash[h]; h = (h + 1) & (hash_size - 1))
        if (blocks[hash[h]].pc == pc && blocks[hash[h]].counts == counts && !blocks[hash[h]].stale)
            return &blocks[hash[h]];
    return NULL;
}

struct block *cache_find_code(uint64_t address)
{
    uint8_t *at = (uint8_t *)address;
    uint32_t low = 1, high = nblocks;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct block *b = &blocks[middle];
        if (at < b->code)
            high = middle;
        else if (at >= b->code + b->code_bytes)
            low = middle + 1;
        else
            return b;
    }
    return NULL;
}

struct block *cache_next(void)
{
    return &blocks[nblocks];
}

uint32_t cache_blocks(void)
{
    return nblocks;
}

static void add_to_hash(uint32_t number)
{
    uint32_t h = cache_hash(blocks[number].pc) & (hash_size - 1);
    /* Entries of stale blocks are reused, or changing code would fill the table. */
    while (hash[h] && !blocks[hash[h]].stale)
        h = (h + 1) & (hash_size - 1);
    hash[h] = number;
}

static void grow_hash(void)
{
    clear_hash();
    hash_size *= 2;
    for (uint32_t i = first_current; i < nblocks; i++)
        if (!blocks[i].stale)
            add_to_hash(i);
}

struct block *cache_add(const struct place *places, unsigned nplaces)
{
    struct block *b = &blocks[nblocks];
    b->code_bytes = (uint32_t)(cache_out.at - b->code);
    b->nplaces = (uint16_t)nplaces;
    b->places = (struct place *)(void *)arena_at;
    arena_at += (nplaces * sizeof *places + 7) & ~(size_t)7;
    __builtin_memcpy(b->places, places, nplaces * sizeof *places);
    if (nblocks >= hash_size / 2 && hash_size < CACHE_HASH_SIZE)
        grow_hash();
    add_to_hash(nblocks++);
    return b;
}

struct exit *cache_exit(uint64_t id)
{
    return id < nexits ? &exits[id] : NULL;
}

uint32_t cache_exit_id(const struct exit *x)
{
    return (uint32_t)(x - exits);
}

struct exit *cache_new_exit(enum exit_kind kind, uint64_t target, int counts)
{
    struct exit *x = &exits[nexits++];
    *x = (struct exit){
        .target = target, .kind = (uint8_t)kind, .counts = (uint8_t)counts, .scratch = -1, .cursor = -1};
    return x;
}

struct exit *cache_emit_exit(struct emitter *e, enum exit_kind kind, uint64_t target, int counts)
{
    struct exit *x = cache_new_exit(kind, target, counts);
    emit_gs_imm(e, T_EXIT_ID, cache_exit_id(x));
    emit_gs_jump(e, T_DISPATCH);
    return x;
}

void cache_link(struct exit *x)
{
    struct block *b = cache_find(x->target, x->counts);
    if (!b || !x->patch)
        return;
    emit_patch(x->patch, b->code);
    if (x->fast_patch && b->fast && b->scratch == x->scratch && b->cursor == x->cursor)
        emit_patch(x->fast_patch, b->fast);
}
