/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - the context of a system call that was diverted to us (../../calls.c). */
#include <linux/audit.h>
#include "agent/agent.h"
#include "agent/arch/x86_64/dispatch.h"

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

void arch_call_through(ucontext_t *uc, int come_back)
{
    greg_t *g = uc->uc_mcontext.gregs;
    call_return = (uint64_t)g[REG_RIP];
    g[REG_RIP] = (greg_t)(come_back ? call_and_back : call_through);
}

int arch_call_back(ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs;
    if (g[REG_RIP] != (greg_t)call_and_back_after)
        return 0;
    g[REG_RIP] = g[REG_RCX] = (greg_t)call_return;
    return 1;
}

int arch_call_interrupted(ucontext_t *uc)
{
    greg_t *g = uc->uc_mcontext.gregs, at = g[REG_RIP];
    int before = at == (greg_t)call_through || at == (greg_t)call_and_back;
    if (!before && at != (greg_t)call_through_after && at != (greg_t)call_and_back_after)
        return 0;
    g[REG_RIP] = (greg_t)call_return;
    if (before) /* not made yet, or to be made again: at its own place */
        g[REG_RIP] -= 2;
    else
        g[REG_RCX] = g[REG_RIP];
    return 1;
}
