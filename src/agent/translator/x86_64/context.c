/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.c - the context of a thread in translated code: classifies faults, and restores the target's own
 * context.
 */
#include "agent/sys/context.h"
#include "agent/thread.h"
#include "agent/translator/translator.h"
#include "agent/translator/x86_64/cache.h"
#include "agent/translator/x86_64/dispatch.h"
#include "agent/translator/x86_64/layout.h"

static const int gregs_of[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static greg_t *greg(ucontext_t *uc, int reg)
{
    return &uc->uc_mcontext.gregs[gregs_of[reg]];
}

const struct translator_ops *translator_ops;

static const struct place *place_of(const struct block *b, uint64_t rip)
{
    uint32_t offset = (uint32_t)(rip - (uint64_t)b->code);
    unsigned i = b->nplaces - 1u;
    while (i > 0 && b->places[i].code_offset > offset)
        i--;
    return &b->places[i];
}

uint64_t arch_source_pc(uint64_t pc)
{
    const struct block *b = arch_in_cache(pc) ? cache_find_code(pc) : NULL;
    if (b)
        return b->pc + place_of(b, pc)->pc_offset;
    return arch_in_cache(pc) ? 0 : pc;
}

/* In a counting block. */
static enum arch_fault counting_fault(const struct thread *t, const struct block *b, uint64_t rip, int sig,
                                      uint64_t address)
{
    if (sig == SIGSEGV && b->stops && rip == (uint64_t)b->code + b->check_end &&
        address - (uint64_t)t->tables.stop < sizeof t->tables.stop)
        return FAULT_FULL;
    return rip < (uint64_t)b->code + b->check_end ? FAULT_CODE : FAULT_TARGET;
}

enum arch_fault arch_fault(struct thread *t, ucontext_t *uc, int sig, uint64_t address, uint64_t **record,
                           uint64_t **end)
{
    uint64_t rip = arch_pc(uc);
    if (rip == (uint64_t)cache_leave_gate())
        return FAULT_LEAVE;
    const struct block *b = cache_find_code(rip);
    if (b && cache_is_poisoned(b, rip)) {
        *record = *end = rip == (uint64_t)b->fast ? (uint64_t *)*greg(uc, b->cursor) : t->generated.cursor;
        return FAULT_STALE;
    }
    if (b && b->counts)
        return counting_fault(t, b, rip, sig, address);
    if (!b || b->cursor < 0)
        return FAULT_UNKNOWN;
    *record = (uint64_t *)*greg(uc, b->cursor);
    *end = *record;
    if (sig == SIGSEGV && arch_fault_writes(uc) && address >= (uint64_t)t->translation.buffer_end &&
        address < (uint64_t)t->translation.buffer_end + WIRE_PAGE) {
        *end = t->translation.buffer_end;
        return FAULT_FULL;
    }
    if (rip < (uint64_t)b->code + b->check_end)
        return FAULT_CODE;
    if (!b->filtered) /* the header is written first, so it is there */
        *end = *record + WIRE_FILTERED_WORDS(**record);
    return FAULT_TARGET;
}

int arch_filters_lines(const ucontext_t *uc)
{
    const struct block *b = cache_find_code(arch_pc(uc));
    return b && b->filtered && arch_pc(uc) >= (uint64_t)b->code + b->filtered;
}

void arch_moved_buffer(ucontext_t *uc, uint64_t *record)
{
    const struct block *b = cache_find_code(arch_pc(uc));
    *greg(uc, b->cursor) = (greg_t)record;
}

static void restore_counting(struct thread *t, ucontext_t *uc, const struct block *b, const struct place *p)
{
    int checks = arch_pc(uc) < (uint64_t)b->code + b->check_end;
    uint64_t counted = t->generated.counter[0];
    if (p->state & PLACE_VECTOR_OUT)
        t->translation.counted_blocks = t->generated.counter[1];
    else
        counted = arch_count_remove(t, uc);
    if (checks || p->state & PLACE_SAVED) {
        *greg(uc, RCX) = (greg_t)t->generated.scratch;
        *greg(uc, RAX) = (greg_t)t->generated.spill_a;
    }
    if (p->extra >= 0)
        *greg(uc, p->extra) = (greg_t)t->generated.spill_extra;
    t->generated.strings[p->string].elements -= (uint64_t)*greg(uc, RCX) * p->repeats;
    t->generated.strings[p->string].counted -= p->repeats;
    translator_ops->counted(t, counted - (b->refs - p->refs));
}

uint32_t arch_restore(struct thread *t, ucontext_t *uc)
{
    const struct block *b = cache_find_code(arch_pc(uc));
    const struct place *p = place_of(b, arch_pc(uc));
    if (cache_is_poisoned(b, arch_pc(uc))) {
        if (arch_pc(uc) == (uint64_t)b->fast) {
            *greg(uc, b->scratch) = (greg_t)t->generated.spill_a;
            *greg(uc, b->cursor) = (greg_t)t->generated.spill_b;
        }
    } else if (b->counts) {
        restore_counting(t, uc, b, p);
    } else {
        if (arch_pc(uc) < (uint64_t)b->code + b->check_end)
            *greg(uc, RCX) = (greg_t)t->generated.scratch;
        *greg(uc, b->scratch) = (greg_t)t->generated.spill_a;
        *greg(uc, b->cursor) = (greg_t)t->generated.spill_b;
    }
    arch_set_pc(uc, b->pc + p->pc_offset);
    return p->insn;
}

int arch_at_gate(const ucontext_t *uc)
{
    uint64_t rip = arch_pc(uc);
    return rip >= (uint64_t)gate_begin && rip <= (uint64_t)gate_end;
}

int arch_restore_gate(struct thread *t, ucontext_t *uc)
{
    uint64_t rip = arch_pc(uc);
    if (!arch_at_gate(uc))
        return 0;
    if (t->translation.counts)
        translator_ops->counted(t, arch_count_remove(t, uc));
    greg_t *g = uc->uc_mcontext.gregs;
    g[REG_RDI] = (greg_t)t->generated.saved[0];
    g[REG_RSI] = (greg_t)t->generated.saved[1];
    g[REG_RDX] = (greg_t)t->generated.saved[2];
    g[REG_R10] = (greg_t)t->generated.saved[3];
    if (rip <= (uint64_t)gate_call) { /* not made yet, or to be restarted: then the kernel has chosen rax */
        if (rip != (uint64_t)gate_call)
            g[REG_RAX] = (greg_t)t->generated.saved[4];
        g[REG_RCX] = (greg_t)t->generated.saved[5];
        g[REG_R11] = (greg_t)t->generated.saved[6];
        arch_set_pc(uc, t->translation.syscall_pc);
        return 1;
    }
    if (rip != (uint64_t)gate_after) {
        g[REG_RAX] = (greg_t)t->generated.saved[4];
        g[REG_R11] = (greg_t)t->generated.saved[6];
    }
    g[REG_RCX] = (greg_t)(t->translation.syscall_pc + 2);
    arch_set_pc(uc, t->translation.syscall_pc + 2);
    return 1;
}
