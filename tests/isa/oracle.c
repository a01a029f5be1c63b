/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"
#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

struct state {
    const ucontext_t *uc;
    const uint8_t *xsave;
    uint64_t pc;
    ZydisDecodedInstruction in;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static struct oracle_layout layout;
static uint64_t code_base;
static ZydisDecoder decoder;

void oracle_init(const struct oracle_layout *where, uint64_t base)
{
    layout = *where;
    code_base = base;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

static uint64_t general(const struct state *s, ZydisRegister r)
{
    static const int where[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    if (r == ZYDIS_REGISTER_NONE)
        return 0;
    if (r == ZYDIS_REGISTER_RIP || r == ZYDIS_REGISTER_EIP)
        return s->pc + s->in.length;
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
    uint64_t v = (uint64_t)s->uc->uc_mcontext.gregs[where[whole - ZYDIS_REGISTER_RAX]];
    switch (ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, r)) {
    case 8:
        return r >= ZYDIS_REGISTER_AH && r <= ZYDIS_REGISTER_BH ? v >> 8 & 0xff : v & 0xff;
    case 16:
        return v & 0xffff;
    case 32:
        return v & 0xffffffff;
    default:
        return v;
    }
}

static int in_use(const struct state *s, unsigned component)
{
    uint64_t bits;
    memcpy(&bits, s->xsave + 512, 8);
    return (bits >> component & 1) != 0;
}

/* Byte `at` of vector register n. */
static uint8_t vector_byte(const struct state *s, unsigned n, unsigned at)
{
    if (n >= 16)
        return in_use(s, 7) ? s->xsave[layout.component[7] + 64 * (n - 16) + at] : 0;
    if (at < 16)
        return in_use(s, 1) ? s->xsave[160 + 16 * n + at] : 0;
    if (at < 32)
        return in_use(s, 2) ? s->xsave[layout.component[2] + 16 * n + at - 16] : 0;
    return in_use(s, 6) ? s->xsave[layout.component[6] + 32 * n + at - 32] : 0;
}

static uint64_t vector_element(const struct state *s, ZydisRegister r, unsigned bytes, unsigned i)
{
    uint64_t v = 0;
    for (unsigned k = 0; k < bytes; k++)
        v |= (uint64_t)vector_byte(s, (unsigned)ZydisRegisterGetId(r), bytes * i + k) << 8 * k;
    return v;
}

static uint64_t mask_register(const struct state *s, ZydisRegister k)
{
    uint64_t v = 0;
    if (in_use(s, 5))
        memcpy(&v, s->xsave + layout.component[5] + 8 * (k - ZYDIS_REGISTER_K0), 8);
    return v;
}

/* Sign bits of a vector of n elements. */
static uint64_t signs(const struct state *s, ZydisRegister r, unsigned bytes, unsigned n)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < n; i++)
        mask |= (vector_element(s, r, bytes, i) >> (8 * bytes - 1) & 1) << i;
    return mask;
}

static uint64_t address(const struct state *s, const ZydisDecodedOperand *o)
{
    uint64_t a = general(s, o->mem.base) + (o->mem.disp.has_displacement ? (uint64_t)o->mem.disp.value : 0);
    if (o->mem.type != ZYDIS_MEMOP_TYPE_VSIB)
        a += general(s, o->mem.index) * (o->mem.scale ? o->mem.scale : 1u);
    return s->in.address_width == 32 ? a & 0xffffffff : a;
}

static struct isa_ref reference(const struct state *s, const ZydisDecodedOperand *o)
{
    return (struct isa_ref){.address = address(s, o),
                            .mask = ~0ull,
                            .pc = (uint32_t)(s->pc - code_base),
                            .size = (uint16_t)(o->size / 8),
                            .fs = o->mem.segment == ZYDIS_REGISTER_FS};
}

/* A mask of n elements; one that names all of them makes an ordinary reference. */
static uint64_t narrowed(uint64_t mask, unsigned n)
{
    uint64_t all = n >= 64 ? ~0ull : (1ull << n) - 1;
    return (mask & all) == all ? ~0ull : mask & all;
}

/* vpgatherdq: indices of d, data of q. */
static unsigned gather(const struct state *s, const ZydisDecodedOperand *o, unsigned rw, struct isa_ref *refs)
{
    const char *name = ZydisMnemonicGetString(s->in.mnemonic);
    const char *end = strstr(name, "gather") ? strstr(name, "gather") + 6 : strstr(name, "scatter") + 7;
    unsigned index_bytes = end[0] == 'q' ? 8 : 4, data_bytes = end[strlen(end) - 1] == 'd' && end[1] == 'p'
                                                                   ? 8
                                                               : end[1] == 'q' ? 8
                                                                               : 4;
    /* Which of the other operands is the data: the first register that is a vector. */
    unsigned data_bits = 0, n = 0;
    for (unsigned i = 0; i < s->in.operand_count_visible && !data_bits; i++)
        if (s->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            ZydisRegisterGetClass(s->op[i].reg.value) >= ZYDIS_REGCLASS_XMM &&
            ZydisRegisterGetClass(s->op[i].reg.value) <= ZYDIS_REGCLASS_ZMM)
            data_bits = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, s->op[i].reg.value);
    unsigned indices = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, o->mem.index) / 8u / index_bytes;
    unsigned elements = data_bits / 8 / data_bytes;
    if (indices < elements)
        elements = indices;
    uint64_t mask = s->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX
                        ? mask_register(s, s->in.avx.mask.reg)
                        : signs(s, s->op[2].reg.value, data_bytes, elements);
    for (unsigned i = 0; i < elements; i++) {
        if (!(mask >> i & 1))
            continue;
        struct isa_ref r = reference(s, o);
        uint64_t index = vector_element(s, o->mem.index, index_bytes, i);
        if (index_bytes == 4)
            index = (uint64_t)(int64_t)(int32_t)(uint32_t)index;
        r.address += index * o->mem.scale;
        if (s->in.address_width == 32)
            r.address &= 0xffffffff;
        r.size = (uint16_t)data_bytes;
        r.rw = (uint8_t)rw;
        refs[n++] = r;
    }
    return n;
}

static int named(const struct state *s, const char *prefix)
{
    const char *name = ZydisMnemonicGetString(s->in.mnemonic);
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Nothing is read by hints, and address computations have no operand at all. */
static int is_hint(const struct state *s)
{
    return named(s, "prefetch") || named(s, "nop") || named(s, "clflush") || named(s, "clwb") ||
           named(s, "cldemote");
}

/* Elements that the mask leaves out are not touched. */
static int masked(const struct state *s, const ZydisDecodedOperand *o, struct isa_ref *r)
{
    unsigned bytes = o->element_size / 8, n;
    uint64_t mask;
    if (named(s, "vmaskmovp") || named(s, "vpmaskmov")) {
        bytes = named(s, "vmaskmovpd") || named(s, "vpmaskmovq") ? 8 : 4;
        n = r->size / bytes;
        mask = signs(s, s->op[1].reg.value, bytes, n);
    } else if (named(s, "maskmovdqu") || named(s, "vmaskmovdqu")) {
        n = 16;
        r->size = 16;
        const ZydisDecodedOperand *with = &s->op[s->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY ? 2 : 1];
        mask = signs(s, with->reg.value, 1, n);
    } else if (s->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX && s->in.avx.mask.reg > ZYDIS_REGISTER_K0 &&
               s->in.avx.mask.reg <= ZYDIS_REGISTER_K7 && !s->in.avx.broadcast.mode &&
               s->in.meta.category != ZYDIS_CATEGORY_BROADCAST && bytes) {
        n = r->size / bytes;
        mask = mask_register(s, s->in.avx.mask.reg);
    } else {
        return 1;
    }
    r->mask = narrowed(mask, n);
    if (s->in.meta.category == ZYDIS_CATEGORY_COMPRESS || s->in.meta.category == ZYDIS_CATEGORY_EXPAND ||
        named(s, "vpcompress") || named(s, "vpexpand")) { /* contiguous, as many as the mask has ones */
        uint64_t all = n >= 64 ? ~0ull : (1ull << n) - 1;
        r->size = (uint16_t)((unsigned)__builtin_popcountll(mask & all) * bytes);
        r->mask = r->size ? ~0ull : 0;
    }
    return r->mask != 0;
}

/* The bit number of bt and its like moves the address by whole operands, either way. */
static void move_by_bits(const struct state *s, struct isa_ref *r)
{
    if (!named(s, "bt") || s->op[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
        return;
    unsigned bits = s->op[1].size;
    int64_t number = (int64_t)(general(s, s->op[1].reg.value) << (64 - bits)) >> (64 - bits);
    int64_t operands = number >= 0 ? number / bits : -((-(number + 1)) / bits) - 1;
    r->address += (uint64_t)(operands * (int64_t)(bits / 8));
    if (s->in.address_width == 32)
        r->address &= 0xffffffff;
}

static unsigned operand(const struct state *s, const ZydisDecodedOperand *o, unsigned rw,
                        struct isa_ref *refs)
{
    if (o->mem.type == ZYDIS_MEMOP_TYPE_VSIB)
        return gather(s, o, rw, refs);
    struct isa_ref r = reference(s, o);
    int stack = o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o->mem.base == ZYDIS_REGISTER_RSP;
    if (stack && rw == ISA_STORE)
        r.address -= r.size;
    if (s->in.mnemonic == ZYDIS_MNEMONIC_LEAVE)
        r.address = general(s, ZYDIS_REGISTER_RBP);
    if (s->in.mnemonic == ZYDIS_MNEMONIC_POP && !stack &&
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, o->mem.base) == ZYDIS_REGISTER_RSP) {
        r.address += s->in.operand_width / 8u;
        if (s->in.address_width == 32)
            r.address &= 0xffffffff;
    }
    if (s->in.mnemonic == ZYDIS_MNEMONIC_XLAT) {
        r.address = general(s, o->mem.base) + general(s, ZYDIS_REGISTER_AL);
        if (s->in.address_width == 32)
            r.address &= 0xffffffff;
    }
    move_by_bits(s, &r);
    r.rw = (uint8_t)rw;
    if (!masked(s, o, &r))
        return 0;
    refs[0] = r;
    return 1;
}

static int comes_later(const ZydisDecodedOperand *o)
{
    return (o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o->mem.base == ZYDIS_REGISTER_RSP) ||
           ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, o->mem.base) == ZYDIS_REGISTER_RDI;
}

static int decode(const ucontext_t *uc, struct state *s)
{
    *s = (struct state){.uc = uc, .xsave = (const uint8_t *)uc->uc_mcontext.fpregs};
    s->pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
    return ZYAN_SUCCESS(
        ZydisDecoderDecodeFull(&decoder, (const void *)s->pc, ZYDIS_MAX_INSTRUCTION_LENGTH, &s->in, s->op));
}

int oracle_is_gather(const ucontext_t *uc)
{
    struct state s;
    if (!decode(uc, &s))
        return 0;
    for (unsigned i = 0; i < s.in.operand_count; i++)
        if (s.op[i].type == ZYDIS_OPERAND_TYPE_MEMORY && s.op[i].mem.type == ZYDIS_MEMOP_TYPE_VSIB)
            return 1;
    return 0;
}

unsigned oracle_references(const ucontext_t *uc, struct isa_ref *refs)
{
    struct state s;
    if (!decode(uc, &s))
        return 0;
    if (is_hint(&s))
        return 0;
    if (s.in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE) &&
        general(&s, s.in.address_width == 32 ? ZYDIS_REGISTER_ECX : ZYDIS_REGISTER_RCX) == 0)
        return 0;
    unsigned n = 0;
    for (unsigned rw = ISA_LOAD; rw <= ISA_STORE; rw++)
        for (int later = 0; later <= 1; later++)
            for (unsigned i = 0; i < s.in.operand_count; i++) {
                const ZydisDecodedOperand *o = &s.op[i];
                unsigned mask =
                    rw == ISA_LOAD ? ZYDIS_OPERAND_ACTION_MASK_READ : ZYDIS_OPERAND_ACTION_MASK_WRITE;
                if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN ||
                    !(o->actions & mask) || comes_later(o) != later)
                    continue;
                n += operand(&s, o, rw, refs + n);
            }
    return n;
}
