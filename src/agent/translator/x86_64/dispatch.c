/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispatch.c - requests of generated code: blocks that do not exist yet, indirect jumps whose lookup
 * failed, system calls. entry.S is the way here and back.
 */
#include "agent/code/code.h"
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/translator/translator.h"
#include "agent/translator/x86_64/count.h"
#include "agent/translator/x86_64/dispatch.h"
#include "agent/translator/x86_64/landings.h"
#include "agent/translator/x86_64/layout.h"
#include "agent/translator/x86_64/translate.h"

/* Registers as dispatch_entry pushed them, lowest address first. */
enum {
    D_R15,
    D_R14,
    D_R13,
    D_R12,
    D_R11,
    D_R10,
    D_R9,
    D_R8,
    D_RDI,
    D_RSI,
    D_RBP,
    D_RBX,
    D_RDX,
    D_RCX,
    D_RAX,
    D_FLAGS
};

static uint64_t leave(struct thread *t, uint64_t pc)
{
    t->translation.exit_pc = t->translation.abort_pc ? t->translation.abort_pc : pc;
    t->translation.left_sequence = t->translation.abort_pc != 0;
    t->translation.abort_pc = 0;
    t->translation.leave_insns = UINT32_MAX;
    return (uint64_t)cache_leave_gate();
}

/* The branch target is not canonical: the processor faults at the branch itself, before executing it. The
 * branch is undone, and repeated natively. */
static uint64_t undo_branch(struct thread *t, const struct exit *x)
{
    t->generated.app_rsp -= (uint64_t)(int64_t)x->popped_bytes;
    /* A thread that always stays in translated code would return here at once, before it has faulted, so it
     * steps over the branch. The record is handed over first, since the branch was not executed. */
    t->translation.leave_end = x->counts                   ? LEAVE_STEP
                               : agent_always_translated() ? WIRE_END_INSTRUCTION
                                                           : WIRE_END_FAULT;
    t->translation.leave_detail = SIGSEGV;
    uint64_t code = leave(t, x->target);
    t->translation.leave_insns = x->insn;
    return code;
}

/* From now on the thread's indirect branches to b's source find it by themselves. The caller holds the
 * lock. */
static void remember_target(struct thread *t, const struct block *b)
{
    uint64_t crc = 0;
    __asm__("crc32q %1, %0" : "+r"(crc) : "r"(b->pc));
    crc &= (1u << TARGET_BITS) - 1;
    t->tables.targets[2 * crc + 1] = (uint64_t)b->code;
    t->tables.targets[2 * crc] = 0 - b->pc;
}

static uint64_t indirect(struct thread *t, const struct exit *x)
{
    uint64_t pc = t->generated.indirect_target;
    if ((uint64_t)((int64_t)(pc << 16) >> 16) != pc)
        return undo_branch(t, x);
    arch_lock();
    if (landings_are_crowded())
        cache_make_stale();
    struct block *b = translate_block(t, pc, NO_REG, NO_REG);
    if (b && b->counts)
        count_remember(b, x->returns);
    else if (b)
        remember_target(t, b);
    arch_unlock();
    return b ? (uint64_t)b->code : leave(t, pc);
}

static uint64_t link_block(struct thread *t, struct exit *x)
{
    arch_lock();
    struct block *b = translate_block(t, x->target, x->scratch, x->cursor);
    if (b)
        cache_link(x);
    arch_unlock();
    return b ? (uint64_t)b->code : leave(t, x->target);
}

/* Tables may still refer to the stale block: they get the new one. */
static void replace(struct thread *t, const struct block *stale, struct block *b)
{
    if (!b->counts) {
        remember_target(t, b);
        return;
    }
    if (stale->landing)
        count_remember(b, 0);
    if (stale->return_landing)
        count_remember(b, 1);
}

int arch_continue(struct thread *t, ucontext_t *uc)
{
    arch_lock();
    const struct block *stale = cache_find_code(arch_pc(uc));
    arch_restore(t, uc);
    struct block *b = translate_block(t, stale->pc, NO_REG, NO_REG);
    if (b)
        replace(t, stale, b);
    arch_unlock();
    if (b) {
        arch_set_pc(uc, (uint64_t)b->code);
        return 1;
    }
    if (t->translation.counts)
        translator_ops->counted(t, arch_count_remove(t, uc));
    if (t->translation.abort_pc)
        arch_set_pc(uc, t->translation.abort_pc);
    t->translation.abort_pc = 0;
    return 0;
}

static uint64_t retranslate(struct thread *t, const struct exit *x)
{
    arch_lock();
    struct block *b = translate_again(t, x);
    if (b)
        replace(t, x->block, b);
    arch_unlock();
    return b ? (uint64_t)b->code : leave(t, x->target);
}

/* A block that consists only of a system call has no check of its source. */
static int is_still_a_call(const struct exit *x)
{
    uint8_t now[2];
    arch_lock();
    int may_change = region_may_change(x->target, 2);
    arch_unlock();
    return !may_change || x->block->pc != x->target ||
           (safe_copy(now, (const void *)x->target, 2) == 0 && now[0] == 0x0f && now[1] == 0x05);
}

static uint64_t system_call(struct thread *t, struct exit *x, uint64_t *regs)
{
    if (!is_still_a_call(x))
        return retranslate(t, x);
    uint64_t args[6] = {regs[D_RDI], regs[D_RSI], regs[D_RDX], regs[D_R10], regs[D_R8], regs[D_R9]};
    long result = 0;
    count_add(&proc->count.syscalls, 1);
    t->translation.syscall_pc = x->target;
    switch (translator_ops->system_call(t, (int)regs[D_RAX], args, &result)) {
    case SYSCALL_PLAIN:
        return (uint64_t)x->resume;
    case SYSCALL_MASKED:
        translator_ops->call_may_wait(t); /* no alarm may interrupt it */
        t->generated.gate_resume = (uint64_t)x->after;
        arch_mark_outside(t); /* it may take forever, and must not keep the cache from being emptied */
        return (uint64_t)gate_begin;
    case SYSCALL_DONE:
        regs[D_RAX] = (uint64_t)result;
        regs[D_R11] = regs[D_FLAGS];
        return (uint64_t)x->after;
    case SYSCALL_SIGNAL:
        regs[D_RAX] = (uint64_t)result;
        regs[D_R11] = regs[D_FLAGS];
        regs[D_RCX] = x->target + 2;
        /* Natively: the signal is delivered before the next instruction. */
        t->translation.leave_end = LEAVE_STEP;
        return leave(t, x->target + 2);
    case SYSCALL_STEP:
        t->translation.leave_end = LEAVE_STEP;
        return leave(t, x->target);
    case SYSCALL_RETURN:
        t->translation.leave_end = LEAVE_RETURN;
        return leave(t, x->target);
    case SYSCALL_END:
    default:
        return leave(t, x->target);
    }
}

/* After a system call made in the gate. What was translated may be stale by now, and overwritten. */
static uint64_t back_from_gate(struct thread *t, uint64_t *regs)
{
    uint64_t pc = t->translation.syscall_pc + 2;
    int same = arch_mark_inside(t);
    if (!t->translation.counts && t->translation.buffer < 0) { /* see hand_over_waiting in buffers.c */
        t->translation.leave_end = WIRE_END_MORE;
        regs[D_RCX] = pc;
        return leave(t, pc);
    }
    if (same)
        return t->generated.gate_resume;
    translator_ops->call_ends(t);
    regs[D_RCX] = pc;
    uint64_t code = arch_translate(t, pc);
    return code ? code : leave(t, pc);
}

uint64_t dispatch_c(struct thread *t, uint64_t *regs)
{
    if (t->generated.exit_id == GATE_EXIT_ID)
        return back_from_gate(t, regs);
    struct exit *x = cache_exit(t->generated.exit_id);
    int is_own_work = x->kind != EXIT_SYSCALL && x->kind != EXIT_MARK && x->kind != EXIT_BACK;
    uint64_t work_began = is_own_work ? translator_ops->work_begins(t) : 0, code;
    switch (x->kind) {
    case EXIT_INDIRECT:
        code = indirect(t, x);
        break;
    case EXIT_LINK:
        code = link_block(t, x);
        break;
    case EXIT_STALE:
        code = retranslate(t, x);
        break;
    case EXIT_SYSCALL:
        translator_ops->call_begins(t);
        return system_call(t, x, regs);
    case EXIT_BACK:
        translator_ops->call_ends(t);
        code = (uint64_t)x->resume;
        break;
    case EXIT_MARK:
        translator_ops->marked(t);
        code = (uint64_t)x->resume;
        break;
    case EXIT_STEP:
        t->translation.leave_end = LEAVE_STEP;
        code = leave(t, x->target);
        break;
    default:
        t->translation.leave_end = WIRE_END_INSTRUCTION;
        t->translation.leave_detail = x->detail;
        code = leave(t, x->target);
        break;
    }
    translator_ops->work_ends(t, work_began);
    return code;
}
