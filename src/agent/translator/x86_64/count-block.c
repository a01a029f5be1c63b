/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count-block.c - makes the blocks that count.
 *
 * A run of blocks is made at once: if a block may continue in code that is not translated yet, that code is
 * translated right after it, so that no jump is needed. What the calls of a run push is emitted after the
 * run.
 */
#include "agent/code/code.h"
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/thread.h"
#include "agent/translator/x86_64/check.h"
#include "agent/translator/x86_64/count.h"
#include "agent/translator/x86_64/landings.h"
#include "agent/translator/x86_64/layout.h"
#include "agent/translator/x86_64/source.h"

/* Limit for the references of one instruction. A gather has 16, few have more. */
#define MOST_REFS_OF_ONE 64u

/* What an instruction adds to the counter. */
struct addition {
    uint16_t refs, masked;
    uint8_t repeats, string; /* operands of a repeated string instruction; index in the thread's `strings` */
};

/* A call of the run: target of the call instruction whose displacement is at `patch`. */
struct call {
    uint8_t *patch;
    uint64_t target, next;
    int indirect;
};

/* A return landing right before the next block, and its call. */
struct landing {
    uint8_t *code; /* NULL: none */
    uint64_t call_pc;
};

#define CALL_BYTES 5

/* Work space of the translator, used under the lock. The largest part is mapped: collectors read the
 * library's data. */
static struct insn *insns;
static struct addition additions[BLOCK_INSNS + 1];
static struct template template;
static struct place places[PLACES_OF_A_BLOCK];
static struct source source;
static uint8_t unused[1024]; /* receives the recording code, which is not used */
static struct call calls[COUNT_RUN_MOST];
static unsigned ncalls;

static struct addition addition_of(const struct insn *d, unsigned index, uint64_t block_pc)
{
    struct emitter nowhere = {unused};
    struct addition sum = {0};
    template_init(&template, &nowhere, NO_REG + 1, NO_REG + 1);
    template_record(&template, d, index, (uint32_t)(d->pc - block_pc));
    for (unsigned i = 0; i < template.nrefs; i++) {
        const struct wire_ref *r = &template.refs[i];
        unsigned each = r->rw == (WIRE_LOAD | WIRE_STORE) ? 2 : r->rw != 0;
        if (r->kind == WIRE_REF_REP) {
            sum.repeats = (r->flags & (WIRE_REP_SRC | WIRE_REP_DST)) == (WIRE_REP_SRC | WIRE_REP_DST) ? 2 : 1;
            sum.string = (uint8_t)__builtin_ctz(r->elem_bytes);
            sum.refs = (uint16_t)(sum.refs + sum.repeats);
        } else if (r->kind == WIRE_REF_MASKED || r->kind == WIRE_REF_PACKED)
            sum.masked = (uint16_t)(sum.masked + each);
        else
            sum.refs =
                (uint16_t)(sum.refs + (r->kind == WIRE_REF_GATHER ? each * r->size / r->elem_bytes : each));
    }
    return sum;
}

int count_block_init(void)
{
    insns = own_map(NULL, sizeof *insns * (BLOCK_INSNS + 1), OWN_DATA);
    return insns ? 0 : -1;
}

/* Decodes a block at pc into insns[], returns their number. *last: the last instruction ends the block by
 * itself; *refs: what the block adds. */
static unsigned decode(uint64_t pc, int *last, unsigned *refs)
{
    unsigned n = 0;
    uint64_t stop = rseq_next(pc);
    int is_agent_code = region_is_agent(pc);
    *last = 0;
    *refs = 0;
    source_begin(&source, pc);
    while (n < BLOCK_INSNS && pc + source.taken < stop && *refs + MOST_REFS_OF_ONE < COUNT_STEPS) {
        struct insn *d = &insns[n];
        if (!source_decode(&source, d))
            break;
        source_find_sequence(d, pc, &stop);
        additions[n] = is_agent_code || insn_is_native(d) ? (struct addition){0} : addition_of(d, n, pc);
        *refs += additions[n++].refs;
        if (d->class != INSN_PLAIN && d->class != INSN_REP) {
            *last = 1;
            break;
        }
        if (source_take(&source, d))
            break;
    }
    return n;
}

static unsigned add_place(unsigned n, const struct block *b, const struct place *p)
{
    places[n] = *p;
    places[n].code_offset = (uint16_t)(cache_out.at - b->code);
    return n + 1;
}

/* The jump there leaves the block. */
static void link_jump(uint8_t *patch, uint64_t target)
{
    uint8_t *stub = cache_cold.at;
    emit_patch(patch, stub);
    struct exit *x = cache_emit_exit(&cache_cold, EXIT_LINK, target, 1);
    x->patch = patch;
    x->stub = stub;
    cache_link(x);
}

/* In front of a block whose source may change. */
static void emit_source_check(struct block *b, unsigned bytes)
{
    uint8_t *ok;
    emit_gs_store(&cache_out, T_SPILL_A, RAX);
    emit_check(&cache_out, RAX, b->pc, source.bytes, bytes, &ok);
    emit_gs_load(&cache_out, RAX, T_SPILL_A);
    struct exit *x = cache_emit_exit(&cache_out, EXIT_STALE, b->pc, 1);
    x->block = b;
    emit_check_end(&cache_out, ok);
    emit_gs_load(&cache_out, RAX, T_SPILL_A);
    b->check_end = (uint16_t)(cache_out.at - b->code);
}

/* A low register that the instruction does not use. */
static int pick(const struct insn *d)
{
    static const int8_t low[] = {RBX, RBP, RSI, RDI, RDX, RAX};
    unsigned used = d->reads | d->writes;
    for (unsigned i = 0; i < sizeof low; i++)
        if (!(used >> low[i] & 1))
            return low[i];
    return NO_REG;
}

/* Emits the copy of an instruction with what it needs around it. Returns the number of places; 0: it cannot
 * be copied. */
static unsigned emit_plain(struct block *b, unsigned n, const struct insn *d, const struct addition *a,
                           struct place p, int before_branch)
{
    int names = count_names_vector(d), far = source_out_of_reach(d, cache_out.at);
    /* The jump's padding goes before this instruction, so that the two can still be fused. */
    if (before_branch && !names && !far)
        emit_nop(&cache_out, emit_gap(cache_out.at + d->in.length + 2));
    p.repeats = a->repeats;
    p.string = a->string;
    n = add_place(n, b, &p);
    emit_count_elements(&cache_out, a->repeats, a->string, 0);
    if (a->masked)
        emit_count_masked(&cache_out, d, a->masked);
    if (names) {
        emit_count_vector_out(&cache_out);
        p.state |= PLACE_VECTOR_OUT;
    }
    if (far) {
        if ((p.extra = (int8_t)pick(d)) < 0)
            return 0;
        emit_gs_store(&cache_out, T_SPILL_EXTRA, p.extra);
    }
    if (names || far)
        n = add_place(n, b, &p);
    if (source_copy(&cache_out, d, p.extra))
        return 0;
    if (far)
        emit_gs_load(&cache_out, p.extra, T_SPILL_EXTRA);
    if (names)
        emit_count_vector_in(&cache_out);
    emit_count_elements(&cache_out, a->repeats, a->string, 1);
    return n;
}

/* Emits a call instruction, whose target has been looked up if it is not direct, and the landing after it;
 * or a jump to where both exist already. Returns where code continues right after it. */
static uint64_t emit_call(const struct insn *d, int indirect, struct landing *landing)
{
    uint64_t next = d->pc + d->in.length;
    const struct block *there = region_may_change(d->pc, d->in.length) ? NULL : cache_find(next, 1);
    if (there && there->call_pc == d->pc) {
        emit_patch(emit_jump(&cache_out), there->return_landing - CALL_BYTES);
        return 0;
    }
    emit_byte(&cache_out, 0xe8);
    emit_u32(&cache_out, 0);
    calls[ncalls++] = (struct call){cache_out.at - 4, source_branch_target(d), next, indirect};
    *landing = (struct landing){cache_out.at, d->pc};
    emit_count_landing(&cache_out, next, 1);
    return next;
}

static struct exit *indirect_exit(const struct insn *d, unsigned insn, int popped_bytes)
{
    struct exit *x = cache_new_exit(EXIT_INDIRECT, d->pc, 1);
    x->insn = (uint16_t)insn;
    x->popped_bytes = popped_bytes;
    return x;
}

/* Emits the instruction that ends the block, number insn. Returns where code continues right after it, 0:
 * nowhere; *landing: whether a return landing was written there. */
static uint64_t emit_end(struct block *b, unsigned *nplaces, const struct insn *d, struct place p,
                         struct landing *landing)
{
    uint64_t next = d->pc + d->in.length, target = source_branch_target(d);
    struct place saved = p;
    struct exit *x;
    int32_t popped;
    uint8_t *jump;
    saved.state |= PLACE_SAVED;
    *nplaces = add_place(*nplaces, b, &p);
    switch (d->class) {
    case INSN_JUMP:
        return target;
    case INSN_CONDITIONAL:
        link_jump(emit_jcc(&cache_out, d->in.opcode & 15u), target);
        return next;
    case INSN_COUNTED:
        /* The instruction only has a short form: it jumps over a jump. */
        emit_bytes(&cache_out, d->bytes, d->in.length);
        cache_out.at[-1] = 2;
        emit_byte(&cache_out, 0xeb);
        jump = cache_out.at;
        emit_byte(&cache_out, 0);
        link_jump(emit_jump(&cache_out), target);
        *jump = (uint8_t)(cache_out.at - jump - 1);
        return next;
    case INSN_CALL:
        return emit_call(d, 0, landing);
    case INSN_CALL_INDIRECT:
    case INSN_JUMP_INDIRECT:
        emit_count_save(&cache_out);
        *nplaces = add_place(*nplaces, b, &saved);
        source_load_target(&cache_out, d, RAX);
        emit_count_index(&cache_out,
                         cache_exit_id(indirect_exit(d, p.insn, d->class == INSN_CALL_INDIRECT ? -8 : 0)));
        if (d->class == INSN_CALL_INDIRECT)
            return emit_call(d, 1, landing);
        emit_count_jump(&cache_out);
        return 0;
    case INSN_RETURN:
        popped = d->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? (int32_t)d->op[0].imm.value.u : 0;
        emit_count_save(&cache_out);
        *nplaces = add_place(*nplaces, b, &saved);
        emit_load(&cache_out, RAX, RSP, 0);
        x = indirect_exit(d, p.insn, 8 + popped);
        emit_count_index(&cache_out, cache_exit_id(x));
        if (popped) { /* rare: handled like a jump */
            emit_lea(&cache_out, RSP, RSP, 8 + popped);
            emit_count_jump(&cache_out);
        } else {
            x->returns = 1;
            emit_count_return(&cache_out);
        }
        return 0;
    default:
        x = cache_emit_exit(&cache_out,
                            d->class == INSN_SYSCALL ? EXIT_SYSCALL
                            : d->class == INSN_STEP  ? EXIT_STEP
                                                     : EXIT_END,
                            d->pc, 1);
        x->detail = (uint16_t)d->in.mnemonic;
        if (d->class != INSN_SYSCALL)
            return 0;
        x->block = b;
        x->resume = cache_out.at;
        emit_bytes(&cache_out, d->bytes, d->in.length);
        x->after = cache_out.at;
        x = cache_emit_exit(&cache_out, EXIT_BACK, next, 1);
        x->resume = cache_out.at;
        emit_move_imm(&cache_out, RCX, next);
        return next;
    }
}

/* Makes one block at cache_out. *next: where code continues right after it; 0: nowhere. NULL: not possible.
 */
static struct block *make(struct thread *t, uint64_t pc, uint64_t *next, struct landing *landing)
{
    int last;
    unsigned refs, n = decode(pc, &last, &refs), nplaces = 0;
    uint8_t *begin = cache_out.at, *cold = cache_cold.at;
    t->translation.leave_end = WIRE_END_CODE;
    t->translation.leave_detail = 0;
    if (n == 0)
        return NULL;
    struct block *b = cache_next();
    *b = (struct block){
        .pc = pc, .code = begin, .scratch = -1, .cursor = -1, .counts = 1, .refs = (uint16_t)refs};
    b->source_bytes = (uint16_t)(insns[n - 1].pc + insns[n - 1].in.length - pc);
    const struct insn *end = last ? &insns[n - 1] : NULL;
    struct place p = {.refs = (uint16_t)refs, .extra = -1}; /* not added yet: nothing to subtract */
    nplaces = add_place(nplaces, b, &p);
    if (source.may_change && !(n == 1 && end && insn_is_native(end)))
        emit_source_check(b, b->source_bytes);
    b->stops = end && count_may_loop(end);
    if (b->stops)
        emit_gs_store(&cache_out, T_STOP + WIRE_PAGE - 8, RSP);
    if (refs || b->stops)
        emit_count_add(&cache_out, refs,
                       end && (end->class == INSN_RETURN || end->class == INSN_JUMP_INDIRECT ||
                               end->class == INSN_CALL_INDIRECT));
    p.refs = 0;
    *next = 0;
    unsigned mark = b->stops ? count_mark_place(insns, n) : n;
    for (unsigned i = 0; i < n; i++) {
        const struct insn *d = &insns[i];
        if (i == mark)
            emit_count_mark(d);
        p.insn = (uint16_t)i;
        p.pc_offset = (uint16_t)(d->pc - pc);
        if (d == end) {
            *next = emit_end(b, &nplaces, d, p, landing);
            break;
        }
        if ((nplaces = emit_plain(b, nplaces, d, &additions[i], p,
                                  d + 1 == end && end->class == INSN_CONDITIONAL)) == 0) {
            cache_out.at = begin;
            cache_cold.at = cold;
            t->translation.leave_end = WIRE_END_INSTRUCTION;
            t->translation.leave_detail = d->in.mnemonic;
            return NULL;
        }
        p.refs = (uint16_t)(p.refs + additions[i].refs);
        *next = d->pc + d->in.length;
    }
    count_add(&proc->count.insns, n);
    /* A jump to the block that follows needs no code, but poison() in cache.c needs a byte. */
    if (cache_out.at == begin)
        emit_byte(&cache_out, 0x90); /* nop */
    return cache_add(places, nplaces);
}

static void emit_calls(void)
{
    for (unsigned i = 0; i < ncalls; i++) {
        const struct call *c = &calls[i];
        emit_patch(c->patch, cache_out.at);
        /* One store: a load of what two stores wrote would stall until both are in the cache. */
        uint8_t *address = NULL;
        if (c->next <= INT32_MAX) {
            emit_store_imm(&cache_out, RSP, 0, (uint32_t)c->next);
        } else {
            emit_lea(&cache_out, RSP, RSP, 8);
            address = emit_push_literal(&cache_out);
        }
        if (c->indirect)
            emit_count_jump(&cache_out);
        else
            link_jump(emit_jump(&cache_out), c->target);
        if (address)
            emit_literal(&cache_out, address, c->next);
    }
}

/* Whether the run continues with that code. */
static int run_continues(uint64_t pc)
{
    uint64_t ignored;
    return cache_has_room() && region_may_translate(pc) && !rseq_inside(pc, &ignored);
}

/* A return landing was written right before the block, after a copy of the call at call_pc. */
static void found_landing(struct block *b, uint8_t *landing, uint64_t call_pc)
{
    if (!b->return_landing || !b->call_pc) {
        b->return_landing = landing;
        b->call_pc = call_pc;
        landings_set(b->pc, 1, landing);
    }
}

struct block *count_block(struct thread *t, uint64_t pc)
{
    struct block *first = NULL, *b = NULL;
    struct landing landing = {NULL, 0};
    ncalls = 0;
    cache_out.at = (uint8_t *)(((uintptr_t)cache_out.at + 15) & ~(uintptr_t)15);
    for (unsigned n = 1; pc; n++) {
        uint64_t next = 0;
        struct landing new_landing = {NULL, 0};
        if (!(b = make(t, pc, &next, &new_landing)))
            break;
        first = first ? first : b;
        if (landing.code)
            found_landing(b, landing.code, landing.call_pc);
        landing = new_landing;
        pc = next;
        struct block *there = pc ? cache_find(pc, 1) : NULL;
        if (there && landing.code)
            found_landing(there, landing.code, landing.call_pc);
        /* Code after a call will be returned to; other code may never be executed. */
        if (there || (pc && (!run_continues(pc) || n >= (landing.code ? COUNT_RUN_MOST : COUNT_RUN))))
            break;
    }
    if (pc && first)
        link_jump(emit_jump(&cache_out), pc);
    emit_calls();
    return first;
}

void count_remember(struct block *b, int is_return)
{
    uint8_t **landing = is_return ? &b->return_landing : &b->landing;
    if (!*landing) {
        if (!cache_has_room())
            return;
        *landing = cache_out.at;
        emit_count_landing(&cache_out, b->pc, is_return);
        emit_patch(emit_jump(&cache_out), b->code);
    }
    landings_set(b->pc, is_return, *landing);
}
