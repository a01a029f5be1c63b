/* SPDX-License-Identifier: Apache-2.0 */
/* See translate.h. */
#include "agent/code/code.h"
#include "agent/sys/context.h"
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/translator/translator.h"
#include "agent/translator/x86_64/cache.h"
#include "agent/translator/x86_64/check.h"
#include "agent/translator/x86_64/count.h"
#include "agent/translator/x86_64/filter.h"
#include "agent/translator/x86_64/source.h"
#include "agent/translator/x86_64/template.h"
#include "agent/translator/x86_64/translate.h"
#include <sys/mman.h>
#include <time.h>

static uint32_t next_id = 1; /* of a block that was not published yet */
/* Ids of published blocks by their pc, open addressing. A block that is translated again after a flush keeps
 * its id: there are only WIRE_MAX_BLOCKS, and a program that unloads libraries flushes often. */
static uint32_t *ids;
static uint32_t ids_size = 4096; /* entries in use, a power of two; it grows with the number of ids */
#define ID_PROBES 64u            /* code that keeps changing in one place would make the search long */
static int templates_full;       /* no new block can be published any more */

/* Work space of the translator, used under the lock. The largest part is mapped: collectors read the
 * library's data. */
static struct insn *insns;
static struct template template;
static struct place places[PLACES_OF_A_BLOCK];
static struct source source;

static void emit_restore_pair(struct emitter *e, int scratch, int cursor)
{
    emit_gs_store(e, T_CURSOR, cursor);
    emit_gs_load(e, scratch, T_SPILL_A);
    emit_gs_load(e, cursor, T_SPILL_B);
}

/* In front of a block whose source may change. */
static void emit_source_check(struct block *b, unsigned bytes)
{
    uint8_t *ok;
    emit_check(&cache_out, b->scratch, b->pc, source.bytes, bytes, &ok);
    emit_restore_pair(&cache_out, b->scratch, b->cursor);
    struct exit *x = cache_emit_exit(&cache_out, EXIT_STALE, b->pc, 0);
    x->scratch = b->scratch;
    x->cursor = b->cursor;
    x->block = b;
    emit_check_end(&cache_out, ok);
    b->check_end = (uint16_t)(cache_out.at - b->code);
}

/* Emits where the jump at fast_patch (NULL: none) leads until its target exists, or if that borrows another
 * pair. */
static void emit_link(uint8_t *fast_patch, uint64_t target, int scratch, int cursor)
{
    uint8_t *fast_stub = cache_out.at;
    if (fast_patch)
        emit_patch(fast_patch, fast_stub);
    if (scratch >= 0)
        emit_restore_pair(&cache_out, scratch, cursor);
    uint8_t *patch = emit_jump(&cache_out);
    emit_patch(patch, cache_out.at);
    struct exit *x = cache_emit_exit(&cache_out, EXIT_LINK, target, 0);
    x->patch = patch;
    x->stub = patch + 4;
    x->fast_patch = fast_patch;
    x->fast_stub = fast_stub;
    x->scratch = (int8_t)scratch;
    x->cursor = (int8_t)cursor;
    cache_link(x);
}

/* The branch target is in `scratch`; the cursor is after the record. Looks the translation up in the
 * thread's table, whose keys are negated addresses, without changing flags: crc32 is the hash, lea
 * compares, jrcxz branches. */
static void emit_indirect(const struct insn *d, unsigned insn, int popped_bytes, int scratch, int cursor)
{
    static const uint8_t index[] = {0x0f, 0xb7, 0xc9 /* movzx ecx, cx */, 0x48, 0x8d,
                                    0x0c, 0x09 /* lea rcx, [rcx+rcx] */};
    emit_gs_store(&cache_out, T_CURSOR, cursor);
    emit_gs_store(&cache_out, T_SCRATCH, RCX);
    emit_byte(&cache_out, 0xb9); /* mov ecx, 0 */
    emit_u32(&cache_out, 0);
    emit_byte(&cache_out, 0xf2); /* crc32 rcx, scratch */
    emit_byte(&cache_out, 0x48u | (unsigned)(scratch >> 3));
    emit_byte(&cache_out, 0x0f);
    emit_byte(&cache_out, 0x38);
    emit_byte(&cache_out, 0xf1);
    emit_byte(&cache_out, 0xc8u | (unsigned)(scratch & 7));
    emit_bytes(&cache_out, index, sizeof index);
    emit_byte(&cache_out, 0x65); /* mov cursor, gs:[rcx * 8 + code] */
    emit_address(&cache_out, 0x8b, cursor, NO_REG, RCX, 8, T_TARGETS + 8, 0);
    emit_byte(&cache_out, 0x65); /* mov rcx, gs:[rcx * 8 + key] */
    emit_address(&cache_out, 0x8b, RCX, NO_REG, RCX, 8, T_TARGETS, 0);
    emit_address(&cache_out, 0x8d, RCX, RCX, scratch, 1, 0, 0);
    emit_byte(&cache_out, 0xe3); /* jrcxz hit */
    uint8_t *hit = cache_out.at;
    emit_byte(&cache_out, 0);
    emit_gs_store(&cache_out, T_INDIRECT, scratch);
    emit_gs_load(&cache_out, RCX, T_SCRATCH);
    emit_gs_load(&cache_out, scratch, T_SPILL_A);
    emit_gs_load(&cache_out, cursor, T_SPILL_B);
    struct exit *x = cache_emit_exit(&cache_out, EXIT_INDIRECT, d->pc, 0);
    x->insn = (uint16_t)insn;
    x->popped_bytes = popped_bytes;
    *hit = (uint8_t)(cache_out.at - hit - 1);
    emit_gs_store(&cache_out, T_JUMP_TO, cursor);
    emit_gs_load(&cache_out, RCX, T_SCRATCH);
    emit_gs_load(&cache_out, scratch, T_SPILL_A);
    emit_gs_load(&cache_out, cursor, T_SPILL_B);
    emit_gs_jump(&cache_out, T_JUMP_TO);
}

static const int8_t any_order[] = {R11, R10, R15, R14, R9, R8, R13, R12, RBP, RBX, RAX, RDX, RSI, RDI};
static const int8_t low_order[] = {RBP, RBX, RAX, RDX, RSI, RDI};

/* A register not in `used`; -1: none. */
static int pick(unsigned used, int low)
{
    const int8_t *order = low ? low_order : any_order;
    unsigned n = low ? sizeof low_order : sizeof any_order;
    for (unsigned i = 0; i < n; i++)
        if (!(used >> order[i] & 1))
            return order[i];
    return NO_REG;
}

/* Chooses two registers for the block, those of the hint if possible. 0: there are none. */
static int pick_pair(unsigned used, int low, int hint_scratch, int hint_cursor, int *scratch, int *cursor)
{
    *cursor = hint_cursor >= 0 && !(used >> hint_cursor & 1) ? hint_cursor : NO_REG;
    *scratch = hint_scratch >= 0 && !(used >> hint_scratch & 1) && (!low || hint_scratch < 8) ? hint_scratch
                                                                                              : NO_REG;
    if (*scratch < 0)
        *scratch = pick(used | (*cursor >= 0 ? 1u << *cursor : 0), low);
    if (*scratch < 0 && *cursor >= 0) { /* the cursor took the only suitable one */
        *cursor = NO_REG;
        *scratch = pick(used, low);
    }
    if (*scratch < 0)
        return 0;
    if (*cursor < 0)
        *cursor = pick(used | 1u << *scratch, 0);
    return *cursor >= 0;
}

#define ALWAYS_USED (1u << RSP | 1u << RCX)

int translate_init(void)
{
    insns = own_map(NULL, sizeof *insns * (BLOCK_INSNS + 1), OWN_DATA);
    return insns ? 0 : -1;
}

/* Decodes a block at pc into insns[], returns their number. *last: the last instruction ends the block by
 * itself; *low_out: one of the registers to borrow must be a low one. */
static unsigned decode_block(uint64_t pc, int *last, unsigned *used_out, int *low_out)
{
    unsigned used = ALWAYS_USED, n = 0, estimate = 0;
    int low = 0, scratch, cursor;
    uint64_t stop = rseq_next(pc);
    *last = 0;
    source_begin(&source, pc);
    while (n < BLOCK_INSNS && pc + source.taken < stop) {
        struct insn *d = &insns[n];
        if (!source_decode(&source, d))
            break;
        source_find_sequence(d, pc, &stop);
        unsigned more = used | d->reads | d->writes;
        int needs_low = low || d->rip_operand >= 0;
        if (!insn_is_native(d) && !pick_pair(more, needs_low, NO_REG, NO_REG, &scratch, &cursor)) {
            if (n)
                break; /* a new block can borrow other registers */
            d->class = INSN_STEP;
        }
        if (d->class != INSN_PLAIN && d->class != INSN_REP) {
            if (!insn_is_native(d))
                used = more, low = needs_low;
            *last = 1;
            n++;
            break;
        }
        used = more;
        low = needs_low;
        n++;
        if (source_take(&source, d))
            break;
        if ((estimate += 3) > BLOCK_REFS)
            break;
    }
    *used_out = used;
    *low_out = low;
    return n;
}

static struct wire_block *template_at(uint64_t offset)
{
    return (struct wire_block *)(void *)(slot + session->template_offset + offset);
}

static int is_published(const struct wire_block *as, const struct wire_block *b)
{
    return as->pc == b->pc && as->nwords == b->nwords && as->nrefs == b->nrefs && as->ninsns == b->ninsns &&
           as->loads == b->loads && as->stores == b->stores && as->special == b->special &&
           as->module == b->module && as->ends == b->ends && as->bytes == b->bytes &&
           __builtin_memcmp(as->refs, template.refs, b->nrefs * sizeof(struct wire_ref)) == 0;
}

/* The entry of an id for the block, if the template of one says the same (*found), or else an empty one.
 * NULL: there is none near by. */
static uint32_t *find_id(const struct wire_block *b, int *found)
{
    *found = 0;
    for (uint32_t i = 0; i < ID_PROBES; i++) {
        uint32_t *id = &ids[(cache_hash(b->pc) + i) & (ids_size - 1)];
        if (!*id)
            return id;
        uint32_t offset = proc->block_offset[*id];
        *found = offset && is_published(template_at(offset), b); /* 0: the parent's, before a fork */
        if (*found)
            return id;
    }
    return NULL;
}

static void grow_ids(void)
{
    sys3(SYS_madvise, ids, ids_size * sizeof *ids, MADV_DONTNEED);
    ids_size *= 2;
    for (uint32_t id = 1; id < next_id; id++)
        if (proc->block_offset[id]) {
            uint32_t h = cache_hash(template_at(proc->block_offset[id])->pc), i = 0;
            while (i < ID_PROBES && ids[(h + i) & (ids_size - 1)])
                i++;
            if (i < ID_PROBES)
                ids[(h + i) & (ids_size - 1)] = id;
        }
}

/* Writes the block's template to the template area, unless the same one is there. Returns its id; 0: there is
 * no room, and never will be. */
static uint32_t publish(uint64_t pc, unsigned ninsns, int records, enum wire_block_end ends, uint32_t bytes)
{
    struct wire_block b = {.pc = pc,
                           .nwords = (uint16_t)(records ? template.slots : 0),
                           .nrefs = (uint16_t) template.nrefs,
                           .ninsns = (uint16_t)ninsns,
                           .loads = (uint16_t) template.loads,
                           .stores = (uint16_t) template.stores,
                           .special = (uint16_t) template.special,
                           .module = region_module(pc),
                           .ends = ends,
                           .bytes = bytes};
    if (!ids)
        ids = own_map(NULL, CACHE_HASH_SIZE * sizeof *ids, OWN_DATA);
    if (ids && next_id >= ids_size / 2 && ids_size < CACHE_HASH_SIZE)
        grow_ids();
    int found = 0;
    uint32_t *place = ids ? find_id(&b, &found) : NULL;
    if (found)
        return *place;
    size_t size = sizeof b + template.nrefs * sizeof(struct wire_ref);
    uint64_t at = (proc->template_used + 7) & ~7ull;
    if (next_id >= WIRE_MAX_BLOCKS || at + size > session->template_bytes) {
        templates_full = 1;
        return 0;
    }
    *template_at(at) = b;
    __builtin_memcpy(template_at(at)->refs, template.refs, template.nrefs * sizeof(struct wire_ref));
    __atomic_store_n(&proc->template_used, at + size, __ATOMIC_RELEASE);
    /* Offset 0 means none: the first template lies at 8. */
    __atomic_store_n(&proc->block_offset[next_id], (uint32_t)at, __ATOMIC_RELEASE);
    if (place)
        *place = next_id;
    return next_id++;
}

int arch_templates_full(void)
{
    return templates_full;
}

static unsigned add_place(unsigned n, const struct block *b, uint64_t pc, unsigned insn)
{
    places[n] = (struct place){.code_offset = (uint16_t)(cache_out.at - b->code),
                               .pc_offset = (uint16_t)(pc - b->pc),
                               .insn = (uint16_t)insn};
    return n + 1;
}

static void emit_advance(int cursor, int32_t advance)
{
    if (advance)
        emit_lea(&cache_out, cursor, cursor, advance);
}

/* The instruction only has a short form: it jumps over a jump. */
static void emit_counted(const struct insn *d, uint64_t target, uint64_t next, int scratch, int cursor,
                         int32_t advance)
{
    emit_advance(cursor, advance);
    emit_bytes(&cache_out, d->bytes, d->in.length);
    uint8_t *from = cache_out.at;
    uint8_t *other = emit_jump(&cache_out);
    from[-1] = (uint8_t)(cache_out.at - from);
    uint8_t *jump = emit_jump(&cache_out);
    emit_link(jump, target, scratch, cursor);
    emit_link(other, next, scratch, cursor);
}

/* Leaves translated code at an instruction that is not executed there. A system call is the exception: once
 * the agent has seen it, it may be executed right here, and the next block follows. */
static void emit_exit(const struct insn *d, int scratch, int cursor, int records, int32_t advance)
{
    if (records) {
        emit_advance(cursor, advance);
        emit_restore_pair(&cache_out, scratch, cursor);
    }
    struct exit *x = cache_emit_exit(&cache_out,
                                     d->class == INSN_SYSCALL ? EXIT_SYSCALL
                                     : d->class == INSN_STEP  ? EXIT_STEP
                                                              : EXIT_END,
                                     d->pc, 0);
    x->detail = (uint16_t)d->in.mnemonic;
    if (d->class == INSN_SYSCALL) {
        uint64_t next = d->pc + d->in.length;
        x->block = cache_next();
        x->resume = cache_out.at;
        emit_bytes(&cache_out, d->bytes, d->in.length);
        x->after = cache_out.at;
        emit_move_imm(&cache_out, RCX, next);
        emit_link(NULL, next, NO_REG, NO_REG);
    }
}

/* Emits the end of a block whose last instruction is d; `advance`: what it adds to the cursor. */
static void emit_terminator(const struct insn *d, unsigned insn, int scratch, int cursor, int records,
                            int32_t advance)
{
    uint64_t next = d->pc + d->in.length;
    uint64_t target = source_branch_target(d);
    int32_t popped;
    uint8_t *jump, *other;
    switch (d->class) {
    case INSN_JUMP:
        emit_advance(cursor, advance);
        jump = emit_jump(&cache_out);
        emit_link(jump, target, scratch, cursor);
        break;
    case INSN_CALL:
        emit_move_imm(&cache_out, scratch, next);
        emit_push(&cache_out, scratch);
        emit_advance(cursor, advance);
        jump = emit_jump(&cache_out);
        emit_link(jump, target, scratch, cursor);
        break;
    case INSN_CONDITIONAL:
        emit_advance(cursor, advance);
        jump = emit_jcc(&cache_out, d->in.opcode & 15u);
        other = emit_jump(&cache_out);
        emit_link(jump, target, scratch, cursor);
        emit_link(other, next, scratch, cursor);
        break;
    case INSN_COUNTED:
        emit_counted(d, target, next, scratch, cursor, advance);
        break;
    case INSN_CALL_INDIRECT:
        source_load_target(&cache_out, d, scratch);
        emit_gs_store(&cache_out, T_INDIRECT, scratch);
        emit_move_imm(&cache_out, scratch, next);
        emit_push(&cache_out, scratch);
        emit_gs_load(&cache_out, scratch, T_INDIRECT);
        emit_advance(cursor, advance);
        emit_indirect(d, insn, -8, scratch, cursor);
        break;
    case INSN_JUMP_INDIRECT:
        source_load_target(&cache_out, d, scratch);
        emit_advance(cursor, advance);
        emit_indirect(d, insn, 0, scratch, cursor);
        break;
    case INSN_RETURN:
        popped = d->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? (int32_t)d->op[0].imm.value.u : 0;
        emit_pop(&cache_out, scratch);
        if (popped)
            emit_lea(&cache_out, RSP, RSP, popped);
        emit_advance(cursor, advance);
        emit_indirect(d, insn, 8 + popped, scratch, cursor);
        break;
    default:
        emit_exit(d, scratch, cursor, records, advance);
        break;
    }
}

static struct block *not_translated(struct thread *t, enum wire_end why, uint32_t detail)
{
    t->translation.leave_end = why;
    t->translation.leave_detail = detail;
    return NULL;
}

/* Whether a block can begin there; if not, t->translation.leave_end says why. */
static int translate_possible(struct thread *t, uint64_t pc)
{
    if (!region_may_translate(pc))
        return not_translated(t, WIRE_END_CODE, 0) != NULL;
    if (rseq_learn(arch_thread_pointer()))
        regions_mark_stale(); /* the beginning of the sequence may have been translated */
    if (rseq_inside(pc, &t->translation.abort_pc))
        return not_translated(t, WIRE_END_SEQUENCE, 0) != NULL;
    if (!cache_has_room())
        return not_translated(t, WIRE_END_SPACE, 0) != NULL;
    return 1;
}

static enum wire_block_end block_end(const struct insn *last)
{
    return last->class == INSN_CALL || last->class == INSN_CALL_INDIRECT ? WIRE_BLOCK_CALL
           : last->class == INSN_RETURN                                  ? WIRE_BLOCK_RETURN
                                                                         : WIRE_BLOCK_OTHER;
}

/* A block in the making: its instructions are insns[0..n). */
struct making {
    struct block *block;
    uint64_t pc;
    unsigned n;
    const struct insn *end; /* ends the block; NULL: it goes on with what follows */
    int scratch, cursor;    /* NO_REG: it records nothing */
    int is_agent_code;      /* nothing of it is the target's */
    unsigned count;         /* instructions so far */
    unsigned nplaces;
    enum wire_block_end ends;
};

/* Saves the registers that the code needs. Returns where the record's first word is to be, in the code. */
static uint8_t *emit_beginning(const struct making *m)
{
    struct block *b = m->block;
    b->scratch = (int8_t)m->scratch;
    b->cursor = (int8_t)m->cursor;
    emit_gs_store(&cache_out, T_SPILL_A, m->scratch);
    emit_gs_store(&cache_out, T_SPILL_B, m->cursor);
    emit_gs_load(&cache_out, m->cursor, T_CURSOR);
    b->fast = cache_out.at;
    if (source.may_change)
        emit_source_check(b, b->source_bytes);
    emit_store_imm(&cache_out, m->cursor, 0, 0);
    return cache_out.at - 4;
}

static void emit_record(const struct making *m, unsigned i)
{
    const struct insn *d = &insns[i];
    if (m->block->filtered)
        filter_emit(&cache_out, i, m->scratch, m->cursor);
    else if (m->is_agent_code && d->class == INSN_RETURN)
        template_record_return(&template);
    else if (!insn_is_native(d) && !m->is_agent_code)
        template_record(&template, d, i, (uint32_t)(d->pc - m->pc));
}

static void emit_end(struct making *m, unsigned i)
{
    const struct insn *d = m->end;
    emit_terminator(d, i, m->scratch, m->cursor, m->scratch != NO_REG,
                    m->block->filtered ? 0 : 8 * template.slots);
    m->count += !insn_is_native(d);
    if (!m->is_agent_code || d->class == INSN_RETURN) /* the stores of its calls are not recorded */
        m->ends = block_end(d);
}

/* The instructions, each after what records it. NULL, or the one that cannot be translated. */
static const struct insn *emit_insns(struct making *m)
{
    for (unsigned i = 0; i < m->n; i++) {
        const struct insn *d = &insns[i];
        uint64_t next = d->pc + d->in.length;
        m->nplaces = add_place(m->nplaces, m->block, d->pc, i);
        emit_record(m, i);
        if (d == m->end) {
            emit_end(m, i);
            return NULL;
        }
        if (source_copy(&cache_out, d, m->scratch))
            return d;
        m->count++;
        if (d->class == INSN_REP) {
            m->nplaces = add_place(m->nplaces, m->block, next, i + 1);
            if (!m->is_agent_code)
                template_record_after(&template);
        }
        if (!m->block->filtered)
            template_follow(&template, d);
        if (i + 1 == m->n || template_full(&template)) {
            m->nplaces = add_place(m->nplaces, m->block, next, i + 1);
            emit_advance(m->cursor, m->block->filtered ? 0 : 8 * template.slots);
            uint8_t *jump = emit_jump(&cache_out);
            emit_link(jump, next, m->scratch, m->cursor);
            return NULL;
        }
    }
    return NULL;
}

/* Makes the block. NULL: not possible. */
static struct block *make(struct thread *t, uint64_t pc, int hint_scratch, int hint_cursor)
{
    struct making m = {.pc = pc, .scratch = NO_REG, .cursor = NO_REG, .ends = WIRE_BLOCK_OTHER};
    int last, low;
    unsigned used;
    m.n = decode_block(pc, &last, &used, &low);
    if (m.n == 0)
        return not_translated(t, WIRE_END_CODE, 0);
    struct block *b = m.block = cache_next();
    uint8_t *begin = (uint8_t *)(((uintptr_t)cache_out.at + 15) & ~(uintptr_t)15), *header = NULL;
    cache_out.at = begin;
    *b = (struct block){.pc = pc, .code = begin, .scratch = -1, .cursor = -1};
    b->source_bytes = (uint16_t)(insns[m.n - 1].pc + insns[m.n - 1].in.length - pc);
    m.end = last ? &insns[m.n - 1] : NULL;
    int records = !(m.n == 1 && m.end && insn_is_native(m.end));
    if (records) {
        if (!pick_pair(used, low, hint_scratch, hint_cursor, &m.scratch, &m.cursor))
            return not_translated(t, WIRE_END_INSTRUCTION, insns[0].in.mnemonic);
        header = emit_beginning(&m);
    }
    m.is_agent_code = region_is_agent(pc);
    if (records && session->filters && filter_plan(&template, insns, m.is_agent_code ? 0 : m.n, pc)) {
        b->filtered = (uint16_t)(cache_out.at - b->code);
        emit_lea(&cache_out, m.cursor, m.cursor, 8);
    } else {
        template_init(&template, &cache_out, m.scratch, m.cursor);
    }
    m.nplaces = add_place(m.nplaces, b, pc, 0);
    const struct insn *untranslatable = emit_insns(&m);
    if (untranslatable != NULL) {
        cache_out.at = begin;
        return not_translated(t, WIRE_END_INSTRUCTION, untranslatable->in.mnemonic);
    }
    uint32_t id = publish(pc, m.is_agent_code ? 0 : m.count, records, m.ends, b->source_bytes);
    if (!id) {
        cache_out.at = begin;
        return not_translated(t, WIRE_END_SPACE, 0);
    }
    if (header) {
        uint32_t word = id | (uint32_t) template.slots << WIRE_ID_BITS;
        word |= session->filters ? (uint32_t)WIRE_FILTERED : 0;
        __builtin_memcpy(header, &word, 4);
    }
    count_add(&proc->count.insns, m.count);
    return cache_add(places, m.nplaces);
}

struct block *translate_block(struct thread *t, uint64_t pc, int hint_scratch, int hint_cursor)
{
    struct block *b = cache_find(pc, t->translation.counts);
    if (b)
        return b;
    if (!translate_possible(t, pc))
        return NULL;
    uint32_t before = cache_blocks();
    int timed = before % TIME_EVERY == 0;
    uint64_t began = timed ? sys_clock_ns(CLOCK_MONOTONIC) : 0;
    b = t->translation.counts ? count_block(t, pc) : make(t, pc, hint_scratch, hint_cursor);
    uint32_t made = cache_blocks() - before;
    count_add(&proc->count.blocks, made);
    if (timed)
        count_add(&proc->count.translate_ns, TIME_EVERY * (sys_clock_ns(CLOCK_MONOTONIC) - began));
    return b;
}

struct block *translate_again(struct thread *t, const struct exit *x)
{
    struct block *b = cache_find(x->target, x->counts);
    if (b == x->block) /* otherwise another thread was first */
        b->stale = 1;  /* its code stays, and its check always fails */
    return translate_block(t, x->target, x->scratch, x->cursor);
}

uint64_t arch_translate(struct thread *t, uint64_t pc)
{
    arch_lock();
    struct block *b = translate_block(t, pc, NO_REG, NO_REG);
    arch_unlock();
    return b ? (uint64_t)b->code : 0;
}
