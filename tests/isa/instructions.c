/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instructions.c - one random instruction after the other.
 *
 * Random bytes: prefixes, an opcode map, and then anything; what decodes to a usable instruction whose
 * address is likely to lie in the arena is taken, with its displacement replaced. They reach the encodings
 * that no assembler emits: prefixes that do nothing, in any order, REX bits for nothing, longer forms than
 * needed.
 *
 * Forms: such instructions serve as patterns, one for each mnemonic, width, and kind of operands. Their
 * operands are replaced by chosen ones, and they are encoded anew.
 */
#include <stdlib.h>
#include <string.h>
#include "generate.h"
#include "usable.h"

#define MAX_FORMS 12000
#define FORM_TRIES 1500000

struct decoded {
    ZydisDecodedInstruction in;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

struct form {
    uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
    uint64_t key;
};

static ZydisDecoder decoder;
static struct form forms[MAX_FORMS];
static unsigned nforms, nmnemonics, first_form[MAX_FORMS + 1]; /* forms of a mnemonic lie together */

static int decode(struct decoded *d, const uint8_t *bytes, size_t n)
{
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, n, &d->in, d->op));
}

static int general(ZydisRegister r)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
    return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15 ? (int)(whole - ZYDIS_REGISTER_RAX)
                                                                      : -1;
}

static int vector(ZydisRegister r)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
    return whole >= ZYDIS_REGISTER_ZMM0 && whole <= ZYDIS_REGISTER_ZMM31 ? (int)(whole - ZYDIS_REGISTER_ZMM0)
                                                                         : -1;
}

/* Zydis tells string instructions by category; those of the SSE kind that compare strings are others. */
static int is_string(const struct decoded *d)
{
    return d->in.meta.category == ZYDIS_CATEGORY_STRINGOP;
}

static int repeats(const struct decoded *d)
{
    return is_string(d) &&
           d->in.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

static int is_bit_string(const struct decoded *d)
{
    ZydisMnemonic m = d->in.mnemonic;
    return (m == ZYDIS_MNEMONIC_BT || m == ZYDIS_MNEMONIC_BTS || m == ZYDIS_MNEMONIC_BTR ||
            m == ZYDIS_MNEMONIC_BTC) &&
           d->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY && d->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

/* Is the operand's address likely to lie in the arena, once its displacement is replaced? */
static int address_is_good(struct generator *g, const struct decoded *d, const ZydisDecodedOperand *o)
{
    if (o->mem.type == ZYDIS_MEMOP_TYPE_AGEN || d->in.meta.category == ZYDIS_CATEGORY_NOP ||
        d->in.meta.category == ZYDIS_CATEGORY_WIDENOP)
        return 1;
    if (d->in.address_width == 32 && g->base != ISA_BASE_LOW)
        return 0;
    int base = general(o->mem.base), index = general(o->mem.index), has_disp = d->in.raw.disp.size != 0;
    if (o->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
        int n = vector(o->mem.index);
        const char *name = ZydisMnemonicGetString(d->in.mnemonic), *tail = strstr(name, "gather");
        tail = tail ? tail + 6 : strstr(name, "scatter") + 7; /* the index's kind, then the data's */
        return base >= 0 && g->holds[base] == HOLDS_POINTER && n >= 0 && g->indices >> n & 1 &&
               ISA_INDEX_WIDE(n) == (*tail == 'q');
    }
    if (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP)
        return 1;
    enum holds b = base < 0 ? HOLDS_SMALL : g->holds[base], i = index < 0 ? HOLDS_SMALL : g->holds[index];
    if (d->in.mnemonic == ZYDIS_MNEMONIC_XLAT)
        i = HOLDS_SMALL;
    if (is_bit_string(d) && g->holds[general(d->op[1].reg.value)] != HOLDS_SMALL)
        return 0;
    if (o->mem.segment == ZYDIS_REGISTER_FS)
        return b == HOLDS_SMALL && i == HOLDS_SMALL && has_disp && d->in.raw.disp.size >= 32;
    if (base < 0 && index < 0) /* absolute */
        return d->in.raw.disp.size == 64 || g->base == ISA_BASE_LOW;
    return (b == HOLDS_POINTER && i == HOLDS_SMALL) ||
           (b == HOLDS_SMALL && i == HOLDS_POINTER && (o->mem.scale == 1) && has_disp);
}

/* Faults on an address that is not a multiple of the operand's size. */
static int needs_alignment(const struct decoded *d, const ZydisDecodedOperand *o)
{
    const char *name = ZydisMnemonicGetString(d->in.mnemonic);
    return o->size >= 128 && d->in.meta.category != ZYDIS_CATEGORY_WIDENOP &&
           ((d->in.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && !strstr(name, "movu") &&
             !strstr(name, "lddqu")) ||
            strstr(name, "movap") || strstr(name, "movdqa") || strstr(name, "movnt"));
}

static int operands_are_good(struct generator *g, const struct decoded *d)
{
    if (repeats(d) && g->holds[RCX] != HOLDS_SMALL)
        return 0;
    int divides = d->in.mnemonic == ZYDIS_MNEMONIC_DIV || d->in.mnemonic == ZYDIS_MNEMONIC_IDIV;
    if (divides && !chance(g, g->holds[RDX] == HOLDS_SMALL ? 40 : 5))
        return 0;
    for (unsigned i = 0; i < d->in.operand_count; i++) {
        const ZydisDecodedOperand *o = &d->op[i];
        /* Sometimes any address, but not where it may be libc's or the agent's, which differ from run to run.
         */
        int far = g->base == ISA_BASE_LOW && o->mem.segment != ZYDIS_REGISTER_FS;
        if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && !address_is_good(g, d, o) && (!far || !chance(g, 1)))
            return 0;
        if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && needs_alignment(d, o) && chance(g, 90) &&
            (o->mem.index != ZYDIS_REGISTER_NONE || general(o->mem.base) == RSP ||
             o->mem.segment == ZYDIS_REGISTER_FS))
            return 0;
        int r = o->type == ZYDIS_OPERAND_TYPE_REGISTER ? general(o->reg.value) : -1;
        if (r >= 0 && o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && g->keep >> r & 1)
            return 0;
    }
    if (is_string(d) && g->keep & (1u << RSI | 1u << RDI | (repeats(d) ? 1u << RCX : 0)))
        return 0;
    return 1;
}

static enum holds moved(struct generator *g, const struct decoded *d, int r, const ZydisDecodedOperand *o)
{
    const ZydisDecodedOperand *from = &d->op[1];
    enum holds now = g->holds[r];
    if (is_string(d))
        return now;
    if (o->size == 8)
        return now == HOLDS_POINTER ? now : HOLDS_ANY;
    if (o->size != 64)
        return HOLDS_ANY;
    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
        if (from->type == ZYDIS_OPERAND_TYPE_REGISTER && from->size == 64 && general(from->reg.value) >= 0)
            return g->holds[general(from->reg.value)];
        return HOLDS_ANY;
    case ZYDIS_MNEMONIC_LEA: {
        int base = general(from->mem.base);
        int small = from->mem.disp.value >= -512 && from->mem.disp.value <= 512;
        return base >= 0 && from->mem.index == ZYDIS_REGISTER_NONE && small && d->in.address_width == 64
                   ? g->holds[base] == HOLDS_POINTER ? HOLDS_POINTER : HOLDS_ANY
                   : HOLDS_ANY;
    }
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
        if (now == HOLDS_POINTER && (d->in.raw.imm[0].size == 8 || d->in.operand_count_visible == 1))
            return now;
        return HOLDS_ANY;
    default:
        return HOLDS_ANY;
    }
}

/* What registers hold after it. */
static void follow(struct generator *g, const struct decoded *d)
{
    for (unsigned i = 0; i < d->in.operand_count; i++) {
        const ZydisDecodedOperand *o = &d->op[i];
        if (o->type != ZYDIS_OPERAND_TYPE_REGISTER || !(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
            continue;
        int r = general(o->reg.value), v = vector(o->reg.value);
        if (v >= 0)
            g->indices &= ~(1u << v);
        if (r >= 0 && r != RSP)
            g->holds[r] = moved(g, d, r, o);
    }
    if (d->in.mnemonic == ZYDIS_MNEMONIC_VZEROALL)
        g->indices &= ~0xffffu;
}

void put(struct generator *g, const void *bytes, size_t n)
{
    struct decoded d;
    memcpy(g->code + g->at, bytes, n);
    for (size_t done = 0; done < n; done += d.in.length) {
        if (!decode(&d, g->code + g->at + done, n - done))
            abort(); /* the generator's own mistake */
        follow(g, &d);
    }
    g->at += n;
}

int register_with(struct generator *g, enum holds what)
{
    unsigned start = pick(g, 16);
    for (unsigned i = 0; i < 16; i++) {
        unsigned r = (start + i) % 16;
        if (g->holds[r] == what && (r != RSP || chance(g, 50)))
            return (int)r;
    }
    return -1;
}

/* Puts a displacement that leads into the arena. */
static void place(struct generator *g, const struct decoded *d, uint8_t *bytes)
{
    const ZydisDecodedOperand *o = NULL;
    for (unsigned i = 0; i < d->in.operand_count && !o; i++)
        if (d->op[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            d->op[i].visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN)
            o = &d->op[i];
    unsigned size = d->in.raw.disp.size, align = chance(g, 60) ? 64 : chance(g, 50) ? 16 : 1;
    /* Sometimes a wild address; but near the agent's own memory that would be there in one run and not in the
     * other. */
    int may_be_far = size > 8 && g->base == ISA_BASE_LOW && o && o->mem.segment != ZYDIS_REGISTER_FS;
    if (!size || !o || (may_be_far && chance(g, 1)))
        return;
    if (needs_alignment(d, o) && chance(g, 97))
        align = 64;
    uint64_t target = arena(g) + ISA_DATA + 256 + pick(g, ISA_DATA_BYTES - 512) / align * align;
    int64_t disp = (int64_t)pick(g, 512) - 256;
    disp = disp / (int64_t)align * (int64_t)align;
    int registers = general(o->mem.base) >= 0 || general(o->mem.index) >= 0;
    if (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP)
        disp = (int64_t)(target - here(g) - d->in.length);
    else if (o->mem.segment == ZYDIS_REGISTER_FS)
        disp = -(int64_t)ISA_TLS_BYTES + 64 + (int64_t)pick(g, 128) / (int64_t)align * (int64_t)align;
    else if (!registers && o->mem.type != ZYDIS_MEMOP_TYPE_VSIB)
        disp = (int64_t)target;
    else if (size == 8)
        disp = d->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX ? (int64_t)pick(g, 8) - 4
                                                                 : disp / 2 / (int64_t)align * (int64_t)align;
    memcpy(bytes + d->in.raw.disp.offset, &disp, size / 8);
}

/* Takes the instruction if it will do. */
static int take(struct generator *g, uint8_t *bytes, size_t n)
{
    struct decoded d;
    if (!decode(&d, bytes, n) || !usable(&d.in, d.op) || !operands_are_good(g, &d))
        return 0;
    place(g, &d, bytes);
    if (!decode(&d, bytes, d.in.length) || !usable(&d.in, d.op))
        return 0;
    memcpy(g->code + g->at, bytes, d.in.length);
    g->at += d.in.length;
    follow(g, &d);
    return 1;
}

static void random_bytes(struct generator *g, uint8_t *b, size_t n)
{
    static const uint8_t prefixes[] = {0x66, 0x66, 0xf2, 0xf3, 0xf0, 0x2e,
                                       0x3e, 0x26, 0x36, 0x67, 0x64, 0x65};
    uint8_t *end = b + n;
    for (unsigned i = pick(g, 8) < 4 ? 0 : pick(g, 4); i; i--)
        *b++ = prefixes[pick(g, chance(g, 20) ? 12 : 9)];
    unsigned kind = pick(g, 100);
    if (kind < 70 && chance(g, 60))
        *b++ = (uint8_t)(0x40 + pick(g, 16));
    if (kind >= 30 && kind < 85) { /* below: the one-byte opcodes */
        if (kind < 70) {
            *b++ = 0x0f;
            if (kind >= 54)
                *b++ = kind < 63 ? 0x38 : 0x3a;
        } else {
            *b++ = kind < 74 ? 0xc5 : 0xc4;
            if (kind >= 74)
                *b++ = (uint8_t)(pick(g, 8) << 5 | (1 + pick(g, 3)));
        }
    } else if (kind >= 85) {
        *b++ = 0x62;
        *b++ = (uint8_t)(pick(g, 16) << 4 | (1 + pick(g, 3)));
        *b++ = (uint8_t)(pick(g, 256) | 4);
    }
    while (b < end) {
        uint64_t r = isa_random(&g->random);
        memcpy(b, &r, (size_t)(end - b) < 8 ? (size_t)(end - b) : 8);
        b += 8;
    }
}

static int try_bytes(struct generator *g)
{
    uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH + 8];
    random_bytes(g, bytes, ZYDIS_MAX_INSTRUCTION_LENGTH);
    return take(g, bytes, ZYDIS_MAX_INSTRUCTION_LENGTH);
}

static uint64_t form_key(const struct decoded *d)
{
    uint64_t key = d->in.mnemonic;
    key = key << 3 | d->in.encoding;
    key = key << 2 | d->in.operand_width / 32u;
    key = key << 1 | (d->in.attributes & ZYDIS_ATTRIB_HAS_LOCK ? 1u : 0u);
    key = key << 1 | (repeats(d) != 0);
    for (unsigned i = 0; i < 4; i++)
        key = key << 7 | (i < d->in.operand_count_visible
                              ? (d->op[i].type << 4 | (unsigned)__builtin_ctz(d->op[i].size | 1024u))
                              : 0u);
    return key << 1 | (d->in.avx.broadcast.mode && !d->in.avx.broadcast.is_static);
}

static int by_key(const void *a, const void *b)
{
    const struct form *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

void instructions_init(uint64_t seed)
{
    struct generator g = {.random = seed};
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    usable_init();
    static uint64_t seen[4 * MAX_FORMS];
    for (unsigned i = 0; i < FORM_TRIES && nforms < MAX_FORMS; i++) {
        uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH + 8];
        struct decoded d;
        random_bytes(&g, bytes, ZYDIS_MAX_INSTRUCTION_LENGTH);
        if (!decode(&d, bytes, ZYDIS_MAX_INSTRUCTION_LENGTH) || !usable(&d.in, d.op))
            continue;
        uint64_t key = form_key(&d), h = key * 0x9e3779b97f4a7c15ull >> 40;
        while (seen[h % (4 * MAX_FORMS)] && seen[h % (4 * MAX_FORMS)] != key)
            h++;
        if (seen[h % (4 * MAX_FORMS)])
            continue;
        seen[h % (4 * MAX_FORMS)] = key;
        forms[nforms].key = key;
        memcpy(forms[nforms++].bytes, bytes, sizeof forms[0].bytes);
    }
    qsort(forms, nforms, sizeof *forms, by_key);
    for (unsigned i = 0; i < nforms; i++)
        if (!i || forms[i].key >> 36 != forms[i - 1].key >> 36)
            first_form[nmnemonics++] = i;
    first_form[nmnemonics] = nforms;
}

static ZydisRegister wide(int r, int bits)
{
    return (ZydisRegister)((bits == 32 ? ZYDIS_REGISTER_EAX : ZYDIS_REGISTER_RAX) + r);
}

static void choose_memory(struct generator *g, ZydisEncoderRequest *q, ZydisEncoderOperand *o)
{
    unsigned kind = pick(g, 100);
    int low = g->base == ISA_BASE_LOW, narrow = low && chance(g, 6), bits = narrow ? 32 : 64;
    int vsib = ZydisRegisterGetClass(o->mem.index) >= ZYDIS_REGCLASS_XMM &&
               ZydisRegisterGetClass(o->mem.index) <= ZYDIS_REGCLASS_ZMM;
    if (o->mem.base == ZYDIS_REGISTER_NONE && o->mem.index == ZYDIS_REGISTER_NONE)
        return; /* an absolute address of 64 bits, or one that will be replaced anyhow */
    int base = register_with(g, HOLDS_POINTER), index = register_with(g, HOLDS_SMALL);
    if (chance(g, 15))
        base = RSP;
    static const int64_t disps[] = {0, 1, 1000};
    o->mem.displacement = disps[pick(g, 3)];
    if (vsib) {
        ZydisRegister first = ZydisRegisterGetClass(o->mem.index) == ZYDIS_REGCLASS_XMM ? ZYDIS_REGISTER_XMM0
                              : ZydisRegisterGetClass(o->mem.index) == ZYDIS_REGCLASS_YMM
                                  ? ZYDIS_REGISTER_YMM0
                                  : ZYDIS_REGISTER_ZMM0;
        static const uint8_t numbers[] = {4, 5, 12, 13, 20, 21, 28, 29};
        o->mem.base = wide(base < 0 ? RSP : base, bits);
        o->mem.index = first + numbers[pick(g, chance(g, 50) ? 4 : 8)];
        return;
    }
    o->mem.base = base < 0 ? ZYDIS_REGISTER_RIP : wide(base, bits);
    o->mem.index = ZYDIS_REGISTER_NONE;
    o->mem.scale = 0;
    if (kind < 15) {
        o->mem.base = ZYDIS_REGISTER_RIP;
        o->mem.displacement = 0x1000000;
    } else if (kind < 18 && low) {
        o->mem.base = ZYDIS_REGISTER_NONE;
        o->mem.displacement = (int64_t)(arena(g) + ISA_DATA + 512);
    } else if (kind < 24) {
        q->prefixes |= ZYDIS_ATTRIB_HAS_SEGMENT_FS;
        o->mem.base = index < 0 || chance(g, 50) ? ZYDIS_REGISTER_NONE : wide(index, bits);
        o->mem.displacement = -300;
        bits = 64;
    } else if (index >= 0 && index != RSP && kind < 60) {
        o->mem.index = wide(index, bits);
        o->mem.scale = (ZyanU8)(1u << pick(g, 4));
    }
}

/* Another register of the same class. */
static ZydisRegister another(struct generator *g, ZydisRegister r, int evex)
{
    switch (ZydisRegisterGetClass(r)) {
    case ZYDIS_REGCLASS_GPR64:
        return ZYDIS_REGISTER_RAX + pick(g, 16);
    case ZYDIS_REGCLASS_GPR32:
        return ZYDIS_REGISTER_EAX + pick(g, 16);
    case ZYDIS_REGCLASS_GPR16:
        return ZYDIS_REGISTER_AX + pick(g, 16);
    case ZYDIS_REGCLASS_XMM:
        return ZYDIS_REGISTER_XMM0 + pick(g, evex ? 32 : 16);
    case ZYDIS_REGCLASS_YMM:
        return ZYDIS_REGISTER_YMM0 + pick(g, evex ? 32 : 16);
    case ZYDIS_REGCLASS_ZMM:
        return ZYDIS_REGISTER_ZMM0 + pick(g, 32);
    case ZYDIS_REGCLASS_MASK:
        return ZYDIS_REGISTER_K1 + pick(g, 7);
    default:
        return r;
    }
}

static int try_form(struct generator *g)
{
    unsigned m = pick(g, nmnemonics), n = first_form[m + 1] - first_form[m];
    const struct form *f = &forms[first_form[m] + pick(g, n)];
    struct decoded d;
    ZydisEncoderRequest q;
    uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH + 8];
    ZyanUSize length = ZYDIS_MAX_INSTRUCTION_LENGTH;
    if (!decode(&d, f->bytes, sizeof f->bytes) ||
        !ZYAN_SUCCESS(
            ZydisEncoderDecodedInstructionToEncoderRequest(&d.in, d.op, d.in.operand_count_visible, &q)))
        return 0;
    /* Segments and hints do not matter to the form. */
    q.prefixes &=
        ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
    for (unsigned i = 0; i < q.operand_count; i++) {
        ZydisEncoderOperand *o = &q.operands[i];
        if (o->type == ZYDIS_OPERAND_TYPE_MEMORY)
            choose_memory(g, &q, o);
        else if (o->type == ZYDIS_OPERAND_TYPE_REGISTER && chance(g, 80))
            o->reg.value = another(g, o->reg.value, d.in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX);
        else if (o->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && chance(g, 60))
            o->imm.u = chance(g, 50) ? pick(g, 128) : (uint64_t) - (int64_t)pick(g, 128);
    }
    if (is_bit_string(&d) && register_with(g, HOLDS_SMALL) >= 0 &&
        q.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
        ZydisRegisterClass class = ZydisRegisterGetClass(q.operands[1].reg.value);
        q.operands[1].reg.value = ZydisRegisterEncode(class, (ZyanU8)register_with(g, HOLDS_SMALL));
    }
    return ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&q, bytes, &length)) && take(g, bytes, length);
}

void instruction(struct generator *g)
{
    while (!(g->bytes ? try_bytes(g) : try_form(g)))
        ;
}
