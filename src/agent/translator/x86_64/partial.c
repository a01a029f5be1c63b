/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partial.c - instructions that fault half-way. A gather, scatter or repeated string instruction keeps its
 * progress in its own registers: it clears the mask of the elements that it has done, or counts rcx down,
 * and continues from there when it is executed again. What it did before the fault was executed, and is
 * added to the record.
 */
#include <cpuid.h>
#include <string.h>
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/translator/translator.h"
#include "agent/translator/x86_64/insn.h"
#include "agent/translator/x86_64/xsave.h"

#define COMPONENT_YMM 2u
#define COMPONENT_OPMASK 5u

static const uint8_t *component(const uint8_t *state, unsigned i)
{
    unsigned size, offset = 0, c, d;
    if (!xsave_in_use(state, i) || !__get_cpuid_count(0xd, i, &size, &offset, &c, &d))
        return NULL;
    return state + offset;
}

/* Sign bits of the elements of an XMM or YMM register. */
static uint64_t signs(const uint8_t *state, unsigned number, unsigned bytes, unsigned elem_bytes)
{
    const uint8_t *upper = bytes > 16 ? component(state, COMPONENT_YMM) : NULL;
    uint64_t mask = 0;
    for (unsigned i = 0; i * elem_bytes < bytes; i++) {
        unsigned at = (i + 1) * elem_bytes - 1;
        uint8_t last = 0;
        if (at < 16)
            last = state[XSAVE_XMM + 16 * number + at];
        else if (upper)
            last = upper[16 * number + at - 16];
        mask |= (uint64_t)(last >> 7) << i;
    }
    return mask;
}

/* What is left of a gather's or scatter's mask. 0, or -1: unknown. */
static int mask_left(const ucontext_t *uc, unsigned elem_bytes, uint64_t *mask)
{
    const uint8_t *state = xsave_state(uc);
    uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
    struct insn d;
    if (!state)
        return -1;
    /* If fewer bytes are readable, the next page is not, and the instruction ends before it. */
    size_t missing = safe_copy(code, (const void *)arch_pc(uc), sizeof code);
    insn_decode(&d, code, (unsigned)(sizeof code - missing), arch_pc(uc));
    if (d.in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) {
        const uint8_t *masks = component(state, COMPONENT_OPMASK);
        unsigned k = (unsigned)(d.in.avx.mask.reg - ZYDIS_REGISTER_K0);
        if (!masks || k < 1 || k > 7)
            return -1;
        memcpy(mask, masks + 8 * k, sizeof *mask);
        return 0;
    }
    if (d.in.operand_count < 3 || d.op[2].type != ZYDIS_OPERAND_TYPE_REGISTER)
        return -1;
    *mask = signs(state, (unsigned)ZydisRegisterGetId(d.op[2].reg.value), d.op[2].size / 8u, elem_bytes);
    return 0;
}

static int gather_done(const ucontext_t *uc, const struct wire_ref *r, uint64_t *record)
{
    uint64_t left, before = record[r->slot2];
    if (mask_left(uc, r->elem_bytes, &left) || !(before & ~left))
        return 0;
    record[r->slot2] = before & ~left;
    return 1;
}

static int string_done(const ucontext_t *uc, const struct wire_ref *r, uint64_t *record)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    if (record[r->slot] == (uint64_t)g[REG_RCX])
        return 0;
    record[r->slot + 3] = (uint64_t)g[REG_RCX];
    record[r->slot + 4] = (uint64_t)g[r->flags & WIRE_REP_DST ? REG_RDI : REG_RSI];
    return 1;
}

int arch_record_partial(const ucontext_t *uc, uint64_t *record, uint32_t insns)
{
    uint32_t offset = proc->block_offset[*record & WIRE_ID_MASK];
    const struct wire_block *b = (const void *)(slot + session->template_offset + offset);
    for (unsigned i = 0; i < b->nrefs; i++) {
        const struct wire_ref *r = &b->refs[i];
        if (r->insn != insns)
            continue;
        if (r->kind == WIRE_REF_GATHER)
            return gather_done(uc, r, record);
        if (r->kind == WIRE_REF_REP)
            return string_done(uc, r, record);
    }
    return 0;
}
