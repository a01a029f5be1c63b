/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enter.c - requirements of translated code on the processor and the thread; the GS base.
 */
#include <cpuid.h>
#include "agent/sys/context.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/thread.h"
#include "agent/translator/translator.h"
#include "agent/translator/x86_64/cache.h"
#include "agent/translator/x86_64/count.h"
#include "agent/translator/x86_64/dispatch.h"
#include "agent/translator/x86_64/insn.h"
#include "agent/translator/x86_64/template.h"
#include "agent/translator/x86_64/translate.h"

#define ARCH_SET_GS 0x1001
#define ARCH_GET_GS 0x1004

static int has_fsgsbase;

int arch_init(const struct translator_ops *ops)
{
    unsigned a, b, c, d;
    translator_ops = ops;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_2))
        return -WIRE_OFF_CPU;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
        b = 0;
    template_cpu((b & bit_AVX512BW) != 0);
    int bmi2 = (b & bit_BMI2) != 0;
    has_fsgsbase = arch_find_fsgsbase();
    insn_init(bmi2);
    return cache_init() || translate_init() || count_block_init() ? -WIRE_OFF_MEMORY : 0;
}

static uint64_t gs_base(void)
{
    uint64_t base = 0;
    if (has_fsgsbase)
        __asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0xae, 0xc8" : "=a"(base)); /* rdgsbase rax */
    else
        sys2(SYS_arch_prctl, ARCH_GET_GS, &base);
    return base;
}

static void set_gs_base(uint64_t base)
{
    if (has_fsgsbase)
        __asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0xae, 0xd8" : : "a"(base)); /* wrgsbase rax */
    else
        sys2(SYS_arch_prctl, ARCH_SET_GS, base);
}

int arch_gs_in_use(void)
{
    return gs_base() != 0;
}

void arch_thread_init(struct thread *t)
{
    t->generated.dispatch = (void *)(uintptr_t)dispatch_entry;
    __builtin_memcpy(t->generated.filter, session->filter, sizeof t->generated.filter);
}

void arch_enter(struct thread *t)
{
    t->translation.app_gs_base = 0;
    set_gs_base((uint64_t)t);
}

void arch_leave(struct thread *t)
{
    set_gs_base(t->translation.app_gs_base);
}
