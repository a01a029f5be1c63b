/* SPDX-License-Identifier: Apache-2.0 */
/* context.h - the interrupted context of a thread, in its signal frame. */
#ifndef CACHEGRAM_AGENT_SYS_CONTEXT_H
#define CACHEGRAM_AGENT_SYS_CONTEXT_H

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

#pragma GCC visibility push(hidden)

uint64_t arch_pc(const ucontext_t *uc);
uint64_t arch_sp(const ucontext_t *uc);
uint64_t arch_frame_pointer(const ucontext_t *uc);
void arch_set_pc(ucontext_t *uc, uint64_t pc);
/* The third argument of the handler that is about to start. */
ucontext_t *arch_entry_context(const ucontext_t *uc);
/* Sets or clears the trap flag, with which the next instruction ends in a SIGTRAP. */
void arch_set_step(ucontext_t *uc, int on);
/* This SIGTRAP is the one that the trap flag asked for. Under a hypervisor, rarely, debug register 6 does not
 * say why a debug exception occurred, and the kernel takes it for an icebp instruction. */
int arch_is_step(const siginfo_t *info, const ucontext_t *uc);
/* The access that faulted was a store. */
int arch_fault_writes(const ucontext_t *uc);
int arch_fault_fetches(const ucontext_t *uc); /* it was that of an instruction's bytes */
/* Whether memory may have protection keys. The kernel begins handlers with rights of their own. */
int arch_has_protection_keys(void);
/* It executes 32-bit code (a far jump led there), or a code segment of the program's own: its bytes mean
 * something else than they do for the translator. */
int arch_other_mode(const ucontext_t *uc);
/* The next instruction is a system call; the previous one was. */
int arch_at_call(const ucontext_t *uc);
int arch_after_call(const ucontext_t *uc);
/* The system call at that address was stepped over, and did not fail. */
int arch_call_made(const ucontext_t *uc, uint64_t syscall_pc);

/* The calling thread's FS base, which is libc's thread pointer unless the program has set another one. No
 * memory is read, as __builtin_thread_pointer would do. arch_find_fsgsbase: whether there are instructions
 * for it; to be called once, at the start. */
int arch_find_fsgsbase(void);
uint64_t arch_thread_pointer(void);

#pragma GCC visibility pop
#endif
