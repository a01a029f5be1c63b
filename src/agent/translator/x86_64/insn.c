/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/translator/x86_64/insn.h"
#include "agent/translator/x86_64/layout.h"

static ZydisDecoder decoder;
static int has_bmi2;

void insn_init(int bmi2)
{
    has_bmi2 = bmi2;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

int insn_register(ZydisRegister reg)
{
    if (reg == ZYDIS_REGISTER_NONE || reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP)
        return NO_REG;
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15)
        return (int)(whole - ZYDIS_REGISTER_RAX);
    return NO_REG;
}

static int is_repeated(const ZydisDecodedInstruction *in)
{
    return in->meta.category == ZYDIS_CATEGORY_STRINGOP &&
           (in->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)) != 0;
}

/* Memory operands that no template can describe: the instruction is single-stepped natively, and its
 * references are not recorded. */
static int has_unsupported_operand(const struct insn *d)
{
    for (unsigned i = 0; i < d->in.operand_count; i++) {
        const ZydisDecodedOperand *o = &d->op[i];
        if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
            continue;
        /* lea, too: its value depends on the place where it is executed. */
        if (o->mem.base == ZYDIS_REGISTER_EIP)
            return 1;
        if (o->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
            continue;
        if (o->mem.segment == ZYDIS_REGISTER_GS || o->mem.type == ZYDIS_MEMOP_TYPE_MIB)
            return 1;
        /* String instructions with 32-bit addresses, and FS with an address register cut to 32 bits. */
        if (d->in.address_width == 32 && d->in.meta.category == ZYDIS_CATEGORY_STRINGOP)
            return 1;
    }
    return 0;
}

/* mov, pop, lfs and lgs change the segment's base. */
static int loads_segment(const struct insn *d)
{
    for (unsigned i = 0; i < d->in.operand_count; i++)
        if (d->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (d->op[i].reg.value == ZYDIS_REGISTER_FS || d->op[i].reg.value == ZYDIS_REGISTER_GS) &&
            d->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            return 1;
    return 0;
}

/* A near branch with an operand-size prefix: Intel's processors ignore the prefix, AMD's truncate the
 * target and displacement to 16 bits. */
static int is_cut_branch(const ZydisDecodedInstruction *in)
{
    return in->meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR && in->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE &&
           !in->raw.rex.W;
}

static enum insn_class classify(const struct insn *d)
{
    const ZydisDecodedInstruction *in = &d->in;
    if (is_cut_branch(in))
        return INSN_STEP;
    if (loads_segment(d))
        return INSN_END;
    int immediate = d->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    int far = in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
        return in->length == 2 ? INSN_SYSCALL : INSN_STEP; /* with prefixes, which nothing uses */
    case ZYDIS_MNEMONIC_CALL:
        return far || has_unsupported_operand(d) ? INSN_STEP : immediate ? INSN_CALL : INSN_CALL_INDIRECT;
    case ZYDIS_MNEMONIC_JMP:
        return far || has_unsupported_operand(d) ? INSN_STEP : immediate ? INSN_JUMP : INSN_JUMP_INDIRECT;
    case ZYDIS_MNEMONIC_RET:
        return far ? INSN_STEP : INSN_RETURN;
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
        return INSN_COUNTED;
    /* These change state that a burst relies on. */
    case ZYDIS_MNEMONIC_WRFSBASE:
    case ZYDIS_MNEMONIC_WRGSBASE:
    case ZYDIS_MNEMONIC_SWAPGS:
        return INSN_END;
    case ZYDIS_MNEMONIC_RDGSBASE:
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_XEND:
    case ZYDIS_MNEMONIC_INT:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_UMWAIT:
        return INSN_STEP;
    case ZYDIS_MNEMONIC_PAUSE: /* the processor executes xchg with r8, but the decoder does not know that */
        if (in->raw.rex.B)
            return INSN_STEP;
        break;
    case ZYDIS_MNEMONIC_ENTER: /* copies frame pointers of outer levels; not used in practice */
        if (d->op[1].imm.value.u & 31)
            return INSN_STEP;
        break;
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC:
        /* The bit number in a register is part of the address, which takes BMI2 to compute without changing
         * flags. */
        if (!has_bmi2 && d->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            d->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
            return INSN_STEP;
        break;
    default:
        break;
    }
    if (in->meta.isa_ext == ZYDIS_ISA_EXT_AMX_TILE || has_unsupported_operand(d))
        return INSN_STEP;
    if (in->meta.category == ZYDIS_CATEGORY_COND_BR)
        return INSN_CONDITIONAL;
    if (in->meta.category == ZYDIS_CATEGORY_UNCOND_BR || in->meta.category == ZYDIS_CATEGORY_CALL)
        return INSN_STEP;
    return is_repeated(in) ? INSN_REP : INSN_PLAIN;
}

void insn_decode(struct insn *d, const uint8_t *bytes, unsigned available, uint64_t pc)
{
    d->pc = pc;
    d->bytes = bytes;
    d->reads = d->writes = 0;
    d->rip_operand = -1;
    /* In two steps: the combined function would clear ten operands for every instruction. */
    ZydisDecoderContext context;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context, bytes, available, &d->in)) ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&decoder, &context, &d->in, d->op, d->in.operand_count))) {
        d->in.length = 0;
        d->in.operand_count = 0;
        d->in.mnemonic = ZYDIS_MNEMONIC_INVALID;
        d->class = INSN_STEP;
        return;
    }
    d->class = classify(d);
    /* The processor faults at a branch whose target is not in the lower half of the address space. */
    if (d->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
        (d->class == INSN_JUMP || d->class == INSN_CALL || d->class == INSN_CONDITIONAL ||
         d->class == INSN_COUNTED) &&
        (d->pc + d->in.length + (uint64_t)d->op[0].imm.value.s) >> 47 != 0)
        d->class = INSN_STEP;
    for (unsigned i = 0; i < d->in.operand_count; i++) {
        const ZydisDecodedOperand *o = &d->op[i];
        int reg;
        if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            if ((reg = insn_register(o->reg.value)) >= 0) {
                d->reads |= (uint16_t)(1u << reg);
                if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
                    d->writes |= (uint16_t)(1u << reg);
            }
        } else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            if ((reg = insn_register(o->mem.base)) >= 0)
                d->reads |= (uint16_t)(1u << reg);
            if (o->mem.type != ZYDIS_MEMOP_TYPE_VSIB && (reg = insn_register(o->mem.index)) >= 0)
                d->reads |= (uint16_t)(1u << reg);
            if (o->mem.base == ZYDIS_REGISTER_RIP)
                d->rip_operand = (int)i;
        }
    }
    /* bts and similar instructions can access memory far from a RIP-relative operand. A non-canonical
     * address faults with #SS, and so SIGBUS, if its base is RBP, else with #GP and SIGSEGV. So RBP must
     * not be borrowed for the base. */
    if (d->rip_operand == 0 && d->in.meta.category == ZYDIS_CATEGORY_BITBYTE)
        d->reads |= 1u << RBP;
    if (d->in.meta.category == ZYDIS_CATEGORY_STRINGOP) {
        d->reads |= (uint16_t)(1u << RSI | 1u << RDI | 1u << RCX);
        d->writes |= (uint16_t)(1u << RSI | 1u << RDI | 1u << RCX);
    }
}

int insn_stores(const struct insn *d)
{
    for (unsigned i = 0; i < d->in.operand_count; i++)
        if (d->op[i].type == ZYDIS_OPERAND_TYPE_MEMORY && d->op[i].mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
            d->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
            (d->op[i].visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
             d->in.meta.category != ZYDIS_CATEGORY_PUSH))
            return 1;
    return 0;
}
