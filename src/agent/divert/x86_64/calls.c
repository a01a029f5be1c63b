/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - the context of a diverted system call (intercept/calls.c). */
#include <linux/audit.h>
#include "agent/divert/divert.h"
#include "agent/sys/session.h"
#include "agent/thread.h"
#include "agent/divert/x86_64/slots.h"

long arch_call_arguments(const ucontext_t *uc, uint64_t *args)
{
    static const int in[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    for (int i = 0; i < 6; i++)
        args[i] = (uint64_t)uc->uc_mcontext.gregs[in[i]];
    return (int)uc->uc_mcontext.gregs[REG_RAX]; /* the kernel ignores the upper half */
}

unsigned arch_audit_value(void)
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

void arch_call_restart(ucontext_t *uc)
{
    uc->uc_mcontext.gregs[REG_RIP] -= 2;
}

void arch_call_through(struct thread *t, ucontext_t *uc, int then_fault)
{
    greg_t *g = uc->uc_mcontext.gregs;
    struct call_slot *slot = &call_slots[t->index];
    slot->return_pc = (uint64_t)g[REG_RIP];
    __atomic_store_n(&slot->in_progress, !then_fault, __ATOMIC_RELEASE);
    g[REG_RIP] = (greg_t)(then_fault ? call_then_fault : call_through + t->index * CALL_THROUGH_BYTES);
}

int arch_call_in_progress(const struct thread *t)
{
    return __atomic_load_n(&call_slots[t->index].in_progress, __ATOMIC_ACQUIRE) != 0;
}

int arch_call_returned(struct thread *t, ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs;
    if (g[REG_RIP] != (greg_t)call_then_fault_after)
        return 0;
    g[REG_RIP] = g[REG_RCX] = (greg_t)call_slots[t->index].return_pc;
    return 1;
}

int arch_call_interrupted(struct thread *t, ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs, at = g[REG_RIP];
    int through = at >= (greg_t)call_through && at < (greg_t)call_through_end;
    int before =
        at == (greg_t)call_then_fault || (through && (at - (greg_t)call_through) % CALL_THROUGH_BYTES == 0);
    if (!before && !through && at != (greg_t)call_then_fault_after)
        return 0;
    __atomic_store_n(&call_slots[t->index].in_progress, 0, __ATOMIC_RELEASE);
    g[REG_RIP] = (greg_t)call_slots[t->index].return_pc;
    if (before) /* not made yet, or to be restarted: at its own place */
        g[REG_RIP] -= 2;
    else
        g[REG_RCX] = g[REG_RIP];
    return 1;
}
