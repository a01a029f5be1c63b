/* SPDX-License-Identifier: Apache-2.0 */
/* See source.h. */
#include "agent/code/code.h"
#include "agent/sys/sys.h"
#include "agent/translator/x86_64/cache.h"
#include "agent/translator/x86_64/source.h"

void source_begin(struct source *s, uint64_t pc)
{
    s->pc = pc;
    s->have = s->taken = 0;
    s->fixed_end = region_fixed_end(pc);
    s->may_change = s->stores = 0;
}

/* Reads the bytes of one more instruction, as far as they are executable; page by page, since each has its
 * own protection. 0: no room. */
static int read_ahead(struct source *s)
{
    while (s->have - s->taken < ZYDIS_MAX_INSTRUCTION_LENGTH) {
        unsigned want = 64;
        if (s->have + want > sizeof s->bytes)
            return 0;
        uint64_t from = s->pc + s->have;
        if (!region_is_known(from))
            break;
        unsigned to_page = (unsigned)(4096 - (from & 4095));
        if (want > to_page)
            want = to_page;
        unsigned missing = (unsigned)safe_copy(s->bytes + s->have, (const void *)from, want);
        s->have += want - missing;
        if (missing)
            break;
    }
    return 1;
}

static void decode_next(const struct source *s, struct insn *d)
{
    unsigned left = s->have - s->taken;
    insn_decode(d, s->bytes + s->taken,
                left < ZYDIS_MAX_INSTRUCTION_LENGTH ? left : ZYDIS_MAX_INSTRUCTION_LENGTH, s->pc + s->taken);
}

int source_decode(struct source *s, struct insn *d)
{
    if (!read_ahead(s))
        return 0;
    decode_next(s, d);
    /* It extends beyond the known code. Only now it is worth finding out what follows. */
    if (d->in.length == 0 && s->have - s->taken < ZYDIS_MAX_INSTRUCTION_LENGTH &&
        region_may_translate(s->pc + s->have)) {
        if (!read_ahead(s))
            return 0;
        decode_next(s, d);
    }
    /* Earlier stores of the block may change this instruction, after the block has checked its source. */
    if (!s->may_change && d->pc + d->in.length > s->fixed_end && region_may_change(d->pc, d->in.length)) {
        if (s->stores)
            return 0;
        s->may_change = 1;
    }
    return 1;
}

int source_take(struct source *s, const struct insn *d)
{
    s->taken += d->in.length;
    s->stores |= insn_stores(d);
    return s->may_change && s->stores;
}

void source_find_sequence(const struct insn *d, uint64_t pc, uint64_t *stop)
{
    uint64_t address = 0;
    if (d->in.mnemonic == ZYDIS_MNEMONIC_LEA && d->rip_operand >= 0)
        address = d->pc + d->in.length + (uint64_t)d->op[d->rip_operand].mem.disp.value;
    else if (d->in.mnemonic == ZYDIS_MNEMONIC_MOV && d->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        address = d->op[1].imm.value.u;
    if (!address || !rseq_hint(d->pc, address))
        return;
    regions_mark_stale(); /* its beginning may have been translated */
    *stop = rseq_next(pc);
}

int source_out_of_reach(const struct insn *d, const uint8_t *place)
{
    if (d->rip_operand < 0 || (d->class != INSN_PLAIN && d->class != INSN_REP) ||
        (d->in.mnemonic == ZYDIS_MNEMONIC_LEA && d->in.operand_width == 64 && d->in.address_width == 64))
        return 0;
    int64_t relative = (int64_t)(d->pc + (uint64_t)d->op[d->rip_operand].mem.disp.value - (uint64_t)place);
    return relative < INT32_MIN + BLOCK_CODE_MAX || relative > INT32_MAX - BLOCK_CODE_MAX;
}

void source_load_target(struct emitter *e, const struct insn *d, int to)
{
    const ZydisDecodedOperand *o = &d->op[0];
    if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        emit_move(e, to, insn_register(o->reg.value));
        return;
    }
    int64_t disp = o->mem.disp.has_displacement ? o->mem.disp.value : 0;
    if (o->mem.base == ZYDIS_REGISTER_RIP) {
        emit_move_imm(e, to, d->pc + d->in.length + (uint64_t)disp);
        emit_load(e, to, to, 0);
        return;
    }
    if (o->mem.segment == ZYDIS_REGISTER_FS)
        emit_byte(e, 0x64);
    emit_address(e, 0x8b, to, insn_register(o->mem.base), insn_register(o->mem.index), o->mem.scale,
                 (int32_t)disp, d->in.address_width == 32);
}

/* Clears the bit that extends the base register to r8-r15. With [rip + disp32] it may have either value. */
static void clear_base_extension(const struct insn *d, uint8_t *copy)
{
    switch (d->in.encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_LEGACY:
        if (d->in.attributes & ZYDIS_ATTRIB_HAS_REX)
            copy[d->in.raw.rex.offset] &= 0xfe;
        break;
    case ZYDIS_INSTRUCTION_ENCODING_VEX: /* in this and the following encodings the bit is inverted */
        if (d->in.raw.vex.size == 3)
            copy[d->in.raw.vex.offset + 1] |= 0x20;
        break;
    case ZYDIS_INSTRUCTION_ENCODING_EVEX:
        copy[d->in.raw.evex.offset + 1] |= 0x20;
        break;
    case ZYDIS_INSTRUCTION_ENCODING_XOP:
        copy[d->in.raw.xop.offset + 1] |= 0x20;
        break;
    default:
        break;
    }
}

int source_copy(struct emitter *e, const struct insn *d, int scratch)
{
    uint8_t *start = e->at;
    if (d->rip_operand < 0) {
        emit_bytes(e, d->bytes, d->in.length);
        return 0;
    }
    uint64_t address = d->pc + d->in.length + (uint64_t)d->op[d->rip_operand].mem.disp.value;
    if (d->in.mnemonic == ZYDIS_MNEMONIC_LEA && d->in.operand_width == 64 && d->in.address_width == 64) {
        emit_move_imm(e, insn_register(d->op[0].reg.value), address);
        return 0;
    }
    int64_t relative = (int64_t)(address - (uint64_t)(start + d->in.length));
    if (relative == (int32_t)relative) {
        emit_bytes(e, d->bytes, d->in.length);
        int32_t r32 = (int32_t)relative;
        __builtin_memcpy(start + d->in.raw.disp.offset, &r32, 4);
        return 0;
    }
    /* Out of reach: [rip + disp32] becomes [scratch + 0]; the length is the same, since scratch is a low
     * register. */
    emit_move_imm(e, scratch, address);
    start = e->at;
    emit_bytes(e, d->bytes, d->in.length);
    start[d->in.raw.modrm.offset] = (uint8_t)((start[d->in.raw.modrm.offset] & 0x38) | 0x80 | scratch);
    clear_base_extension(d, start);
    __builtin_memset(start + d->in.raw.disp.offset, 0, 4);
    static struct insn check;
    insn_decode(&check, start, d->in.length, (uint64_t)start);
    if (check.in.length != d->in.length || check.in.mnemonic != d->in.mnemonic ||
        insn_register(check.op[d->rip_operand].mem.base) != scratch)
        return -1;
    return 0;
}
