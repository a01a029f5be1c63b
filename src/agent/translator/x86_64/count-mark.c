/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count-mark.c - where counting code checks whether the counter has reached its mark.
 *
 * A comparison is cheapest, but changes all flags. It is used where that cannot be noticed, because the
 * block sets every flag before it reads one or can be interrupted by a fault of its own. Elsewhere rcx is
 * borrowed.
 */
#include "agent/translator/x86_64/count.h"

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

static int names_memory(const struct insn *d)
{
    for (unsigned i = 0; i < d->in.operand_count; i++)
        if (d->op[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
            return 1;
    return 0;
}

/* Whether an instruction is one without memory operands that sets all flags. */
static int sets_flags(const struct insn *d)
{
    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_TEST:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_NEG:
        return !names_memory(d);
    default:
        return 0;
    }
}

unsigned count_mark_place(const struct insn *insns, unsigned n)
{
    for (unsigned i = n; i-- > 0;)
        if (insns[i].class == INSN_PLAIN && sets_flags(&insns[i]))
            return i;
    /* Recursion without loops, and calls from everywhere, are not worth the cost of borrowing. */
    switch (insns[n - 1].class) {
    case INSN_JUMP:
    case INSN_CONDITIONAL:
    case INSN_COUNTED:
    case INSN_JUMP_INDIRECT:
        return 0;
    default:
        return n;
    }
}

void emit_count_mark(const struct insn *before)
{
    uint8_t *reached;
    int borrows = before->class != INSN_PLAIN || !sets_flags(before);
    if (borrows) {
        emit_gs_store(&cache_out, T_SCRATCH, RCX);
        emit_count_high_byte(&cache_out);
        emit_byte(&cache_out, 0xe3); /* jrcxz */
        uint8_t *on = cache_out.at;
        emit_byte(&cache_out, 0);
        reached = emit_jump(&cache_out);
        *on = (uint8_t)(cache_out.at - on - 1);
        emit_gs_load(&cache_out, RCX, T_SCRATCH);
    } else {
        emit_count_compare(&cache_out);
        reached = emit_jcc(&cache_out, 3); /* not below */
    }
    emit_patch(reached, cache_cold.at);
    if (borrows)
        emit_gs_load(&cache_cold, RCX, T_SCRATCH);
    emit_count_store(&cache_cold);
    struct exit *x = cache_emit_exit(&cache_cold, EXIT_MARK, before->pc, 1);
    x->resume = cache_cold.at;
    emit_count_load(&cache_cold);
    emit_patch(emit_jump(&cache_cold), cache_out.at);
}
