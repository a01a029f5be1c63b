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

unsigned count_references(const struct template *t, unsigned from, unsigned *repeats)
{
    unsigned n = 0;
    *repeats = 0;
    for (unsigned i = from; i < t->nrefs; i++) {
        const struct wire_ref *r = &t->refs[i];
        unsigned each = r->rw == (WIRE_LOAD | WIRE_STORE) ? 2 : r->rw != 0;
        if (r->kind == WIRE_REF_REP)
            *repeats = (r->flags & (WIRE_REP_SRC | WIRE_REP_DST)) == (WIRE_REP_SRC | WIRE_REP_DST) ? 2 : 1;
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
