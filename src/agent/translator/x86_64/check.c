/* SPDX-License-Identifier: Apache-2.0 */
/* See check.h. The CRC is that of the crc32 instruction, over pieces of 8, 4, 2 and 1 bytes in this order. */
#include "agent/translator/x86_64/check.h"

static uint32_t crc_step(uint32_t crc, const uint8_t *p, unsigned n)
{
    uint64_t v = 0, wide = crc;
    __builtin_memcpy(&v, p, 8 < n ? 8 : n);
    switch (n) {
    case 8:
        __asm__("crc32q %1, %0" : "+r"(wide) : "r"(v));
        return (uint32_t)wide;
    case 4:
        __asm__("crc32l %1, %0" : "+r"(crc) : "r"((uint32_t)v));
        return crc;
    case 2:
        __asm__("crc32w %1, %0" : "+r"(crc) : "r"((uint16_t)v));
        return crc;
    default:
        __asm__("crc32b %1, %0" : "+r"(crc) : "r"((uint8_t)v));
        return crc;
    }
}

/* crc32 rcx, [base + disp], of n bytes */
static void emit_crc(struct emitter *e, int base, int32_t disp, unsigned n)
{
    if (n == 2)
        emit_byte(e, 0x66);
    emit_byte(e, 0xf2);
    if (n == 8 || base >> 3)
        emit_byte(e, 0x40u | (n == 8 ? 8u : 0) | (unsigned)(base >> 3));
    emit_byte(e, 0x0f);
    emit_byte(e, 0x38);
    emit_byte(e, n == 1 ? 0xf0 : 0xf1);
    emit_modrm(e, RCX, base, disp);
}

void emit_check(struct emitter *e, int scratch, uint64_t pc, const uint8_t *source, unsigned bytes,
                uint8_t **ok)
{
    uint32_t crc = 0;
    emit_gs_store(e, T_SCRATCH, RCX);
    emit_move_imm(e, scratch, pc);
    emit_byte(e, 0xb9); /* mov ecx, 0 */
    emit_u32(e, 0);
    for (unsigned at = 0, n; at < bytes; at += n) {
        n = bytes - at >= 8 ? 8 : bytes - at >= 4 ? 4 : bytes - at >= 2 ? 2 : 1;
        emit_crc(e, scratch, (int32_t)at, n);
        crc = crc_step(crc, source + at, n);
    }
    emit_byte(e, 0x8d); /* lea ecx, [rcx - crc] */
    emit_byte(e, 0x89);
    emit_u32(e, 0u - crc);
    emit_byte(e, 0xe3); /* jrcxz ok */
    *ok = e->at;
    emit_byte(e, 0);
    emit_gs_load(e, RCX, T_SCRATCH);
}

void emit_check_end(struct emitter *e, uint8_t *ok)
{
    *ok = (uint8_t)(e->at - ok - 1);
    emit_gs_load(e, RCX, T_SCRATCH);
}
