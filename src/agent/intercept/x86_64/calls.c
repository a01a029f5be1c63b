/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - the context of a system call that was diverted to us (../../calls.c). */
#include <errno.h>
#include <linux/audit.h>
#include <string.h>
#include "agent/agent.h"
#include "agent/translator/x86_64/dispatch.h"
#include "agent/translator/x86_64/layout.h"
#include "agent/sys/sys.h"

long arch_call(const ucontext_t *uc, uint64_t *args)
{
    static const int in[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    for (int i = 0; i < 6; i++)
        args[i] = (uint64_t)uc->uc_mcontext.gregs[in[i]];
    return (long)uc->uc_mcontext.gregs[REG_RAX];
}

unsigned arch_audit(void)
{
    return AUDIT_ARCH_X86_64;
}

void arch_call_done(ucontext_t *uc, long result)
{
    greg_t *g = uc->uc_mcontext.gregs;
    g[REG_RAX] = (greg_t)result;
    g[REG_RCX] = g[REG_RIP];
    g[REG_R11] = g[REG_EFL];
}

void arch_call_again(ucontext_t *uc)
{
    uc->uc_mcontext.gregs[REG_RIP] -= 2;
}

void arch_call_through(struct thread *t, ucontext_t *uc, int come_back)
{
    greg_t *g = uc->uc_mcontext.gregs;
    struct call_slot *slot = &call_slots[t->index];
    slot->go_on = (uint64_t)g[REG_RIP];
    __atomic_store_n(&slot->lasts, !come_back, __ATOMIC_RELEASE);
    g[REG_RIP] = (greg_t)(come_back ? call_and_back : call_through + t->index * CALL_THROUGH_BYTES);
}

int arch_call_lasts(const struct thread *t)
{
    return __atomic_load_n(&call_slots[t->index].lasts, __ATOMIC_ACQUIRE) != 0;
}

int arch_call_back(struct thread *t, ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs;
    if (g[REG_RIP] != (greg_t)call_and_back_after)
        return 0;
    g[REG_RIP] = g[REG_RCX] = (greg_t)call_slots[t->index].go_on;
    return 1;
}

int arch_call_interrupted(struct thread *t, ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs, at = g[REG_RIP];
    int through = at >= (greg_t)call_through && at < (greg_t)call_through_end;
    int before =
        at == (greg_t)call_and_back || (through && (at - (greg_t)call_through) % CALL_THROUGH_BYTES == 0);
    if (!before && !through && at != (greg_t)call_and_back_after)
        return 0;
    __atomic_store_n(&call_slots[t->index].lasts, 0, __ATOMIC_RELEASE);
    g[REG_RIP] = (greg_t)call_slots[t->index].go_on;
    if (before) /* not made yet, or to be made again: at its own place */
        g[REG_RIP] -= 2;
    else
        g[REG_RCX] = g[REG_RIP];
    return 1;
}

#define SYSCALL_BYTES 2
#define LOAD_NEAR_BYTES 12 /* glibc's pselect loads its first argument, too, behind the number */

static int is_call(int64_t pc)
{
    uint8_t bytes[2];
    return safe_copy(bytes, (const void *)pc, 2) == 0 && bytes[0] == 0x0f && bytes[1] == 0x05;
}

int arch_at_call(const ucontext_t *uc)
{
    return is_call(uc->uc_mcontext.gregs[REG_RIP]);
}

int arch_call_made(const struct thread *t, const ucontext_t *uc)
{
    return arch_pc(uc) != t->syscall_pc && uc->uc_mcontext.gregs[REG_RAX] >= 0;
}

int arch_behind_call(const ucontext_t *uc)
{
    return is_call(uc->uc_mcontext.gregs[REG_RIP] - 2);
}

/* Where system call `number` is told the mask to wait with, of its arguments: 1: it is pointed to by one, 2:
 * by what that one points to. 0: nowhere. */
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
    case 441: /* epoll_pwait2, which older headers do not name */
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

int arch_behind_wait(const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    return g[REG_RAX] == -EINTR && g[REG_RCX] == g[REG_RIP];
}

/*
 * The kernel keeps a call's arguments in their registers, but not its number: libc's functions, and those of
 * other languages, load it right before. rcx is where the call returns to, which marks the context until the
 * first handler has had it: one that comes when that has returned finds the mask as it was before the call.
 */
int arch_waiting_mask(ucontext_t *uc, uint64_t *mask)
{
    greg_t *g = uc->uc_mcontext.gregs;
    uint8_t before[LOAD_NEAR_BYTES];
    int number, reg, level = 0;
    uint64_t at;
    if (safe_copy(before, (const void *)(g[REG_RIP] - SYSCALL_BYTES - LOAD_NEAR_BYTES), sizeof before))
        return 0;
    for (int i = LOAD_NEAR_BYTES - 5; i >= 0 && !level; i--)
        if (before[i] == 0xb8) { /* mov $number, %eax */
            memcpy(&number, before + i + 1, sizeof number);
            level = mask_argument(number, &reg);
        }
    if (!level)
        return 0;
    at = (uint64_t)g[reg];
    if ((level == 2 && at && safe_copy(&at, (const void *)at, sizeof at)) || !at ||
        safe_copy(mask, (const void *)at, sizeof *mask))
        return 0;
    g[REG_RCX] = 0;
    return 1;
}

int arch_sigreturn_mask(const ucontext_t *uc, uint64_t *mask)
{
    const ucontext_t *to = (const ucontext_t *)uc->uc_mcontext.gregs[REG_RSP];
    return safe_copy(mask, &to->uc_sigmask, sizeof *mask) ? -1 : 0;
}

int arch_fault_writes(const ucontext_t *uc)
{
    return (uc->uc_mcontext.gregs[REG_ERR] & 2) != 0;
}
