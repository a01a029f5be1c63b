/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - signal frames: moving one to another stack, changing what is returned to; see signals/frame.h. */
#include "agent/signals/frame.h"
#include "agent/sys/context.h"
#include "agent/sys/sys.h"
#include <errno.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/syscall.h>

#define FLAG_TRAP 0x100
#define RED_ZONE 128
#define SYSCALL_BYTES 2
/* Bytes before the call in which its number is loaded; glibc's pselect loads its first argument after that.
 */
#define NUMBER_LOAD_BYTES 12
/* IORING_ENTER_EXT_ARG_REG (Linux 6.13), which older headers do not name */
#define ENTER_REGISTERED_ARGUMENT 0x40

void arch_finish_entry(ucontext_t *uc)
{
    static const uint8_t unchanged[] = {REG_RBX, REG_RBP, REG_RCX, REG_R8,  REG_R9,
                                        REG_R10, REG_R11, REG_R12, REG_R13, REG_R14};
    greg_t *g = uc->uc_mcontext.gregs;
    uint64_t pc = (uint64_t)g[REG_RIP];
    if (pc < (uint64_t)signal_entry_unmasked || pc > (uint64_t)signal_entry_jump)
        return;
    const ucontext_t *interrupted = (const ucontext_t *)g[REG_R13];
    g[REG_RIP] = g[REG_RBX];
    g[REG_RDI] = g[REG_RBP];
    g[REG_RSI] = g[REG_R12];
    g[REG_RDX] = g[REG_R13];
    g[REG_RAX] = 0;
    for (size_t i = 0; i < sizeof unchanged; i++)
        g[unchanged[i]] = interrupted->uc_mcontext.gregs[unchanged[i]];
}

int arch_sigreturn_mask(const ucontext_t *uc, uint64_t *mask)
{
    const ucontext_t *to = (const ucontext_t *)uc->uc_mcontext.gregs[REG_RSP];
    return safe_copy(mask, &to->uc_sigmask, sizeof *mask) ? -1 : 0;
}

/* Where system call `number` finds the mask to wait with. 1: *reg points to it; 2: *reg points to a pointer
 * to it; 0: the call has no mask. */
static int mask_argument(long number, int *reg)
{
    switch (number) {
    case SYS_rt_sigsuspend:
        *reg = REG_RDI;
        return 1;
    case SYS_ppoll:
        *reg = REG_R10;
        return 1;
    case SYS_epoll_pwait:
    case 441:                /* epoll_pwait2, which older headers do not name */
    case SYS_io_uring_enter: /* or to a struct that points to it */
        *reg = REG_R8;
        return 1;
    case SYS_pselect6:
    case 333: /* io_pgetevents */
        *reg = REG_R9;
        return 2;
    default:
        return 0;
    }
}

/* The call may block SIGTRAP, for good or while it waits. */
static int may_block_trap(long number)
{
    int reg;
    return number == SYS_rt_sigprocmask || mask_argument(number, &reg) != 0;
}

uint64_t arch_clone_flags(long number, uint64_t argument)
{
    uint64_t flags;
    if (number == SYS_clone)
        return (uint32_t)argument;
    return number == SYS_clone3 && safe_copy(&flags, (const void *)argument, sizeof flags) == 0 ? flags : 0;
}

int arch_step_would_kill(const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    long number = (int)g[REG_RAX]; /* the kernel ignores the upper half */
    if (!arch_at_call(uc))
        return 0;
    uint64_t flags = arch_clone_flags(number, (uint64_t)g[REG_RDI]);
    /* A child that shares the memory has no alternate stack, and its own may have no room for a frame. */
    return may_block_trap(number) || (flags & (CLONE_CLEAR_SIGHAND | CLONE_THREAD)) ||
           (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM;
}

enum arch_return arch_step_at_sigreturn(uint64_t sp, int *trap_blocked)
{
    ucontext_t *uc = (ucontext_t *)sp, to;
    uint64_t mask;
    greg_t flags;
    if (safe_copy(&mask, &uc->uc_sigmask, sizeof mask) ||
        safe_copy(to.uc_mcontext.gregs, uc->uc_mcontext.gregs, sizeof to.uc_mcontext.gregs))
        return ARCH_RETURN_UNKNOWN;
    *trap_blocked = mask >> (SIGTRAP - 1) & 1;
    mask &= ~(1ull << (SIGTRAP - 1)); /* the kernel kills for a trap whose signal is blocked */
    if (*trap_blocked && safe_copy(&uc->uc_sigmask, &mask, sizeof mask))
        return ARCH_RETURN_UNKNOWN;
    if (arch_step_would_kill(&to))
        return ARCH_RETURN_TRIGGERS;
    flags = to.uc_mcontext.gregs[REG_EFL] | FLAG_TRAP;
    return safe_copy(&uc->uc_mcontext.gregs[REG_EFL], &flags, sizeof flags) ? ARCH_RETURN_UNKNOWN
                                                                            : ARCH_RETURN_STEPS;
}

int arch_after_eintr(const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    return g[REG_RAX] == -EINTR && g[REG_RCX] == g[REG_RIP];
}

static int has_mask(long number)
{
    int reg;
    return mask_argument(number, &reg) != 0;
}

/*
 * The number of the system call before the instruction pointer, if it is one of those wanted; -1: it is not,
 * or that is not known. The kernel preserves a call's argument registers, but not its number. libc's
 * functions, and those of other languages, load the number right before the call, where it is read from the
 * code; in a loop it may be copied from another register.
 */
static long number_before(const ucontext_t *uc, int (*wanted)(long number))
{
    static const uint8_t in[16] = {REG_ERR, REG_ERR, REG_RDX, REG_RBX, REG_ERR, REG_RBP, REG_RSI, REG_RDI,
                                   REG_R8,  REG_R9,  REG_R10, REG_ERR, REG_R12, REG_R13, REG_R14, REG_R15};
    const greg_t *g = uc->uc_mcontext.gregs;
    uint8_t before[NUMBER_LOAD_BYTES];
    int number;
    if (safe_copy(before, (const void *)(g[REG_RIP] - SYSCALL_BYTES - NUMBER_LOAD_BYTES), sizeof before))
        return -1;
    for (int i = NUMBER_LOAD_BYTES - 2; i >= 0; i--) {
        if (before[i] == 0xb8 && i <= NUMBER_LOAD_BYTES - 5) { /* mov $number, %eax */
            memcpy(&number, before + i + 1, sizeof number);
        } else if (before[i] == 0x89 && (before[i + 1] & 0xc7) == 0xc0) { /* mov register, %eax */
            int extended = i > 0 && (before[i - 1] & 0xf5) == 0x44,
                reg = in[(before[i + 1] >> 3 & 7) + (extended ? 8 : 0)];
            if (reg == REG_ERR) /* rax, rsp; rcx and r11, which the call changes */
                continue;
            number = (int)g[reg];
        } else {
            continue;
        }
        if (wanted(number))
            return number;
    }
    return -1;
}

/* rcx is the call's return address, which marks the context until the first handler has been started: one
 * that is started after that handler has returned finds the mask as it was before the call. */
int arch_waiting_mask(ucontext_t *uc, uint64_t *mask)
{
    greg_t *g = uc->uc_mcontext.gregs;
    int reg = REG_ERR, level;
    uint64_t at;
    long number = number_before(uc, has_mask);
    if (number < 0)
        return 0;
    level = mask_argument(number, &reg);
    if (number == SYS_io_uring_enter) {
        uint64_t flags = (uint64_t)g[REG_R10];
        if (!(flags & IORING_ENTER_GETEVENTS) || flags & ENTER_REGISTERED_ARGUMENT)
            return 0;
        level = flags & IORING_ENTER_EXT_ARG ? 2 : 1;
    }
    at = (uint64_t)g[reg];
    if ((level == 2 && at && safe_copy(&at, (const void *)at, sizeof at)) || !at ||
        safe_copy(mask, (const void *)at, sizeof *mask))
        return 0;
    g[REG_RCX] = 0;
    return 1;
}

/* Timers of CPU time fire where Linux runs what it has put off until the return to user mode (task work).
 * io_uring_enter runs that while it waits, too. */
static int is_interrupted_by_timer(long number)
{
    return number == SYS_io_uring_enter;
}

void arch_restart_call(ucontext_t *uc, long number)
{
    greg_t *g = uc->uc_mcontext.gregs;
    if (number < 0)
        number = number_before(uc, is_interrupted_by_timer);
    if (!is_interrupted_by_timer(number))
        return;
    g[REG_RAX] = number;
    g[REG_RIP] -= SYSCALL_BYTES;
}

/* The frame that Linux pushes: return address, ucontext, siginfo; above it, aligned to 64 bytes, the extended
 * state, which uc_mcontext.fpregs points to. Its size is in its software-reserved bytes. */
struct signal_frame {
    uint64_t return_address;
    /* The kernel's ucontext ends with a mask of 8 bytes; libc's is longer and must not be copied whole. */
    uint8_t context[offsetof(ucontext_t, uc_sigmask) + 8];
    siginfo_t info;
};

uint64_t arch_move_frame(ucontext_t **uc, siginfo_t **info, uint64_t sp)
{
    struct signal_frame *from =
        (struct signal_frame *)((uint64_t)*uc - offsetof(struct signal_frame, context));
    uint8_t *state = (uint8_t *)(*uc)->uc_mcontext.fpregs;
    size_t state_bytes = 0;
    if (state) {
        uint32_t magic, size;
        memcpy(&magic, state + 464, 4);
        memcpy(&size, state + 468, 4);
        state_bytes = magic == FP_XSTATE_MAGIC1 ? size : 512;
    }
    uint64_t state_to = (sp - RED_ZONE - state_bytes) & ~63ull;
    /* At a handler's first instruction the stack pointer is 8 below a multiple of 16. */
    uint64_t to = ((state_to - sizeof(struct signal_frame)) & ~15ull) - 8;
    struct signal_frame *frame = (struct signal_frame *)to;
    if (safe_copy(frame, from, sizeof *from))
        return 0;
    if (state_bytes) {
        if (safe_copy((void *)state_to, state, state_bytes))
            return 0;
        ucontext_t *moved = (ucontext_t *)(void *)frame->context;
        moved->uc_mcontext.fpregs = (fpregset_t)state_to;
    }
    *uc = (ucontext_t *)(void *)frame->context;
    *info = &frame->info;
    return to;
}
