/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - see sys/context.h. */
#include <cpuid.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include "agent/sys/context.h"
#include "agent/sys/sys.h"

#define ARCH_GET_FS 0x1003
#define FLAG_TRAP 0x100
#define SYSCALL_BYTES 2
#define TRAP_DEBUG_EXCEPTION 1
#define ICEBP 0xf1
#define USER_CS 0x33

uint64_t arch_pc(const ucontext_t *uc)
{
    return (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
}
uint64_t arch_sp(const ucontext_t *uc)
{
    return (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
}

uint64_t arch_frame_pointer(const ucontext_t *uc)
{
    return (uint64_t)uc->uc_mcontext.gregs[REG_RBP];
}

ucontext_t *arch_entry_context(const ucontext_t *uc)
{
    return (ucontext_t *)uc->uc_mcontext.gregs[REG_RDX];
}
void arch_set_pc(ucontext_t *uc, uint64_t pc)
{
    uc->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
}

void arch_set_step(ucontext_t *uc, int on)
{
    if (on)
        uc->uc_mcontext.gregs[REG_EFL] |= FLAG_TRAP;
    else
        uc->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)FLAG_TRAP;
}

int arch_is_step(const siginfo_t *info, const ucontext_t *uc)
{
    const greg_t *g = uc->uc_mcontext.gregs;
    if (info->si_code == TRAP_TRACE)
        return 1;
    if (info->si_code != TRAP_BRKPT || g[REG_TRAPNO] != TRAP_DEBUG_EXCEPTION || !(g[REG_EFL] & FLAG_TRAP))
        return 0;
    uint8_t last;
    return safe_copy(&last, (const void *)(g[REG_RIP] - 1), sizeof last) != 0 || last != ICEBP;
}

int arch_fault_writes(const ucontext_t *uc)
{
    return (uc->uc_mcontext.gregs[REG_ERR] & 2) != 0;
}

int arch_fault_fetches(const ucontext_t *uc)
{
    return (uc->uc_mcontext.gregs[REG_ERR] & 16) != 0;
}

int arch_has_protection_keys(void)
{
    static int has = -1; /* a virtual machine takes microseconds for the instruction */
    unsigned a, b, c, d;
    if (has < 0)
        has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & bit_OSPKE;
    return has;
}

int arch_other_mode(const ucontext_t *uc)
{
    return (uint16_t)uc->uc_mcontext.gregs[REG_CSGSFS] != USER_CS;
}

static int is_call(int64_t pc)
{
    uint8_t bytes[SYSCALL_BYTES];
    return safe_copy(bytes, (const void *)pc, SYSCALL_BYTES) == 0 && bytes[0] == 0x0f && bytes[1] == 0x05;
}

int arch_at_call(const ucontext_t *uc)
{
    return is_call(uc->uc_mcontext.gregs[REG_RIP]);
}

int arch_call_made(const ucontext_t *uc, uint64_t syscall_pc)
{
    return arch_pc(uc) != syscall_pc && uc->uc_mcontext.gregs[REG_RAX] >= 0;
}

int arch_after_call(const ucontext_t *uc)
{
    return is_call(uc->uc_mcontext.gregs[REG_RIP] - SYSCALL_BYTES);
}

static int has_fsgsbase;

int arch_find_fsgsbase(void)
{
    has_fsgsbase = (getauxval(AT_HWCAP2) & 2) != 0;
    return has_fsgsbase;
}

uint64_t arch_thread_pointer(void)
{
    uint64_t base = 0;
    if (has_fsgsbase)
        __asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0xae, 0xc0" : "=a"(base)); /* rdfsbase rax */
    else
        sys2(SYS_arch_prctl, ARCH_GET_FS, &base);
    return base;
}
