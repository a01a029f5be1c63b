/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.S - where assembler must be: from generated code into C and back, the gate for system calls that
 * may block.
 *
 * The agent is compiled for general registers only, so vector and x87 state needs no saving here.
 */
#include "agent/translator/x86_64/layout.h"

	.text

/* What C code expects: direction forward, no alignment checks (which detectors of old CPUs turn on). */
#define PLAIN_FLAGS 0x202

/* Saves everything, calls dispatch_c(thread, registers), goes where that says. */
	.globl	dispatch_entry
	.hidden	dispatch_entry
	.type	dispatch_entry, @function
dispatch_entry:
	mov	%rsp, %gs:T_APP_RSP
	mov	%gs:T_DISPATCH_STACK, %rsp
	pushfq
	push	%rax
	push	%rcx
	push	%rdx
	push	%rbx
	push	%rbp
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	push	$PLAIN_FLAGS
	popfq
	mov	%gs:0, %rdi
	mov	%rsp, %rsi
	call	dispatch_c
	mov	%rax, %gs:T_JUMP_TO
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rbp
	pop	%rbx
	pop	%rdx
	pop	%rcx
	pop	%rax
	popfq
	mov	%gs:T_APP_RSP, %rsp
	jmp	*%gs:T_JUMP_TO
	.size	dispatch_entry, .-dispatch_entry

/*
 * A system call that may block, made with the target's own mask, so that its signals are seen. A
 * signal can arrive from the end of the first mask change to the end of the second; then
 * arch_restore_gate makes the interrupted context the target's.
 */
#define SAVED(n) %gs:T_SAVED + 8 * (n)
#define NR_rt_sigprocmask 14
#define SIG_SETMASK 2

/* The mask at that place of struct thread, then the saved registers again. Changes no flags. */
	.macro	set_mask mask
	mov	%gs:0, %rsi
	lea	\mask(%rsi), %rsi
	mov	$NR_rt_sigprocmask, %eax
	mov	$SIG_SETMASK, %edi
	mov	$0, %edx
	mov	$8, %r10d
	syscall
	mov	SAVED(0), %rdi
	mov	SAVED(1), %rsi
	mov	SAVED(2), %rdx
	mov	SAVED(3), %r10
	mov	SAVED(4), %rax
	.endm

	.globl	gate_begin
	.hidden	gate_begin
	.globl	gate_call
	.hidden	gate_call
	.globl	gate_after
	.hidden	gate_after
	.globl	gate_end
	.hidden	gate_end
gate_begin:
	mov	%rdi, SAVED(0)
	mov	%rsi, SAVED(1)
	mov	%rdx, SAVED(2)
	mov	%r10, SAVED(3)
	mov	%rax, SAVED(4)
	mov	%rcx, SAVED(5)
	mov	%r11, SAVED(6)
	set_mask	T_APP_MASK
gate_call:
	syscall
gate_after:
	mov	%rax, SAVED(4)
	mov	%r11, SAVED(6)
	set_mask	T_BURST_MASK
	mov	SAVED(6), %r11
gate_end:
	movq	$GATE_EXIT_ID, %gs:T_EXIT_ID
	jmp	dispatch_entry

	.section .note.GNU-stack, "", @progbits
