/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sys/session.h"
#include "agent/translator/x86_64/template.h"

static int kmov_wide;

void template_cpu(int has_avx512bw)
{
    kmov_wide = has_avx512bw;
}

void template_init(struct template *t, struct emitter *e, int scratch, int cursor)
{
    t->e = e;
    t->scratch = scratch;
    t->cursor = cursor;
    t->slots = 1;
    t->nrefs = t->nknown = t->loads = t->stores = t->special = 0;
}

static int is_vector(ZydisRegister r, int *number, int *bits)
{
    if (r >= ZYDIS_REGISTER_XMM0 && r <= ZYDIS_REGISTER_XMM31)
        *number = (int)(r - ZYDIS_REGISTER_XMM0), *bits = 128;
    else if (r >= ZYDIS_REGISTER_YMM0 && r <= ZYDIS_REGISTER_YMM31)
        *number = (int)(r - ZYDIS_REGISTER_YMM0), *bits = 256;
    else if (r >= ZYDIS_REGISTER_ZMM0 && r <= ZYDIS_REGISTER_ZMM31)
        *number = (int)(r - ZYDIS_REGISTER_ZMM0), *bits = 512;
    else
        return 0;
    return 1;
}

/* The opmask register of an instruction with EVEX encoding; 0: none. */
static int opmask(const struct insn *d)
{
    if (d->in.encoding != ZYDIS_INSTRUCTION_ENCODING_EVEX)
        return 0;
    ZydisRegister r = d->in.avx.mask.reg;
    return r > ZYDIS_REGISTER_K0 && r <= ZYDIS_REGISTER_K7 ? (int)(r - ZYDIS_REGISTER_K0) : 0;
}

static int is_packed(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_VCOMPRESSPS:
    case ZYDIS_MNEMONIC_VCOMPRESSPD:
    case ZYDIS_MNEMONIC_VPCOMPRESSB:
    case ZYDIS_MNEMONIC_VPCOMPRESSW:
    case ZYDIS_MNEMONIC_VPCOMPRESSD:
    case ZYDIS_MNEMONIC_VPCOMPRESSQ:
    case ZYDIS_MNEMONIC_VEXPANDPS:
    case ZYDIS_MNEMONIC_VEXPANDPD:
    case ZYDIS_MNEMONIC_VPEXPANDB:
    case ZYDIS_MNEMONIC_VPEXPANDW:
    case ZYDIS_MNEMONIC_VPEXPANDD:
    case ZYDIS_MNEMONIC_VPEXPANDQ:
        return 1;
    default:
        return 0;
    }
}

/* Bytes of one index of a gather or scatter. */
static unsigned index_bytes(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_VGATHERQPS:
    case ZYDIS_MNEMONIC_VGATHERQPD:
    case ZYDIS_MNEMONIC_VPGATHERQD:
    case ZYDIS_MNEMONIC_VPGATHERQQ:
    case ZYDIS_MNEMONIC_VSCATTERQPS:
    case ZYDIS_MNEMONIC_VSCATTERQPD:
    case ZYDIS_MNEMONIC_VPSCATTERQD:
    case ZYDIS_MNEMONIC_VPSCATTERQQ:
        return 8;
    default:
        return 4;
    }
}

/* Bytes of one element of a gather or scatter: single precision and D forms have 4. */
static unsigned gather_bytes(ZydisMnemonic m)
{
    switch (m) {
    case ZYDIS_MNEMONIC_VGATHERDPD:
    case ZYDIS_MNEMONIC_VGATHERQPD:
    case ZYDIS_MNEMONIC_VPGATHERDQ:
    case ZYDIS_MNEMONIC_VPGATHERQQ:
    case ZYDIS_MNEMONIC_VSCATTERDPD:
    case ZYDIS_MNEMONIC_VSCATTERQPD:
    case ZYDIS_MNEMONIC_VPSCATTERDQ:
    case ZYDIS_MNEMONIC_VPSCATTERQQ:
        return 8;
    default:
        return 4;
    }
}

static void add_ref(struct template *t, const struct wire_ref *r)
{
    t->refs[t->nrefs++] = *r;
    if (r->kind == WIRE_REF_PLAIN) {
        t->loads += (r->rw & WIRE_LOAD) != 0;
        t->stores += (r->rw & WIRE_STORE) != 0;
    } else {
        t->special = 1;
    }
}

/* Stores a register as the next word and returns its slot. */
static uint8_t put_word(struct template *t, int reg)
{
    emit_store(t->e, t->cursor, 8 * t->slots, reg);
    return (uint8_t)t->slots++;
}

/* Returns the word that has base + index * scale, recording it if there is none; *disp is adjusted. */
static uint8_t address_word(struct template *t, int base, int index, int scale, int64_t *disp)
{
    if (index < 0)
        scale = 0;
    for (unsigned i = 0; i < t->nknown; i++) {
        const struct recorded_address *k = &t->known[i];
        if (k->base == base && k->index == index && k->scale == scale) {
            *disp += k->adjust;
            return (uint8_t)k->slot;
        }
    }
    int slot;
    if (index < 0) {
        slot = put_word(t, base);
    } else {
        emit_address(t->e, 0x8d, t->scratch, base, index, scale, 0, 0);
        slot = put_word(t, t->scratch);
    }
    t->known[t->nknown++] = (struct recorded_address){base, index, scale, slot, 0};
    return (uint8_t)slot;
}

/* Records an opmask register; returns its word. */
static uint8_t opmask_word(struct template *t, int k)
{
    emit_kmov(t->e, t->scratch, k, kmov_wide);
    return put_word(t, t->scratch);
}

static void record_gather(struct template *t, const struct insn *d, const ZydisDecodedOperand *o,
                          struct wire_ref *r)
{
    int vector = 0, bits = 0, mask = opmask(d);
    is_vector(o->mem.index, &vector, &bits);
    r->kind = WIRE_REF_GATHER;
    r->elem_bytes = (uint8_t)gather_bytes(d->in.mnemonic);
    r->index_bytes = (uint8_t)index_bytes(d->in.mnemonic);
    r->scale = o->mem.scale;
    r->disp = o->mem.disp.has_displacement ? o->mem.disp.value : 0;
    int base = insn_register(o->mem.base);
    r->slot = base < 0 ? 0 : address_word(t, base, NO_REG, 0, &r->disp);
    unsigned elements = (unsigned)bits / 8u / r->index_bytes;
    if (mask) {
        r->slot2 = opmask_word(t, mask);
    } else {
        int mask_vector = 0, mask_bits = 0;
        is_vector(d->op[2].reg.value, &mask_vector, &mask_bits);
        emit_movmsk(t->e, t->scratch, mask_vector, mask_bits, r->elem_bytes == 8);
        r->slot2 = put_word(t, t->scratch);
        if ((unsigned)mask_bits / 8u / r->elem_bytes < elements)
            elements = (unsigned)mask_bits / 8u / r->elem_bytes;
    }
    r->slot3 = (uint8_t)t->slots;
    if (mask)
        emit_evex_store(t->e, t->cursor, 8 * t->slots, vector, bits);
    else
        emit_vex_store(t->e, t->cursor, 8 * t->slots, vector, bits);
    t->slots += bits / 64;
    /* The mask may have more bits set than there are elements: a D form of 2 doubles has 4 indices in its
     * register. */
    unsigned data = d->in.avx.vector_length / 8u / r->elem_bytes;
    r->size = (uint16_t)((elements < data ? elements : data) * r->elem_bytes);
}

/* bt and similar instructions with the bit number in a register: it moves the address, in either direction,
 * by whole operands. Computed without flags: movsx, sarx (with the count in a borrowed rcx), lea. */
static int is_bit_string(const struct insn *d)
{
    ZydisMnemonic m = d->in.mnemonic;
    return (m == ZYDIS_MNEMONIC_BT || m == ZYDIS_MNEMONIC_BTS || m == ZYDIS_MNEMONIC_BTR ||
            m == ZYDIS_MNEMONIC_BTC) &&
           d->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

static uint8_t bit_string_word(struct template *t, const struct insn *d, int base, int index, int scale)
{
    int bits = d->op[1].size, from = insn_register(d->op[1].reg.value), to = t->scratch;
    unsigned high = (unsigned)to >> 3, low = (unsigned)to & 7;
    if (bits == 64) {
        emit_move(t->e, to, from);
    } else {
        emit_byte(t->e, 0x48u | high << 2 | (unsigned)from >> 3);
        if (bits == 16)
            emit_byte(t->e, 0x0f);
        emit_byte(t->e, bits == 16 ? 0xbf : 0x63);
        emit_byte(t->e, 0xc0u | low << 3 | ((unsigned)from & 7));
    }
    emit_gs_store(t->e, T_SCRATCH, RCX);
    emit_move_imm(t->e, RCX, bits == 64 ? 6 : bits == 32 ? 5 : 4);
    emit_byte(t->e, 0xc4); /* sarx to, to, rcx */
    emit_byte(t->e, (high ? 0u : 0xa0u) | 0x42u);
    emit_byte(t->e, 0xf2);
    emit_byte(t->e, 0xf7);
    emit_byte(t->e, 0xc0u | low << 3 | low);
    emit_gs_load(t->e, RCX, T_SCRATCH);
    emit_address(t->e, 0x8d, to, base, to, bits / 8, 0, 0);
    if (index >= 0)
        emit_address(t->e, 0x8d, to, to, index, scale, 0, 0);
    return put_word(t, to);
}

static int is_masked_move(ZydisMnemonic m, int *double_width)
{
    *double_width = m == ZYDIS_MNEMONIC_VMASKMOVPD || m == ZYDIS_MNEMONIC_VPMASKMOVQ;
    return *double_width || m == ZYDIS_MNEMONIC_VMASKMOVPS || m == ZYDIS_MNEMONIC_VPMASKMOVD;
}

static int is_hint(const struct insn *d)
{
    switch (d->in.meta.category) {
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_CLDEMOTE:
        return 1;
    default:
        break;
    }
    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_CLFLUSHOPT:
    case ZYDIS_MNEMONIC_CLWB:
    case ZYDIS_MNEMONIC_PREFETCHW:
    case ZYDIS_MNEMONIC_PREFETCH:
        return 1;
    default:
        return 0;
    }
}

void template_emit_mask(struct emitter *e, const struct insn *d, int to)
{
    int vector = 0, bits = 0, double_width;
    if (opmask(d)) {
        emit_kmov(e, to, opmask(d), kmov_wide);
    } else if (is_masked_move(d->in.mnemonic, &double_width)) {
        is_vector(d->op[1].reg.value, &vector, &bits);
        emit_movmsk(e, to, vector, bits, double_width);
    } else {
        for (unsigned i = 0; i < d->in.operand_count; i++)
            if (d->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                d->op[i].encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM)
                is_vector(d->op[i].reg.value, &vector, &bits);
        emit_pmovmskb(e, to, vector);
    }
}

static void record_operand(struct template *t, const struct insn *d, const ZydisDecodedOperand *o,
                           struct wire_ref *r)
{
    int base = insn_register(o->mem.base), index = insn_register(o->mem.index), double_width;
    int mask = opmask(d);
    r->size = (uint16_t)(o->size / 8);
    r->disp = o->mem.disp.has_displacement ? o->mem.disp.value : 0;
    if (o->mem.segment == ZYDIS_REGISTER_FS)
        r->flags |= WIRE_FS;
    /* push, call: the address is the stack pointer after the push */
    if (o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && base == RSP &&
        (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
        r->disp -= r->size;
    if (d->in.mnemonic == ZYDIS_MNEMONIC_LEAVE)
        base = RBP;
    /* pop to memory: its address, too, uses the stack pointer after the pop */
    if (d->in.mnemonic == ZYDIS_MNEMONIC_POP && o->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
        base == RSP)
        r->disp += r->size;
    if (o->mem.base == ZYDIS_REGISTER_RIP)
        r->disp += (int64_t)(d->pc + d->in.length);
    if (is_bit_string(d)) {
        r->slot = bit_string_word(t, d, base, index, o->mem.scale);
    } else if (o->mem.base == ZYDIS_REGISTER_RIP) {
        r->slot = 0;
    } else if (d->in.mnemonic == ZYDIS_MNEMONIC_XLAT) {
        /* movzx scratch, al; lea scratch, [rbx + scratch] */
        emit_byte(t->e, t->scratch >> 3 ? 0x44 : 0x40);
        emit_byte(t->e, 0x0f);
        emit_byte(t->e, 0xb6);
        emit_byte(t->e, 0xc0u | (unsigned)(t->scratch & 7) << 3);
        emit_address(t->e, 0x8d, t->scratch, RBX, t->scratch, 1, 0, 0);
        r->slot = put_word(t, t->scratch);
    } else if (d->in.address_width == 32) {
        emit_address(t->e, 0x8d, t->scratch, base, index, o->mem.scale, (int32_t)r->disp, 1);
        r->disp = 0;
        r->slot = put_word(t, t->scratch);
    } else if (base >= 0 || index >= 0) {
        r->slot = address_word(t, base, index, o->mem.scale, &r->disp);
    }
    r->elem_bytes = (uint8_t)(o->element_size / 8);
    if (is_packed(d->in.mnemonic) && mask) {
        r->kind = WIRE_REF_PACKED;
    } else if (mask && r->elem_bytes && d->in.meta.category != ZYDIS_CATEGORY_BROADCAST &&
               !d->in.avx.broadcast.mode) {
        r->kind = WIRE_REF_MASKED;
    } else if (is_masked_move(d->in.mnemonic, &double_width)) {
        r->kind = WIRE_REF_MASKED;
        r->elem_bytes = double_width ? 8 : 4;
    } else if (d->in.mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU || d->in.mnemonic == ZYDIS_MNEMONIC_VMASKMOVDQU) {
        r->kind = WIRE_REF_MASKED;
        r->elem_bytes = 1;
        r->size = 16;
    } else {
        return;
    }
    template_emit_mask(t->e, d, t->scratch);
    r->slot2 = put_word(t, t->scratch);
}

static void record_rep(struct template *t, const struct insn *d, struct wire_ref *r)
{
    r->kind = WIRE_REF_REP;
    for (unsigned i = 0; i < d->in.operand_count; i++) {
        const ZydisDecodedOperand *o = &d->op[i];
        if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
            continue;
        r->size = (uint16_t)(o->size / 8);
        if (insn_register(o->mem.base) == RSI) {
            r->flags |= WIRE_REP_SRC;
            if (o->mem.segment == ZYDIS_REGISTER_FS)
                r->flags |= WIRE_FS;
        } else {
            r->flags |= WIRE_REP_DST;
            if (!(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
                r->flags |= WIRE_REP_DST_RD;
        }
    }
    r->elem_bytes = (uint8_t)r->size;
    r->slot = put_word(t, RCX);
    put_word(t, RSI);
    put_word(t, RDI);
    /* Two words are written after the instruction. If they lie beyond the end of the buffer, the fault must
     * come before it is executed: the last one is written now, too. */
    emit_store_imm(t->e, t->cursor, 8 * (t->slots + 1), 0);
    t->slots += 2;
    add_ref(t, r);
}

void template_record_return(struct template *t)
{
    put_word(t, RSP);
}

void template_record_after(struct template *t)
{
    const struct wire_ref *r = &t->refs[t->nrefs - 1];
    emit_store(t->e, t->cursor, 8 * (t->slots - 2), RCX);
    emit_store(t->e, t->cursor, 8 * (t->slots - 1), r->flags & WIRE_REP_DST ? RDI : RSI);
}

static int is_string_move(ZydisMnemonic m)
{
    return m == ZYDIS_MNEMONIC_MOVSB || m == ZYDIS_MNEMONIC_MOVSW || m == ZYDIS_MNEMONIC_MOVSD ||
           m == ZYDIS_MNEMONIC_MOVSQ;
}

void template_record(struct template *t, const struct insn *d, unsigned index, uint32_t pc_offset)
{
    struct wire_ref r = {.insn = (uint8_t)index, .pc_offset = pc_offset};
    if (d->class == INSN_REP) {
        record_rep(t, d, &r);
        return;
    }
    if (is_hint(d))
        return;
    /* pop [mem] and movs list the written operand first */
    int backwards = d->in.mnemonic == ZYDIS_MNEMONIC_POP || is_string_move(d->in.mnemonic);
    for (unsigned n = 0; n < d->in.operand_count; n++) {
        const ZydisDecodedOperand *o = &d->op[backwards ? d->in.operand_count - 1u - n : n];
        if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN || !o->actions)
            continue;
        r = (struct wire_ref){.insn = (uint8_t)index, .pc_offset = pc_offset};
        r.rw = (uint8_t)((o->actions & ZYDIS_OPERAND_ACTION_MASK_READ ? WIRE_LOAD : 0) |
                         (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? WIRE_STORE : 0));
        if (o->mem.type == ZYDIS_MEMOP_TYPE_VSIB)
            record_gather(t, d, o, &r);
        else
            record_operand(t, d, o, &r);
        add_ref(t, &r);
    }
}

static int pops_into(const struct insn *d, int reg)
{
    return d->in.mnemonic == ZYDIS_MNEMONIC_POP && d->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           insn_register(d->op[0].reg.value) == reg;
}

/* The register that an instruction changes by a constant, and that constant; else -1. */
static int moved_register(const struct insn *d, int64_t *by)
{
    ZydisMnemonic m = d->in.mnemonic;
    if (d->in.operand_width != 64)
        return NO_REG;
    if (m == ZYDIS_MNEMONIC_PUSH || m == ZYDIS_MNEMONIC_PUSHFQ) {
        *by = -8;
        return RSP;
    }
    if (m == ZYDIS_MNEMONIC_POP || m == ZYDIS_MNEMONIC_POPFQ) {
        *by = 8;
        return pops_into(d, RSP) ? NO_REG : RSP;
    }
    if ((m == ZYDIS_MNEMONIC_ADD || m == ZYDIS_MNEMONIC_SUB) &&
        d->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && d->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        *by = m == ZYDIS_MNEMONIC_ADD ? d->op[1].imm.value.s : -d->op[1].imm.value.s;
        return insn_register(d->op[0].reg.value);
    }
    return NO_REG;
}

void template_follow(struct template *t, const struct insn *d)
{
    int64_t by = 0;
    int moved = moved_register(d, &by);
    unsigned changed = d->writes;
    if (moved >= 0 && !pops_into(d, moved))
        changed &= ~(1u << moved);
    for (unsigned i = 0; i < t->nknown;) {
        struct recorded_address *k = &t->known[i];
        if ((k->base >= 0 && changed >> k->base & 1) || (k->index >= 0 && changed >> k->index & 1)) {
            *k = t->known[--t->nknown];
            continue;
        }
        if (k->base >= 0 && k->base == moved)
            k->adjust += by;
        if (k->index >= 0 && k->index == moved)
            k->adjust += by * k->scale;
        i++;
    }
}
