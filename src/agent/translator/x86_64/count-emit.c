/* SPDX-License-Identifier: Apache-2.0 */
/* count-emit.c - code that adds to the counter, and what goes with it. See count.h. */
#include "agent/sys/session.h"
#include "agent/translator/x86_64/count.h"
#include "agent/translator/x86_64/landings.h"

/* Opcodes of vector instructions in map 0F, with the prefix that emit_vector gets. */
enum { PREFIX_66 = 1, PREFIX_F3 = 2 };
enum { V_ADD = 0xd4, V_SUBTRACT = 0xfb, V_LOAD = 0x6f, V_STORE = 0x7f, V_COMPARE = 0x2e };

static int vector = -1;
static unsigned whole; /* size of the whole register: 1 for 256 bits, 2 for 512 */

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
    case ZYDIS_MNEMONIC_XGETBV: /* reports which components are in use */
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

/* opcode vector, [other,] gs:[offset]. size: 0 for 128 bits, 1 for 256, 2 for 512 (Intel's manual, EVEX and
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
    if (count_names_vector(d)) { /* the mask may be in it */
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

void emit_count_index(struct emitter *e, uint32_t exit_id)
{
    const uint8_t shift = (uint8_t)(32 - landings_bits());
    const uint8_t index[] = {
        0xb9, shift, 0,    0,    0,           /* mov ecx, 32 - bits */
        0xc4, 0xe2,  0x71, 0xf7, 0xc8,        /* shlx ecx, eax, ecx */
        0xc4, 0xe3,  0x7b, 0xf0, 0xc9, shift, /* rorx ecx, ecx, 32 - bits */
    };
    emit_gs_imm(e, T_EXIT_ID, exit_id);
    emit_bytes(e, index, sizeof index);
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
    emit_patch(emit_jump(e), landings_miss[is_return]);
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
