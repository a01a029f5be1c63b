/* SPDX-License-Identifier: Apache-2.0 */
/* See translate.h. */
#include "agent/arch/x86_64/translate.h"
#include "agent/arch/x86_64/check.h"
#include "agent/arch/x86_64/count.h"
#include "agent/arch/x86_64/template.h"
#include "agent/sys.h"
#include <sys/mman.h>
#include <time.h>

#define MAX_BLOCKS (WIRE_MAX_BLOCKS * 3u / 2) /* the counting ones have no id that the collector knows */
#define MAX_EXITS (2u * WIRE_MAX_BLOCKS)
#define HASH_SIZE (2u * WIRE_MAX_BLOCKS)
#define BLOCK_CODE_MAX 8192 /* more than any block can take */

static uint8_t *cache, *cache_end, *arena, *arena_end;
static uint8_t *arena_at, *leave_gate, *miss;
static struct emitter out;
static struct emitter cold; /* counting blocks: code that runs once or seldom, to keep the other dense */
static uint8_t *cold_start;
static struct block *blocks;
static struct exit *exits;
static uint32_t *hash;
static uint32_t nblocks, nexits;
static uint32_t next_id = 1; /* of a recording block: never used again */
static uint64_t generation = 1;
static int lock;

/* Work space of the translator, used under the lock. */
static struct insn insns[BLOCK_INSNS + 1];
static struct template template;
static struct place places[2 * BLOCK_INSNS + 8];
static uint8_t window[BLOCK_INSNS * 15 + 32];
static uint8_t unused[1024]; /* where what records goes while a counting block is made */
static int counts;           /* the block being made only counts */
static int idles;            /* it may close a loop without references */

void translate_lock(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        sys0(SYS_sched_yield);
}
void translate_unlock(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}
uint8_t *translate_leave_gate(void)
{
    return leave_gate;
}
uint64_t arch_generation(void)
{
    return generation;
}
int arch_in_cache(uint64_t pc)
{
    return pc >= (uint64_t)cache && pc < (uint64_t)cache_end;
}
struct exit *translate_exit(uint64_t id)
{
    return id < nexits ? &exits[id] : NULL;
}

static void start_cache(void)
{
    out.at = cache;
    leave_gate = cache;
    emit_byte(&out, 0xf4); /* hlt: a fault in user mode, the cheapest in a virtual machine */
    out.at = miss = cache + 64;
    emit_count_miss(&out);
    cold.at = cold_start = cache + CODE_CACHE_BYTES / 4 * 3;
    arena_at = arena;
    nexits = nblocks = 1;
}

int translate_init(int bmi2)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, rw = PROT_READ | PROT_WRITE;
    cache = sys_map(NULL, CODE_CACHE_BYTES, rw | PROT_EXEC, flags);
    arena = sys_map(NULL, ARENA_BYTES, rw, flags);
    blocks = sys_map(NULL, sizeof *blocks * MAX_BLOCKS, rw, flags);
    exits = sys_map(NULL, sizeof *exits * MAX_EXITS, rw, flags);
    hash = sys_map(NULL, sizeof *hash * HASH_SIZE, rw, flags);
    if (!cache || !arena || !blocks || !exits || !hash)
        return -1;
    cache_end = cache + CODE_CACHE_BYTES;
    arena_end = arena + ARENA_BYTES;
    start_cache();
    insn_init(bmi2);
    return 0;
}

void arch_flush(void)
{
    /* The memory comes back zeroed. */
    sys3(SYS_madvise, hash, sizeof *hash * HASH_SIZE, MADV_DONTNEED);
    generation++;
    start_cache();
    count_add(&proc->count.flushes, 1);
}

void arch_forked(void)
{
    lock = 0;
    arch_flush();
}

static uint32_t hash_of(uint64_t pc)
{
    return (uint32_t)(pc * 0x9e3779b97f4a7c15ull >> 45) & (HASH_SIZE - 1);
}

static struct block *find(uint64_t pc, int counting)
{
    for (uint32_t h = hash_of(pc); hash[h]; h = (h + 1) & (HASH_SIZE - 1))
        if (blocks[hash[h]].pc == pc && blocks[hash[h]].counts == counting && !blocks[hash[h]].stale)
            return &blocks[hash[h]];
    return NULL;
}

struct block *translate_find_code(uint64_t address)
{
    uint8_t *at = (uint8_t *)address;
    uint32_t low = 1, high = nblocks;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct block *b = &blocks[middle];
        if (at < b->code)
            high = middle;
        else if (at >= b->code + b->code_bytes)
            low = middle + 1;
        else
            return b;
    }
    return NULL;
}

void translate_link(struct exit *x)
{
    struct block *b = find(x->target, x->counts);
    if (!b || !x->patch)
        return;
    emit_patch(x->patch, b->code);
    if (x->fast_patch && b->fast && b->scratch == x->scratch && b->cursor == x->cursor)
        emit_patch(x->fast_patch, b->fast);
}

uint8_t *translate_miss(void)
{
    return miss;
}

uint8_t *translate_landing(struct block *b)
{
    if (!b->landing && out.at + COUNT_LANDING_BYTES < cold_start) {
        b->landing = out.at;
        emit_count_landing(&out, b, miss);
    }
    return b->landing;
}

static struct exit *new_exit(enum exit_kind kind, uint64_t target)
{
    struct exit *x = &exits[nexits++];
    *x = (struct exit){
        .target = target, .kind = (uint8_t)kind, .counts = (uint8_t)counts, .scratch = -1, .cursor = -1};
    return x;
}

static struct exit *emit_exit(struct emitter *e, enum exit_kind kind, uint64_t target)
{
    struct exit *x = new_exit(kind, target);
    emit_gs_imm(e, T_EXIT_ID, (uint32_t)(x - exits));
    emit_gs_jump(e, T_DISPATCH);
    return x;
}

static void emit_give_back(struct emitter *e, int scratch, int cursor)
{
    emit_gs_store(e, T_CURSOR, cursor);
    emit_gs_load(e, scratch, T_SPILL_A);
    emit_gs_load(e, cursor, T_SPILL_B);
}

/* In front of a block whose source may change. */
static void emit_source_check(struct block *b, unsigned bytes)
{
    uint8_t *ok;
    emit_check(&out, b->scratch, b->pc, window, bytes, &ok);
    emit_give_back(&out, b->scratch, b->cursor);
    struct exit *x = emit_exit(&out, EXIT_STALE, b->pc);
    x->scratch = b->scratch;
    x->cursor = b->cursor;
    x->block = b;
    emit_check_end(&out, ok);
    b->check_end = (uint16_t)(out.at - b->code);
}

/* Where the jump at fast_patch (NULL: none) goes until the target is known, and if its pair differs. */
static struct exit *emit_link(uint8_t *fast_patch, uint64_t target, int scratch, int cursor)
{
    struct emitter *e = counts && fast_patch ? &cold : &out;
    if (fast_patch)
        emit_patch(fast_patch, e->at);
    if (scratch >= 0)
        emit_give_back(e, scratch, cursor);
    uint8_t *patch = emit_jump(e);
    emit_patch(patch, e->at);
    struct exit *x = emit_exit(e, EXIT_LINK, target);
    x->patch = patch;
    x->fast_patch = fast_patch;
    x->scratch = (int8_t)scratch;
    x->cursor = (int8_t)cursor;
    translate_link(x);
    return x;
}

/* The target's address is in `scratch`; the cursor stands behind the record. Looks the translation up
 * in the thread's table for this kind of block, keyed by the negated address, without touching flags: crc32
 * as the hash, lea to compare, jrcxz to branch. */
static void emit_indirect(const struct insn *d, unsigned insn, int popped_bytes, int scratch, int cursor)
{
    static const uint8_t index[] = {0x0f, 0xb7, 0xc9 /* movzx ecx, cx */, 0x48, 0x8d,
                                    0x0c, 0x09 /* lea rcx, [rcx+rcx] */};
    if (counts) {
        struct exit *x = new_exit(EXIT_INDIRECT, d->pc);
        x->insn = (uint16_t)insn;
        x->popped_bytes = popped_bytes;
        emit_count_indirect(&out, (uint32_t)(x - exits), scratch, cursor);
        return;
    }
    emit_gs_store(&out, T_CURSOR, cursor);
    emit_gs_store(&out, T_SCRATCH, RCX);
    emit_byte(&out, 0xb9); /* mov ecx, 0 */
    emit_u32(&out, 0);
    emit_byte(&out, 0xf2); /* crc32 rcx, scratch */
    emit_byte(&out, 0x48u | (unsigned)(scratch >> 3));
    emit_byte(&out, 0x0f);
    emit_byte(&out, 0x38);
    emit_byte(&out, 0xf1);
    emit_byte(&out, 0xc8u | (unsigned)(scratch & 7));
    emit_bytes(&out, index, sizeof index);
    emit_byte(&out, 0x65); /* mov cursor, gs:[rcx * 8 + code] */
    emit_address(&out, 0x8b, cursor, NO_REG, RCX, 8, T_TARGETS + 8, 0);
    emit_byte(&out, 0x65); /* mov rcx, gs:[rcx * 8 + key] */
    emit_address(&out, 0x8b, RCX, NO_REG, RCX, 8, T_TARGETS, 0);
    emit_address(&out, 0x8d, RCX, RCX, scratch, 1, 0, 0);
    emit_byte(&out, 0xe3); /* jrcxz hit */
    uint8_t *hit = out.at;
    emit_byte(&out, 0);
    emit_gs_store(&out, T_INDIRECT, scratch);
    emit_gs_load(&out, RCX, T_SCRATCH);
    emit_gs_load(&out, scratch, T_SPILL_A);
    emit_gs_load(&out, cursor, T_SPILL_B);
    struct exit *x = emit_exit(&out, EXIT_INDIRECT, d->pc);
    x->insn = (uint16_t)insn;
    x->popped_bytes = popped_bytes;
    *hit = (uint8_t)(out.at - hit - 1);
    emit_gs_store(&out, T_JUMP_TO, cursor);
    emit_gs_load(&out, RCX, T_SCRATCH);
    emit_gs_load(&out, scratch, T_SPILL_A);
    emit_gs_load(&out, cursor, T_SPILL_B);
    emit_gs_jump(&out, T_JUMP_TO);
}

/* mov scratch, <operand>: the target of an indirect call or jump */
static void emit_load_target(const struct insn *d, int scratch)
{
    const ZydisDecodedOperand *o = &d->op[0];
    if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        emit_move(&out, scratch, insn_register(o->reg.value));
        return;
    }
    int64_t disp = o->mem.disp.has_displacement ? o->mem.disp.value : 0;
    if (o->mem.base == ZYDIS_REGISTER_RIP) {
        emit_move_imm(&out, scratch, d->pc + d->in.length + (uint64_t)disp);
        emit_load(&out, scratch, scratch, 0);
        return;
    }
    if (o->mem.segment == ZYDIS_REGISTER_FS)
        emit_byte(&out, 0x64);
    emit_address(&out, 0x8b, scratch, insn_register(o->mem.base), insn_register(o->mem.index), o->mem.scale,
                 (int32_t)disp, d->in.address_width == 32);
}

/* The bit that makes the base register one of r8 to r15; beside [rip + disp32] it may be either. */
static void clear_base_extension(const struct insn *d, uint8_t *copy)
{
    switch (d->in.encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_LEGACY:
        if (d->in.attributes & ZYDIS_ATTRIB_HAS_REX)
            copy[d->in.raw.rex.offset] &= 0xfe;
        break;
    case ZYDIS_INSTRUCTION_ENCODING_VEX: /* from here on the bit is inverted */
        if (d->in.raw.vex.size == 3)
            copy[d->in.raw.vex.offset + 1] |= 0x20;
        break;
    case ZYDIS_INSTRUCTION_ENCODING_EVEX:
        copy[d->in.raw.evex.offset + 1] |= 0x20;
        break;
    case ZYDIS_INSTRUCTION_ENCODING_XOP:
        copy[d->in.raw.xop.offset + 1] |= 0x20;
        break;
    default:
        break;
    }
}

/* Copies an instruction, setting a RIP-relative operand right for its new place. */
static int emit_copy(const struct insn *d, int scratch)
{
    uint8_t *start = out.at;
    if (d->rip_operand < 0) {
        emit_bytes(&out, d->bytes, d->in.length);
        return 0;
    }
    uint64_t address = d->pc + d->in.length + (uint64_t)d->op[d->rip_operand].mem.disp.value;
    if (d->in.mnemonic == ZYDIS_MNEMONIC_LEA && d->in.operand_width == 64 && d->in.address_width == 64) {
        emit_move_imm(&out, insn_register(d->op[0].reg.value), address);
        return 0;
    }
    int64_t relative = (int64_t)(address - (uint64_t)(start + d->in.length));
    if (relative == (int32_t)relative) {
        emit_bytes(&out, d->bytes, d->in.length);
        int32_t r32 = (int32_t)relative;
        __builtin_memcpy(start + d->in.raw.disp.offset, &r32, 4);
        return 0;
    }
    /* Too far: [rip + disp32] becomes [scratch + 0], of the same length as the scratch is a low one. */
    emit_move_imm(&out, scratch, address);
    start = out.at;
    emit_bytes(&out, d->bytes, d->in.length);
    start[d->in.raw.modrm.offset] = (uint8_t)((start[d->in.raw.modrm.offset] & 0x38) | 0x80 | scratch);
    clear_base_extension(d, start);
    __builtin_memset(start + d->in.raw.disp.offset, 0, 4);
    static struct insn check;
    insn_decode(&check, start, d->in.length, (uint64_t)start);
    if (check.in.length != d->in.length || check.in.mnemonic != d->in.mnemonic ||
        insn_register(check.op[d->rip_operand].mem.base) != scratch)
        return -1;
    return 0;
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

/* Two registers for the block, those of the hint where they will do. 0: there are none. */
static int pick_pair(unsigned used, int low, int hint_scratch, int hint_cursor, int *scratch, int *cursor)
{
    *cursor = hint_cursor >= 0 && !(used >> hint_cursor & 1) ? hint_cursor : NO_REG;
    *scratch = hint_scratch >= 0 && !(used >> hint_scratch & 1) && (!low || hint_scratch < 8) ? hint_scratch
                                                                                              : NO_REG;
    if (*scratch < 0)
        *scratch = pick(used | (*cursor >= 0 ? 1u << *cursor : 0), low);
    if (*scratch < 0 && *cursor >= 0) { /* the cursor took the last one that would do */
        *cursor = NO_REG;
        *scratch = pick(used, low);
    }
    if (*scratch < 0)
        return 0;
    if (*cursor < 0)
        *cursor = pick(used | 1u << *scratch, 0);
    return *cursor >= 0;
}

/* Registers of a counting block. */
struct borrowed {
    int scratch, cursor, extra;
};

/*
 * Counting blocks are so cheap that giving back registers and borrowing others is what costs most: all borrow
 * the same two, those that compilers use least, where they can, whatever the block before has; and what an
 * operand out of reach needs (`far`) is a register of the block's own. 0: there are none.
 */
static int pick_counting(unsigned used, int far, int hint_scratch, int hint_cursor, struct borrowed *b)
{
    if (!pick_pair(used, 0, hint_scratch, hint_cursor, &b->scratch, &b->cursor))
        return 0;
    b->extra = far ? pick(used | 1u << b->scratch | 1u << b->cursor, 1) : NO_REG;
    return !far || b->extra >= 0;
}

/* Whether a copied instruction's RIP-relative operand can no longer be one. */
static int is_far(const struct insn *d)
{
    if (d->rip_operand < 0 || (d->class != INSN_PLAIN && d->class != INSN_REP) ||
        (d->in.mnemonic == ZYDIS_MNEMONIC_LEA && d->in.operand_width == 64 && d->in.address_width == 64))
        return 0;
    int64_t relative = (int64_t)(d->pc + (uint64_t)d->op[d->rip_operand].mem.disp.value - (uint64_t)out.at);
    return relative < INT32_MIN + BLOCK_CODE_MAX || relative > INT32_MAX - BLOCK_CODE_MAX;
}

static int pick_any(unsigned used, int low)
{
    struct borrowed b;
    int scratch, cursor;
    return counts ? pick_counting(used, low, NO_REG, NO_REG, &b)
                  : pick_pair(used, low, NO_REG, NO_REG, &scratch, &cursor);
}

#define ALWAYS_USED (1u << RSP | 1u << RCX)

/* Decodes a block at pc into insns[]; returns their number, *last: the last one ends the block by itself.
 * *low_out: one of the registers to borrow must be a low one, or for a counting block a third one. */
static unsigned decode_block(uint64_t pc, int *last, unsigned *used_out, int *low_out)
{
    unsigned used = ALWAYS_USED, n = 0, have = 0, taken = 0, estimate = 0;
    int low = 0;
    uint64_t stop = rseq_next(pc);
    int may_change = region_may_change(pc);
    *last = 0;
    while (n < BLOCK_INSNS && pc + taken < stop) {
        if (have - taken < 15) {
            /* Page by page, since the next one may not be there. */
            unsigned want = 64;
            if (have + want > sizeof window)
                break;
            uint64_t from = pc + have;
            unsigned to_page = (unsigned)(4096 - (from & 4095));
            if (want > to_page)
                want = to_page;
            unsigned missing = (unsigned)safe_copy(window + have, (const void *)from, want);
            have += want - missing;
            if (!missing && have - taken < 15)
                continue;
        }
        struct insn *d = &insns[n];
        insn_decode(d, window + taken, have - taken < 15 ? have - taken : 15, pc + taken);
        unsigned more = used | d->reads | d->writes;
        int needs_low = low || (counts ? is_far(d) : d->rip_operand >= 0);
        if (d->class != INSN_STEP && d->class != INSN_END && d->class != INSN_SYSCALL &&
            !pick_any(more, needs_low)) {
            if (n)
                break; /* a new block finds other registers */
            d->class = INSN_STEP;
        }
        if (d->class != INSN_PLAIN && d->class != INSN_REP) {
            if (d->class != INSN_STEP && d->class != INSN_END && d->class != INSN_SYSCALL)
                used = more, low = needs_low;
            *last = 1;
            n++;
            break;
        }
        used = more;
        low = needs_low;
        taken += d->in.length;
        n++;
        if (may_change && insn_stores(d))
            break; /* perhaps into the code that follows: that is looked at next */
        if ((estimate += 3) > BLOCK_REFS)
            break;
    }
    *used_out = used;
    *low_out = low;
    return n;
}

static void *arena_take(size_t bytes)
{
    uint8_t *p = arena_at;
    arena_at += (bytes + 7) & ~(size_t)7;
    return p;
}

/* Writes the block's template where the collector sees it. */
static int publish(uint32_t id, uint64_t pc, unsigned ninsns, int records, const struct insn *end)
{
    size_t bytes = sizeof(struct wire_block) + template.nrefs * sizeof(struct wire_ref);
    uint64_t at = (proc->template_used + 7) & ~7ull;
    if (at + bytes > session->template_bytes)
        return -1;
    struct wire_block *b = (struct wire_block *)(void *)(slot + session->template_offset + at);
    *b = (struct wire_block){.pc = pc,
                             .nwords = (uint16_t)(records ? template.slots : 0),
                             .nrefs = (uint16_t) template.nrefs,
                             .ninsns = (uint16_t)ninsns,
                             .loads = (uint16_t) template.loads,
                             .stores = (uint16_t) template.stores,
                             .special = (uint16_t) template.special,
                             .module = region_module(pc),
                             .indirect =
                                 end && (end->class == INSN_CALL_INDIRECT ||
                                         end->class == INSN_JUMP_INDIRECT || end->class == INSN_RETURN)};
    __builtin_memcpy(b->refs, template.refs, template.nrefs * sizeof(struct wire_ref));
    __atomic_store_n(&proc->template_used, at + bytes, __ATOMIC_RELEASE);
    /* Offset 0 means none: the first template lies at 8. */
    __atomic_store_n(&proc->block_offset[id], (uint32_t)at, __ATOMIC_RELEASE);
    return 0;
}

static unsigned add_place(unsigned n, const struct block *b, uint64_t pc, unsigned insn)
{
    places[n] = (struct place){.code_offset = (uint16_t)(out.at - b->code),
                               .pc_offset = (uint16_t)(pc - b->pc),
                               .insn = (uint16_t)insn};
    return n + 1;
}

static void emit_advance(int cursor, int32_t advance)
{
    if (advance)
        emit_lea(&out, cursor, cursor, advance);
}

/* The end of a block whose last instruction is d; `advance`: what it adds to the cursor. */
static void emit_terminator(const struct insn *d, unsigned insn, int scratch, int cursor, int records,
                            int32_t advance)
{
    uint64_t next = d->pc + d->in.length;
    uint64_t target =
        next + (uint64_t)(d->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? d->op[0].imm.value.s : 0);
    int32_t popped;
    uint8_t *jump, *other;
    struct exit *x;
    switch (d->class) {
    case INSN_JUMP:
        emit_advance(cursor, advance);
        jump = emit_jump(&out);
        emit_link(jump, target, scratch, cursor);
        break;
    case INSN_CALL:
        emit_move_imm(&out, scratch, next);
        emit_push(&out, scratch);
        emit_advance(cursor, advance);
        jump = emit_jump(&out);
        emit_link(jump, target, scratch, cursor)->call = 1;
        break;
    case INSN_CONDITIONAL:
        emit_advance(cursor, advance);
        jump = emit_jcc(&out, d->in.opcode & 15u);
        if (idles) { /* only those that go round */
            emit_patch(jump, cold.at);
            emit_count_idle(&cold, scratch, cursor);
            jump = emit_jump(&cold);
        }
        other = emit_jump(&out);
        emit_link(jump, target, scratch, cursor);
        emit_link(other, next, scratch, cursor);
        break;
    case INSN_COUNTED:
        /* The instruction only has a short form: it jumps over a jump. */
        emit_advance(cursor, advance);
        emit_bytes(&out, d->bytes, d->in.length);
        {
            uint8_t *from = out.at;
            other = emit_jump(&out);
            from[-1] = (uint8_t)(out.at - from);
        }
        jump = emit_jump(&out);
        emit_link(jump, target, scratch, cursor);
        emit_link(other, next, scratch, cursor);
        break;
    case INSN_CALL_INDIRECT:
        emit_load_target(d, scratch);
        emit_gs_store(&out, T_INDIRECT, scratch);
        emit_move_imm(&out, scratch, next);
        emit_push(&out, scratch);
        emit_gs_load(&out, scratch, T_INDIRECT);
        emit_advance(cursor, advance);
        emit_indirect(d, insn, -8, scratch, cursor);
        break;
    case INSN_JUMP_INDIRECT:
        emit_load_target(d, scratch);
        emit_advance(cursor, advance);
        emit_indirect(d, insn, 0, scratch, cursor);
        break;
    case INSN_RETURN:
        popped = d->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? (int32_t)d->op[0].imm.value.u : 0;
        emit_pop(&out, scratch);
        if (popped)
            emit_lea(&out, RSP, RSP, popped);
        emit_advance(cursor, advance);
        emit_indirect(d, insn, 8 + popped, scratch, cursor);
        break;
    default:
        if (records) {
            emit_advance(cursor, advance);
            emit_give_back(&out, scratch, cursor);
        }
        x = emit_exit(&out,
                      d->class == INSN_SYSCALL ? EXIT_SYSCALL
                      : d->class == INSN_STEP  ? EXIT_STEP
                                               : EXIT_END,
                      d->pc);
        x->detail = (uint16_t)d->in.mnemonic;
        if (d->class == INSN_SYSCALL) {
            x->block = &blocks[nblocks]; /* the one that is being made */
            x->resume = out.at;
            emit_bytes(&out, d->bytes, d->in.length);
            x->after = out.at;
            emit_move_imm(&out, RCX, next);
            emit_link(NULL, next, NO_REG, NO_REG);
        }
        break;
    }
}

/* Whether every round of a loop that a block without references closes comes by a block with some: that is so
 * if the branch leads to the start of one. */
static int counted_elsewhere(const struct insn *end)
{
    if (end->op[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
        return 0;
    const struct block *b = find(end->pc + end->in.length + (uint64_t)end->op[0].imm.value.s, 1);
    return b && b->refs != 0;
}

static void emit_extra_back(const struct block *b)
{
    if (b->extra >= 0)
        emit_gs_load(&out, b->extra, T_SPILL_EXTRA);
}

static struct block *cannot(struct thread *t, enum wire_end why, uint32_t detail)
{
    t->leave_end = why;
    t->leave_detail = detail;
    return NULL;
}

struct block *translate_block(struct thread *t, uint64_t pc, int hint_scratch, int hint_cursor)
{
    struct block *b = find(pc, t->count.on);
    if (b)
        return b;
    if (!region_may_translate(pc))
        return cannot(t, WIRE_END_CODE, 0);
    if (rseq_learn((uint64_t)__builtin_thread_pointer()))
        regions_stale(); /* the beginning of the sequence may have been translated */
    if (rseq_inside(pc, &t->abort_pc))
        return cannot(t, WIRE_END_CODE, 0);
    counts = t->count.on;
    idles = 0;
    if (next_id + 1 >= WIRE_MAX_BLOCKS)
        return cannot(t, WIRE_END_SPACE, 0); /* for good: ids are not used again */
    if (out.at + BLOCK_CODE_MAX + COUNT_LANDING_BYTES > cold_start || cold.at + BLOCK_CODE_MAX > cache_end ||
        nblocks + 1 >= MAX_BLOCKS || nexits + 8 >= MAX_EXITS || arena_at + sizeof places > arena_end) {
        regions_stale(); /* the next burst starts with an empty cache */
        return cannot(t, WIRE_END_SPACE, 0);
    }

    int timed = nblocks % TIME_EVERY == 0;
    uint64_t began = timed ? sys_clock_ns(CLOCK_MONOTONIC) : 0;
    int last, low, scratch = NO_REG, cursor = NO_REG;
    unsigned used, n = decode_block(pc, &last, &used, &low), count = 0, nplaces = 0;
    if (n == 0)
        return cannot(t, WIRE_END_CODE, 0);
    b = &blocks[nblocks];
    uint8_t *begin = (uint8_t *)(((uintptr_t)out.at + 15) & ~(uintptr_t)15);
    out.at = begin;
    *b = (struct block){
        .pc = pc, .code = begin, .scratch = -1, .cursor = -1, .counts = (uint16_t)counts, .extra = -1};
    const struct insn *end = last ? &insns[n - 1] : NULL;
    int records =
        !(n == 1 && end && (end->class == INSN_STEP || end->class == INSN_END || end->class == INSN_SYSCALL));
    uint8_t *header = NULL;
    if (records) {
        struct borrowed picked;
        if (counts ? !pick_counting(used, low, hint_scratch, hint_cursor, &picked)
                   : !pick_pair(used, low, hint_scratch, hint_cursor, &scratch, &cursor))
            return cannot(t, WIRE_END_INSTRUCTION, insns[0].in.mnemonic);
        if (counts) {
            scratch = picked.scratch;
            cursor = picked.cursor;
            b->extra = (int8_t)picked.extra;
        }
        b->scratch = (int8_t)scratch;
        b->cursor = (int8_t)cursor;
        emit_gs_store(&out, T_SPILL_A, scratch);
        emit_gs_store(&out, T_SPILL_B, cursor);
        emit_gs_load(&out, cursor, T_CURSOR);
        b->fast = out.at;
        if (region_may_change(pc))
            emit_source_check(b, (unsigned)(insns[n - 1].pc + insns[n - 1].in.length - pc));
        if (!counts) {
            emit_store_imm(&out, cursor, 0, 0);
            header = out.at - 4;
        } else if (end && count_may_loop(end)) {
            b->probe = (uint16_t)(out.at - b->code);
            emit_count_probe(&out, scratch, cursor);
        }
        if (b->extra >= 0) {
            emit_gs_store(&out, T_SPILL_EXTRA, b->extra);
            b->extra_from = (uint16_t)(out.at - b->code);
        }
    }
    int silent = region_is_agent(pc);
    struct emitter nowhere = {unused};
    template_init(&template, counts ? &nowhere : &out, scratch, cursor);
    nplaces = add_place(nplaces, b, pc, 0);
    uint64_t next = pc;
    for (unsigned i = 0; i < n; i++) {
        const struct insn *d = &insns[i];
        int native = d->class == INSN_STEP || d->class == INSN_END || d->class == INSN_SYSCALL;
        nplaces = add_place(nplaces, b, d->pc, i);
        unsigned before = template.nrefs, repeats = 0, masked = 0;
        if (!native && !silent)
            template_record(&template, d, i, (uint32_t)(d->pc - pc));
        if (counts) {
            nowhere.at = unused;
            places[nplaces - 1].refs = b->refs;
            b->refs = (uint16_t)(b->refs + count_references(&template, before, &repeats, &masked));
            places[nplaces - 1].repeats = (uint16_t)repeats;
            emit_count_before(&out, cursor, repeats);
            if (masked)
                emit_count_masked(&out, d, cursor, masked);
        }
        if (d == end) {
            emit_extra_back(b);
            idles = counts && records && b->refs == 0 && count_may_loop(end) &&
                    (region_may_change(pc) || !counted_elsewhere(end));
            if (idles && d->class != INSN_CONDITIONAL)
                emit_count_idle(&out, scratch, cursor);
            emit_terminator(d, i, scratch, cursor, records, counts ? b->refs : 8 * template.slots);
            count += !native;
            break;
        }
        if (emit_copy(d, counts ? b->extra : scratch)) {
            out.at = begin;
            return cannot(t, WIRE_END_INSTRUCTION, d->in.mnemonic);
        }
        next = d->pc + d->in.length;
        count++;
        if (d->class == INSN_REP) {
            nplaces = add_place(nplaces, b, next, i + 1);
            places[nplaces - 1].refs = b->refs;
            if (counts)
                emit_count_after(&out, scratch, cursor, repeats);
            else if (!silent)
                template_record_after(&template, d);
        }
        template_follow(&template, d);
        if (i + 1 == n || (template_full(&template) && i + 1 < n)) {
            nplaces = add_place(nplaces, b, next, i + 1);
            places[nplaces - 1].refs = b->refs;
            emit_extra_back(b);
            emit_advance(cursor, counts ? b->refs : 8 * template.slots);
            uint8_t *jump = emit_jump(&out);
            emit_link(jump, next, scratch, cursor);
            break;
        }
    }
    b->code_bytes = (uint32_t)(out.at - begin);
    if (header) {
        uint32_t word = next_id | (uint32_t) template.slots << WIRE_ID_BITS;
        __builtin_memcpy(header, &word, 4);
    }
    if (!counts && publish(next_id, pc, silent ? 0 : count, records, end)) {
        out.at = begin;
        return cannot(t, WIRE_END_SPACE, 0);
    }
    b->nplaces = (uint16_t)nplaces;
    b->places = arena_take(nplaces * sizeof *places);
    __builtin_memcpy(b->places, places, nplaces * sizeof *places);
    uint32_t h = hash_of(pc);
    while (hash[h])
        h = (h + 1) & (HASH_SIZE - 1);
    hash[h] = nblocks++;
    next_id += !counts;
    count_add(&proc->count.blocks, 1);
    count_add(&proc->count.insns, count);
    if (timed)
        count_add(&proc->count.translate_ns, TIME_EVERY * (sys_clock_ns(CLOCK_MONOTONIC) - began));
    return b;
}

struct block *translate_again(struct thread *t, const struct exit *x)
{
    struct block *b = find(x->target, x->counts);
    if (b == x->block) /* else another thread was here first */
        b->stale = 1;  /* its code stays, and its check always fails */
    return translate_block(t, x->target, x->scratch, x->cursor);
}

uint64_t arch_translate(struct thread *t, uint64_t pc)
{
    translate_lock();
    struct block *b = translate_block(t, pc, NO_REG, NO_REG);
    translate_unlock();
    return b ? (uint64_t)b->code : 0;
}
