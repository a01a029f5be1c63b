/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.h - emits the few instruction forms that the translator adds. None of them changes flags.
 */
#ifndef CACHEGRAM_X86_64_EMIT_H
#define CACHEGRAM_X86_64_EMIT_H

#include <stdint.h>
#include <string.h>
#include "agent/translator/x86_64/layout.h"

struct emitter {
    uint8_t *at;
};

static inline void emit_byte(struct emitter *e, unsigned byte)
{
    *e->at++ = (uint8_t)byte;
}

static inline void emit_u32(struct emitter *e, uint32_t v)
{
    __builtin_memcpy(e->at, &v, 4);
    e->at += 4;
}

static inline void emit_u64(struct emitter *e, uint64_t v)
{
    __builtin_memcpy(e->at, &v, 8);
    e->at += 8;
}

static inline void emit_bytes(struct emitter *e, const uint8_t *bytes, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        emit_byte(e, bytes[i]);
}

/* opcode reg, gs:[offset], 64 bits */
static inline void emit_gs(struct emitter *e, unsigned opcode, int reg, int offset)
{
    emit_byte(e, 0x65);
    emit_byte(e, 0x48u | (unsigned)(reg >> 3) << 2);
    emit_byte(e, opcode);
    emit_byte(e, 0x04u | (unsigned)(reg & 7) << 3);
    emit_byte(e, 0x25);
    emit_u32(e, (uint32_t)offset);
}
static inline void emit_gs_store(struct emitter *e, int offset, int reg)
{
    emit_gs(e, 0x89, reg, offset);
}
static inline void emit_gs_load(struct emitter *e, int reg, int offset)
{
    emit_gs(e, 0x8b, reg, offset);
}

/* mov qword gs:[offset], imm32 (sign-extended) */
static inline void emit_gs_imm(struct emitter *e, int offset, uint32_t imm)
{
    emit_gs(e, 0xc7, 0, offset);
    emit_u32(e, imm);
}

static inline void emit_gs_jump(struct emitter *e, int offset)
{
    emit_byte(e, 0x65);
    emit_byte(e, 0xff);
    emit_byte(e, 0x24);
    emit_byte(e, 0x25);
    emit_u32(e, (uint32_t)offset);
}

/* modrm, sib and displacement of [base + disp] */
static inline void emit_modrm(struct emitter *e, int reg, int base, int32_t disp)
{
    unsigned mod = disp == 0 && (base & 7) != RBP ? 0 : disp >= -128 && disp < 128 ? 1 : 2;
    emit_byte(e, mod << 6 | (unsigned)(reg & 7) << 3 | (unsigned)(base & 7));
    if ((base & 7) == RSP)
        emit_byte(e, 0x24);
    if (mod == 1)
        emit_byte(e, (uint8_t)disp);
    else if (mod == 2)
        emit_u32(e, (uint32_t)disp);
}

/* opcode reg, [base + disp], 64 bits */
static inline void emit_mem(struct emitter *e, unsigned opcode, int reg, int base, int32_t disp)
{
    emit_byte(e, 0x48u | (unsigned)(reg >> 3) << 2 | (unsigned)(base >> 3));
    emit_byte(e, opcode);
    emit_modrm(e, reg, base, disp);
}
static inline void emit_store(struct emitter *e, int base, int32_t disp, int reg)
{
    emit_mem(e, 0x89, reg, base, disp);
}
static inline void emit_load(struct emitter *e, int reg, int base, int32_t disp)
{
    emit_mem(e, 0x8b, reg, base, disp);
}
static inline void emit_lea(struct emitter *e, int reg, int base, int32_t disp)
{
    emit_mem(e, 0x8d, reg, base, disp);
}
static inline void emit_store_imm(struct emitter *e, int base, int32_t disp, uint32_t imm)
{
    emit_mem(e, 0xc7, 0, base, disp);
    emit_u32(e, imm);
}

static inline void emit_move_imm(struct emitter *e, int reg, uint64_t v)
{
    if (v <= UINT32_MAX) {
        if (reg >> 3)
            emit_byte(e, 0x41);
        emit_byte(e, 0xb8u | (unsigned)(reg & 7));
        emit_u32(e, (uint32_t)v);
    } else {
        emit_byte(e, 0x48u | (unsigned)(reg >> 3));
        emit_byte(e, 0xb8u | (unsigned)(reg & 7));
        emit_u64(e, v);
    }
}

static inline void emit_move(struct emitter *e, int to, int from)
{
    emit_byte(e, 0x48u | (unsigned)(from >> 3) << 2 | (unsigned)(to >> 3));
    emit_byte(e, 0x89);
    emit_byte(e, 0xc0u | (unsigned)(from & 7) << 3 | (unsigned)(to & 7));
}

/* opcode (lea 0x8d or mov 0x8b) reg, [base + index * scale + disp]; base and index may be NO_REG; narrow:
 * with 32-bit addresses */
static inline void emit_address(struct emitter *e, unsigned opcode, int reg, int base, int index, int scale,
                                int32_t disp, int narrow)
{
    unsigned ss = scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0;
    unsigned mod = base < 0 ? 0 : disp == 0 && (base & 7) != RBP ? 0 : disp >= -128 && disp < 128 ? 1 : 2;
    if (narrow)
        emit_byte(e, 0x67);
    emit_byte(e, 0x48u | (unsigned)(reg >> 3) << 2 | (unsigned)((index < 0 ? 0 : index) >> 3) << 1 |
                     (unsigned)((base < 0 ? 0 : base) >> 3));
    emit_byte(e, opcode);
    emit_byte(e, mod << 6 | (unsigned)(reg & 7) << 3 | 4);
    emit_byte(e, ss << 6 | (unsigned)((index < 0 ? RSP : index) & 7) << 3 |
                     (unsigned)((base < 0 ? RBP : base) & 7));
    if (base < 0 || mod == 2)
        emit_u32(e, (uint32_t)disp);
    else if (mod == 1)
        emit_byte(e, (uint8_t)disp);
}

static inline void emit_push(struct emitter *e, int reg)
{
    if (reg >> 3)
        emit_byte(e, 0x41);
    emit_byte(e, 0x50u | (unsigned)(reg & 7));
}

static inline void emit_patch(uint8_t *place, const uint8_t *target)
{
    __atomic_store_n((uint32_t *)(void *)place, (uint32_t)(target - (place + 4)), __ATOMIC_RELEASE);
}

/* push qword [rip + ...], the value that emit_literal puts there. */
static inline uint8_t *emit_push_literal(struct emitter *e)
{
    emit_byte(e, 0xff);
    emit_byte(e, 0x35);
    emit_u32(e, 0);
    return e->at - 4;
}

static inline void emit_literal(struct emitter *e, uint8_t *displacement, uint64_t value)
{
    emit_patch(displacement, e->at);
    emit_u32(e, (uint32_t)value);
    emit_u32(e, (uint32_t)(value >> 32));
}

static inline void emit_pop(struct emitter *e, int reg)
{
    if (reg >> 3)
        emit_byte(e, 0x41);
    emit_byte(e, 0x58u | (unsigned)(reg & 7));
}

/* One instruction that does nothing; up to 4 bytes. */
static inline void emit_nop(struct emitter *e, unsigned bytes)
{
    static const uint8_t nops[5][4] = {
        {0}, {0x90}, {0x66, 0x90}, {0x0f, 0x1f, 0x00}, {0x0f, 0x1f, 0x40, 0x00}};
    emit_bytes(e, nops[bytes], bytes);
}

/* Padding so that a 4-byte displacement there does not cross an 8-byte boundary. */
static inline unsigned emit_gap(const uint8_t *displacement)
{
    unsigned at = (uintptr_t)displacement & 7;
    return at > 4 ? 8 - at : 0;
}

/* A jump whose 4-byte displacement does not cross an 8-byte boundary, so that it can be patched while other
 * threads execute it. Returns the place of the displacement. */
static inline uint8_t *emit_jump(struct emitter *e)
{
    emit_nop(e, emit_gap(e->at + 1));
    emit_byte(e, 0xe9);
    emit_u32(e, 0);
    return e->at - 4;
}

static inline uint8_t *emit_jcc(struct emitter *e, unsigned condition)
{
    emit_nop(e, emit_gap(e->at + 2));
    emit_byte(e, 0x0f);
    emit_byte(e, 0x80u | condition);
    emit_u32(e, 0);
    return e->at - 4;
}

/* kmovq (wide) or kmovw reg, k */
static inline void emit_kmov(struct emitter *e, int reg, int k, int wide)
{
    emit_byte(e, 0xc4);
    emit_byte(e, (reg >> 3 ? 0x61u : 0xe1u));
    emit_byte(e, wide ? 0xfbu : 0x78u);
    emit_byte(e, 0x93);
    emit_byte(e, 0xc0u | (unsigned)(reg & 7) << 3 | (unsigned)k);
}

/* vmovmskps (double_width 0) or vmovmskpd reg, vector; vector below 16 */
static inline void emit_movmsk(struct emitter *e, int reg, int vector, int bits, int double_width)
{
    emit_byte(e, 0xc4);
    emit_byte(e, (reg >> 3 ? 0u : 0x80u) | 0x40u | (vector >> 3 ? 0u : 0x20u) | 1u);
    emit_byte(e, 0x78u | (bits == 256 ? 4u : 0u) | (unsigned)double_width);
    emit_byte(e, 0x50);
    emit_byte(e, 0xc0u | (unsigned)(reg & 7) << 3 | (unsigned)(vector & 7));
}

/* pmovmskb reg, xmm */
static inline void emit_pmovmskb(struct emitter *e, int reg, int vector)
{
    emit_byte(e, 0x66);
    emit_byte(e, 0x40u | (unsigned)(reg >> 3) << 2 | (unsigned)(vector >> 3));
    emit_byte(e, 0x0f);
    emit_byte(e, 0xd7);
    emit_byte(e, 0xc0u | (unsigned)(reg & 7) << 3 | (unsigned)(vector & 7));
}

/* vmovdqu [base + disp], vector of 128 or 256 bits; vector below 16 */
static inline void emit_vex_store(struct emitter *e, int base, int32_t disp, int vector, int bits)
{
    emit_byte(e, 0xc4);
    emit_byte(e, (vector >> 3 ? 0u : 0x80u) | 0x40u | (base >> 3 ? 0u : 0x20u) | 1u);
    emit_byte(e, 0x7au | (bits == 256 ? 4u : 0u));
    emit_byte(e, 0x7f);
    emit_modrm(e, vector, base, disp);
}

/* vmovdqu64 [base + disp], any vector of 128, 256 or 512 bits */
static inline void emit_evex_store(struct emitter *e, int base, int32_t disp, int vector, int bits)
{
    unsigned width = bits == 512 ? 2 : bits == 256 ? 1 : 0;
    emit_byte(e, 0x62);
    emit_byte(e, (vector >> 3 & 1 ? 0u : 0x80u) | 0x40u | (base >> 3 ? 0u : 0x20u) |
                     (vector >> 4 ? 0u : 0x10u) | 1u);
    emit_byte(e, 0xfe); /* W1, vvvv unused, F3 */
    emit_byte(e, width << 5 | 0x08u);
    emit_byte(e, 0x7f);
    emit_byte(e, 0x80u | (unsigned)(vector & 7) << 3 | (unsigned)(base & 7)); /* 32-bit displacement */
    if ((base & 7) == RSP)
        emit_byte(e, 0x24);
    emit_u32(e, (uint32_t)disp);
}

#endif
