/* SPDX-License-Identifier: Apache-2.0 */
/* See count.h. */
#include "agent/arch/x86_64/count.h"

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

unsigned count_references(const struct template *t, unsigned from, unsigned *repeats, unsigned *masked)
{
    unsigned n = 0;
    *repeats = *masked = 0;
    for (unsigned i = from; i < t->nrefs; i++) {
        const struct wire_ref *r = &t->refs[i];
        unsigned each = r->rw == (WIRE_LOAD | WIRE_STORE) ? 2 : r->rw != 0;
        if (r->kind == WIRE_REF_REP)
            *repeats = (r->flags & (WIRE_REP_SRC | WIRE_REP_DST)) == (WIRE_REP_SRC | WIRE_REP_DST) ? 2 : 1;
        else if (r->kind == WIRE_REF_MASKED || r->kind == WIRE_REF_PACKED)
            *masked += each;
        else
            n += r->kind == WIRE_REF_GATHER ? each * r->size / r->elem_bytes : each;
    }
    return n;
}

void emit_count_probe(struct emitter *e, int scratch, int cursor)
{
    /* movzx scratch, byte [cursor] */
    emit_byte(e, 0x40u | (unsigned)(scratch >> 3) << 2 | (unsigned)(cursor >> 3));
    emit_byte(e, 0x0f);
    emit_byte(e, 0xb6);
    emit_modrm(e, scratch, cursor, 0);
}

void emit_count_masked(struct emitter *e, const struct insn *d, int cursor, unsigned masked)
{
    emit_gs_store(e, T_SCRATCH, RCX);
    template_emit_mask(e, d, RCX);
    emit_byte(e, 0xe3); /* jrcxz */
    uint8_t *none = e->at;
    emit_byte(e, 0);
    emit_lea(e, cursor, cursor, (int32_t)masked);
    *none = (uint8_t)(e->at - none - 1);
    emit_gs_load(e, RCX, T_SCRATCH);
}

void emit_count_before(struct emitter *e, int cursor, unsigned repeats)
{
    while (repeats--)
        emit_address(e, 0x8d, cursor, cursor, RCX, 1, 0, 0);
}

void emit_count_after(struct emitter *e, int scratch, int cursor, unsigned repeats)
{
    if (!repeats)
        return;
    emit_move(e, scratch, RCX);
    emit_byte(e, 0x48u | (unsigned)(scratch >> 3)); /* not scratch */
    emit_byte(e, 0xf7);
    emit_byte(e, 0xd0u | (unsigned)(scratch & 7));
    while (repeats--)
        emit_address(e, 0x8d, cursor, cursor, scratch, 1, 1, 0);
}

void emit_count_idle(struct emitter *e, int scratch, int cursor)
{
    emit_gs_load(e, scratch, T_IDLE_ROUNDS);
    emit_lea(e, scratch, scratch, 1);
    emit_gs_store(e, T_IDLE_ROUNDS, scratch);
    emit_lea(e, cursor, cursor, 1);
}

void emit_count_indirect(struct emitter *e, uint32_t exit_id, int scratch, int cursor)
{
    if (scratch != COUNT_TARGET || cursor != COUNT_CURSOR) {
        emit_gs_store(e, T_INDIRECT, scratch);
        emit_gs_store(e, T_CURSOR, cursor);
        emit_gs_load(e, scratch, T_SPILL_A);
        emit_gs_load(e, cursor, T_SPILL_B);
        emit_gs_store(e, T_SPILL_A, COUNT_TARGET);
        emit_gs_store(e, T_SPILL_B, COUNT_CURSOR);
        emit_gs_load(e, COUNT_TARGET, T_INDIRECT);
        emit_gs_load(e, COUNT_CURSOR, T_CURSOR);
    }
    /* crc32 rcx, r11; movzx ecx, cx; jmp gs:[rcx * 8 + landings] */
    static const uint8_t lookup[] = {0xf2, 0x49, 0x0f, 0x38, 0xf1, 0xcb, 0x0f,
                                     0xb7, 0xc9, 0x65, 0xff, 0x24, 0xcd};
    emit_gs_imm(e, T_EXIT_ID, exit_id);
    emit_gs_store(e, T_SCRATCH, RCX);
    emit_move_imm(e, RCX, 0);
    emit_bytes(e, lookup, sizeof lookup);
    emit_u32(e, T_LANDINGS);
}

static void give_back(struct emitter *e)
{
    emit_gs_store(e, T_CURSOR, COUNT_CURSOR);
    emit_gs_load(e, COUNT_TARGET, T_SPILL_A);
    emit_gs_load(e, COUNT_CURSOR, T_SPILL_B);
}

void emit_count_landing(struct emitter *e, const struct block *b, const uint8_t *miss)
{
    emit_move_imm(e, RCX, 0 - b->pc);
    emit_address(e, 0x8d, RCX, RCX, COUNT_TARGET, 1, 0, 0);
    emit_byte(e, 0xe3); /* jrcxz */
    uint8_t *ok = e->at;
    emit_byte(e, 0);
    emit_patch(emit_jump(e), miss);
    *ok = (uint8_t)(e->at - ok - 1);
    emit_gs_load(e, RCX, T_SCRATCH);
    int same = b->fast && b->scratch == COUNT_TARGET && b->cursor == COUNT_CURSOR;
    if (!same)
        give_back(e);
    emit_patch(emit_jump(e), same ? b->fast : b->code);
}

void emit_count_miss(struct emitter *e)
{
    emit_gs_load(e, RCX, T_SCRATCH);
    emit_gs_store(e, T_INDIRECT, COUNT_TARGET);
    give_back(e);
    emit_gs_jump(e, T_DISPATCH);
}
