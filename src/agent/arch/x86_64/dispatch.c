/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dispatch.c - from generated code into C and back: blocks that are not there yet, indirect jumps
 * that were not found, system calls, and the two stubs (leaving, system calls with the target's
 * signal mask).
 *
 * The agent is compiled for general registers only, so vector and x87 state needs no saving here.
 */
#include "agent/arch/x86_64/dispatch.h"
#include "agent/arch/x86_64/layout.h"
#include "agent/arch/x86_64/translate.h"

#define STR_(x) #x
#define STR(x) STR_(x)

/* Saves everything, calls dispatch_c(thread, registers), goes where that says. */
__asm__(
    ".text\n.globl dispatch_entry\n.hidden dispatch_entry\n.type dispatch_entry,@function\n"
    "dispatch_entry:\n"
    "    mov %rsp, %gs:" STR(
        T_APP_RSP) "\n"
                   "    mov %gs:" STR(
                       T_DISPATCH_STACK) ", %rsp\n"
                                         "    pushfq\n"
                                         "    push %rax\n    push %rcx\n    push %rdx\n    push %rbx\n    "
                                         "push %rbp\n    push %rsi\n    push %rdi\n"
                                         "    push %r8\n    push %r9\n    push %r10\n    push %r11\n    push "
                                         "%r12\n    push %r13\n    push %r14\n"
                                         "    push %r15\n"
                                         "    cld\n"
                                         "    mov %gs:0, %rdi\n"
                                         "    mov %rsp, %rsi\n"
                                         "    call dispatch_c\n"
                                         "    mov %rax, %gs:" STR(
                                             T_JUMP_TO) "\n"
                                                        "    pop %r15\n    pop %r14\n    pop %r13\n    pop "
                                                        "%r12\n    pop %r11\n    pop %r10\n    pop %r9\n    "
                                                        "pop %r8\n"
                                                        "    pop %rdi\n    pop %rsi\n    pop %rbp\n    pop "
                                                        "%rbx\n    pop %rdx\n    pop %rcx\n    pop %rax\n"
                                                        "    popfq\n"
                                                        "    mov %gs:" STR(
                                                            T_APP_RSP) ", %rsp\n"
                                                                       "    jmp *%gs:" STR(
                                                                           T_JUMP_TO) "\n"
                                                                                      ".size dispatch_entry, "
                                                                                      ".-dispatch_entry\n");

/*
 * A system call that may block, made with the target's own mask, so that its signals are seen. A
 * signal can arrive from the end of the first mask change to the end of the second; then
 * arch_restore_stub makes the interrupted context the target's.
 */
#define SAVED(n) STR(T_SAVED + 8 * n)
__asm__(
    ".text\n.globl stub_begin\n.hidden stub_begin\n.globl stub_call\n.hidden stub_call\n"
    ".globl stub_after\n.hidden stub_after\n.globl stub_end\n.hidden stub_end\n"
    "stub_begin:\n"
    "    mov %rdi, %gs:" STR(T_SAVED) "\n    mov %rsi, %gs:" STR(
        T_SAVED +
        8) "\n"
           "    mov %rdx, %gs:" STR(T_SAVED + 16) "\n    mov %r10, %gs:" STR(
               T_SAVED +
               24) "\n"
                   "    mov %rax, %gs:" STR(T_SAVED + 32) "\n    mov %rcx, %gs:" STR(
                       T_SAVED +
                       40) "\n"
                           "    mov %r11, %gs:" STR(
                               T_SAVED +
                               48) "\n"
                                   "    mov %gs:0, %rsi\n    lea " STR(
                                       T_APP_MASK) "(%rsi), %rsi\n"
                                                   "    mov $14, %eax\n    mov $2, %edi\n    mov $0, %edx\n  "
                                                   "  mov $8, %r10d\n"
                                                   "    syscall\n"
                                                   "    mov %gs:" STR(T_SAVED) ", %rdi\n    mov %gs:" STR(
                                                       T_SAVED +
                                                       8) ", %rsi\n"
                                                          "    mov %gs:" STR(
                                                              T_SAVED +
                                                              16) ", %rdx\n    mov %gs:" STR(T_SAVED +
                                                                                             24) ", %r10\n"
                                                                                                 "    mov "
                                                                                                 "%gs:" STR(
                                                                                                     T_SAVED +
                                                                                                     32) ", "
                                                                                                         "%ra"
                                                                                                         "x\n"
                                                                                                         "stu"
                                                                                                         "b_"
                                                                                                         "cal"
                                                                                                         "l:"
                                                                                                         "\n"
                                                                                                         "   "
                                                                                                         " sy"
                                                                                                         "sca"
                                                                                                         "ll"
                                                                                                         "\n"
                                                                                                         "stu"
                                                                                                         "b_"
                                                                                                         "aft"
                                                                                                         "er:"
                                                                                                         "\n"
                                                                                                         "   "
                                                                                                         " mo"
                                                                                                         "v "
                                                                                                         "%ra"
                                                                                                         "x, "
                                                                                                         "%gs"
                                                                                                         ":" STR(T_SAVED + 32) "\n    mov %r11, %gs:" STR(
                                                                                                             T_SAVED +
                                                                                                             48) "\n"
                                                                                                                 "    mov %gs:0, %rsi\n    lea " STR(
                                                                                                                     T_BURST_MASK) "(%rsi), %rsi\n"
                                                                                                                                   "    mov $14, %eax\n    mov $2, %edi\n    mov $0, %edx\n    mov $8, %r10d\n"
                                                                                                                                   "    syscall\n"
                                                                                                                                   "    mov %gs:" STR(T_SAVED) ", %rdi\n    mov %gs:" STR(
                                                                                                                                       T_SAVED +
                                                                                                                                       8) ", %rsi\n"
                                                                                                                                          "    mov %gs:" STR(T_SAVED + 16) ", %rdx\n    mov %gs:" STR(
                                                                                                                                              T_SAVED +
                                                                                                                                              24) ", %r10\n"
                                                                                                                                                  "    mov %gs:" STR(T_SAVED + 32) ", %rax\n    mov %gs:" STR(
                                                                                                                                                      T_SAVED +
                                                                                                                                                      48) ", %r11\n"
                                                                                                                                                          "stub_end:\n"
                                                                                                                                                          "    jmp *%gs:" STR(
                                                                                                                                                              T_STUB_RESUME) "\n");
_Static_assert(T_SAVED == 88 && T_STUB_RESUME == 152, "the assembler adds these up as text");

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
    t->exit_pc = pc;
    return (uint64_t)translate_leave_stub();
}

static uint64_t indirect(struct thread *t)
{
    uint64_t pc = t->indirect_target;
    translate_lock();
    struct block *b = translate_block(t, pc, NO_REG, NO_REG);
    translate_unlock();
    if (!b)
        return leave(t, pc);
    uint64_t crc = 0;
    __asm__("crc32q %1, %0" : "+r"(crc) : "r"(pc));
    uint64_t *entry = &t->targets[2 * (crc & ((1u << TARGET_BITS) - 1))];
    entry[1] = (uint64_t)b->code;
    entry[0] = 0 - pc;
    return (uint64_t)b->code;
}

static uint64_t link_block(struct thread *t, struct exit *x)
{
    translate_lock();
    struct block *b = translate_block(t, x->target, x->scratch, x->cursor);
    if (b)
        translate_link(x);
    translate_unlock();
    return b ? (uint64_t)b->code : leave(t, x->target);
}

static uint64_t system_call(struct thread *t, struct exit *x, uint64_t *regs)
{
    uint64_t args[6] = {regs[D_RDI], regs[D_RSI], regs[D_RDX], regs[D_R10], regs[D_R8], regs[D_R9]};
    long result = 0;
    count_add(&proc->count.syscalls, 1);
    t->syscall_pc = x->target;
    switch (syscall_in_burst(t, (long)regs[D_RAX], args, &result)) {
    case SYSCALL_PLAIN:
        return (uint64_t)x->resume;
    case SYSCALL_MASKED:
        t->stub_resume = (uint64_t)x->after;
        return (uint64_t)stub_begin;
    case SYSCALL_DONE:
        regs[D_RAX] = (uint64_t)result;
        regs[D_R11] = regs[D_FLAGS];
        return (uint64_t)x->after;
    case SYSCALL_STEP:
        t->leave_end = -1;
        return leave(t, x->target);
    case SYSCALL_END:
    default:
        return leave(t, x->target);
    }
}

uint64_t dispatch_c(struct thread *t, uint64_t *regs)
{
    if (t->exit_id == EXIT_INDIRECT)
        return indirect(t);
    struct exit *x = translate_exit(t->exit_id);
    switch (x->kind) {
    case EXIT_LINK:
        return link_block(t, x);
    case EXIT_SYSCALL:
        return system_call(t, x, regs);
    case EXIT_STEP:
        t->leave_end = -1;
        return leave(t, x->target);
    default:
        t->leave_end = WIRE_END_INSTRUCTION;
        t->leave_detail = x->detail;
        return leave(t, x->target);
    }
}
