/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.S - system calls that may block. The gate belongs to generated code, and returns to the dispatcher in the
 * same way.
 */
#include "agent/translator/x86_64/layout.h"

	.text

/*
 * Makes a system call that may block with the target's own signal mask, so that its signals are delivered. A signal
 * can arrive between the end of the first mask change and the end of the second; then arch_restore_gate makes the
 * interrupted context the target's.
 */
#define SAVED(n) %gs:T_SAVED + 8 * (n)
#define NR_rt_sigprocmask 14
#define SIG_SETMASK 2

/* Sets the mask at that offset of struct thread, then restores the saved registers. Changes no flags. */
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
	jmp	*%gs:T_DISPATCH

	.section .note.GNU-stack, "", @progbits
