/* SPDX-License-Identifier: Apache-2.0 */
/* See count.h. */
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/translator/x86_64/count.h"

#define TABLE_SIZE (1u << COUNT_TABLE_BITS)
#define TABLES_BYTES (2 * sizeof(uint64_t) * TABLE_SIZE)

/* Opcodes of vector instructions: in map 0F, with the prefix that `emit_vector` is told. */
enum { PREFIX_66 = 1, PREFIX_F3 = 2 };
enum { V_ADD = 0xd4, V_SUBTRACT = 0xfb, V_LOAD = 0x6f, V_STORE = 0x7f, V_COMPARE = 0x2e };

static int vector = -1;
static unsigned whole; /* size of the whole register: 1 for 256 bits, 2 for 512 */
/*
 * The tables, first of jumps, then of returns. Each thread has the same memory at T_JUMPS and T_RETURNS, too.
 * NULL: not made yet in this process; a forked child shares its parent's until then, and does not touch them.
 */
static uint64_t *tables;
static uint32_t made; /* how often */

static uint64_t enabled_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

int count_init_vector(void)
{
    vector = (int)session->count_vector;
    whole = vector > 0 && (enabled_state() & 0xe0) == 0xe0 ? 2 : 1;
    return vector;
}

static uint64_t *entry(uint64_t pc, int is_return)
{
    return tables + (is_return ? TABLE_SIZE : 0) + (pc & (TABLE_SIZE - 1));
}

static uint64_t *make_tables(void)
{
    uint64_t *memory = own_map(NULL, TABLES_BYTES, OWN_SHARED);
    for (uint32_t i = 0; memory && i < TABLE_SIZE; i++) {
        memory[i] = (uint64_t)cache_miss_jump;
        memory[TABLE_SIZE + i] = (uint64_t)cache_miss_return;
    }
    return memory;
}

int count_tables(struct thread *t)
{
    cache_lock();
    if (!tables && (tables = make_tables()) != NULL)
        made++;
    cache_unlock();
    if (!tables)
        return -1;
    if (t->translation.has_tables == made)
        return 0;
    if (own_map_again(tables, TABLES_BYTES, t->tables.jumps))
        return -1;
    t->translation.has_tables = made;
    return 0;
}

uint64_t count_tables_bytes(void)
{
    return tables ? TABLES_BYTES : 0;
}

void count_tables_forked(void)
{
    if (tables)
        own_unmap(tables, TABLES_BYTES);
    tables = NULL;
}

void count_found_landing(struct block *b, uint8_t *landing, uint64_t call_pc)
{
    if (!b->return_landing || !b->call_pc) {
        b->return_landing = landing;
        b->call_pc = call_pc;
        __atomic_store_n(entry(b->pc, 1), (uint64_t)landing, __ATOMIC_RELEASE);
    }
}

void count_remember(struct block *b, int is_return)
{
    uint8_t **landing = is_return ? &b->return_landing : &b->landing;
    if (!*landing) {
        if (!cache_has_room())
            return;
        *landing = cache_out.at;
        emit_count_landing(&cache_out, b->pc, is_return);
        emit_patch(emit_jump(&cache_out), b->code);
    }
    __atomic_store_n(entry(b->pc, is_return), (uint64_t)*landing, __ATOMIC_RELEASE);
}

void count_forget_landings(const struct block *b)
{
    if (!tables)
        return;
    if (b->landing)
        *entry(b->pc, 0) = (uint64_t)cache_miss_jump;
    if (b->return_landing)
        *entry(b->pc, 1) = (uint64_t)cache_miss_return;
}

int count_may_loop(const struct insn *end)
{
    switch (end->class) {
    case INSN_JUMP:
    case INSN_CONDITIONAL:
    case INSN_COUNTED:
    case INSN_CALL:
        return (int64_t)(end->in.length + end->op[0].imm.value.s) <= 0;
    case INSN_CALL_INDIRECT:
    case INSN_JUMP_INDIRECT:
    case INSN_RETURN:
        return 1;
    default:
        return 0;
    }
}

int count_names_vector(const struct insn *d)
{
    unsigned n = (unsigned)vector;
    for (unsigned i = 0; i < d->in.operand_count; i++) {
        const ZydisDecodedOperand *o = &d->op[i];
        ZydisRegister r = o->type == ZYDIS_OPERAND_TYPE_REGISTER ? o->reg.value
                          : o->type == ZYDIS_OPERAND_TYPE_MEMORY ? o->mem.index
                                                                 : ZYDIS_REGISTER_NONE;
        if (r == ZYDIS_REGISTER_XMM0 + n || r == ZYDIS_REGISTER_YMM0 + n || r == ZYDIS_REGISTER_ZMM0 + n)
            return 1;
    }
    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64:
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
    case ZYDIS_MNEMONIC_XGETBV: /* tells which components are in use */
        return 1;
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
    case ZYDIS_MNEMONIC_VZEROALL:
    case ZYDIS_MNEMONIC_VZEROUPPER:
        return vector < 16;
    default:
        return 0;
    }
}

/* opcode vector, [other,] gs:[offset]; size: 0 for 128 bits, 1 for 256, 2 for 512 (Intel's manual, EVEX and
 * VEX). */
static void emit_vector(struct emitter *e, unsigned opcode, unsigned prefix, unsigned size, int other,
                        int offset)
{
    unsigned third = ~(unsigned)other & 31u; /* inverted; no register: all ones */
    emit_byte(e, 0x65);
    if (vector >= 16 || size == 2) {
        emit_byte(e, 0x62);
        emit_byte(e, vector >= 16 ? 0x61 : 0x71);
        emit_byte(e, 0x84u | (third & 15u) << 3 | prefix);
        emit_byte(e, size << 5 | third >> 4 << 3);
    } else {
        emit_byte(e, 0xc4);
        emit_byte(e, 0x61);
        emit_byte(e, (third & 15u) << 3 | size << 2 | prefix);
    }
    emit_byte(e, opcode);
    emit_byte(e, 0x04u | ((unsigned)vector & 7u) << 3);
    emit_byte(e, 0x25);
    emit_u32(e, (uint32_t)offset);
}

void emit_count_add(struct emitter *e, unsigned n, int turns)
{
    emit_vector(e, V_ADD, PREFIX_66, 0, vector, T_STEPS + 16 * (int)(turns ? n + COUNT_STEPS : n));
}

void emit_count_elements(struct emitter *e, unsigned times, unsigned string, int back)
{
    int at = T_STRINGS + (int)(string * sizeof(struct string_count));
    if (!times)
        return;
    emit_gs_store(e, back ? T_LEFT : T_ELEMENTS, RCX);
    emit_count_store(e);
    emit_vector(e, V_LOAD, PREFIX_F3, 0, 0, at);
    while (times--)
        emit_vector(e, back ? V_SUBTRACT : V_ADD, PREFIX_66, 0, vector, back ? T_LEFT : T_ELEMENTS);
    emit_vector(e, V_STORE, PREFIX_F3, 0, 0, at);
    emit_count_load(e);
}

void emit_count_masked(struct emitter *e, const struct insn *d, unsigned n)
{
    if (count_names_vector(d)) { /* perhaps the mask is in it */
        emit_count_add(e, n, 0);
        return;
    }
    emit_gs_store(e, T_SCRATCH, RCX);
    template_emit_mask(e, d, RCX);
    emit_byte(e, 0xe3); /* jrcxz */
    uint8_t *none = e->at;
    emit_byte(e, 0);
    emit_count_add(e, n, 0);
    *none = (uint8_t)(e->at - none - 1);
    emit_gs_load(e, RCX, T_SCRATCH);
}

void emit_count_store(struct emitter *e)
{
    emit_vector(e, V_STORE, PREFIX_F3, 0, 0, T_COUNTER);
}

void emit_count_load(struct emitter *e)
{
    emit_vector(e, V_LOAD, PREFIX_F3, 0, 0, T_COUNTER);
}

void emit_count_compare(struct emitter *e)
{
    emit_vector(e, V_COMPARE, PREFIX_66, 0, 0, T_GOAL);
}

void emit_count_high_byte(struct emitter *e)
{
    static const uint8_t evex[] = {0x62, 0x61, 0xfd, 0x08}, vex[] = {0xc4, 0x61, 0xf9};
    static const uint8_t rest[] = {0xc4, 0xe3, 0xfb, 0xf0, 0xc9, 0x38, /* rorx rcx, rcx, 56 */
                                   0x0f, 0xb6, 0xc9};                  /* movzx ecx, cl */
    if (vector >= 16)                                                  /* vmovq rcx, vector */
        emit_bytes(e, evex, sizeof evex);
    else
        emit_bytes(e, vex, sizeof vex);
    emit_byte(e, 0x7e);
    emit_byte(e, 0xc1u | ((unsigned)vector & 7u) << 3);
    emit_bytes(e, rest, sizeof rest);
}

void emit_count_vector_out(struct emitter *e)
{
    emit_count_store(e);
    emit_vector(e, V_LOAD, PREFIX_F3, whole, 0, T_VECTOR);
}

void emit_count_vector_in(struct emitter *e)
{
    emit_vector(e, V_STORE, PREFIX_F3, whole, 0, T_VECTOR);
    emit_count_load(e);
}

void emit_count_save(struct emitter *e)
{
    emit_gs_store(e, T_SCRATCH, RCX);
    emit_gs_store(e, T_SPILL_A, RAX);
}

void emit_count_index(struct emitter *e, const struct exit *x)
{
    static const uint8_t pext[] = {0x65, 0xc4, 0xe2, 0xfa, 0xf5, 0x0c, 0x25}; /* pext rcx, rax, gs:[...] */
    emit_gs_imm(e, T_EXIT_ID, cache_exit_id(x));
    emit_bytes(e, pext, sizeof pext);
    emit_u32(e, T_TABLE_MASK);
}

void emit_count_jump(struct emitter *e)
{
    static const uint8_t jump[] = {0x65, 0xff, 0x24, 0xcd}; /* jmp gs:[rcx * 8 + ...] */
    emit_bytes(e, jump, sizeof jump);
    emit_u32(e, T_JUMPS);
}

void emit_count_return(struct emitter *e)
{
    emit_byte(e, 0x65);
    emit_address(e, 0x8b, RCX, NO_REG, RCX, 8, T_RETURNS, 0);
    emit_store(e, RSP, 0, RCX);
    emit_byte(e, 0xc3);
}

void emit_count_landing(struct emitter *e, uint64_t pc, int is_return)
{
    emit_move_imm(e, RCX, 0 - pc);
    emit_address(e, 0x8d, RCX, RCX, RAX, 1, 0, 0);
    emit_byte(e, 0xe3); /* jrcxz */
    uint8_t *ok = e->at;
    emit_byte(e, 0);
    emit_patch(emit_jump(e), is_return ? cache_miss_return : cache_miss_jump);
    *ok = (uint8_t)(e->at - ok - 1);
    if (is_return)
        emit_store(e, RSP, -8, RAX);
    emit_gs_load(e, RCX, T_SCRATCH);
    emit_gs_load(e, RAX, T_SPILL_A);
}

void emit_count_miss(struct emitter *e, int is_return)
{
    if (is_return)
        emit_store(e, RSP, -8, RAX);
    emit_gs_store(e, T_INDIRECT, RAX);
    emit_gs_load(e, RCX, T_SCRATCH);
    emit_gs_load(e, RAX, T_SPILL_A);
    emit_gs_jump(e, T_DISPATCH);
}
