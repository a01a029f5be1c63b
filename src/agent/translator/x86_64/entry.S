/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.S - from generated code into C and back.
 *
 * The agent is compiled for general registers only, so vector and x87 state needs no saving here.
 */
#include "agent/translator/x86_64/layout.h"

	.text

/* The flags that C code expects: direction forward, no alignment checks (code that detects old CPUs sets AC). */
#define PLAIN_FLAGS 0x202

/* Saves all registers, calls dispatch_c(thread, registers), restores them, and jumps to the returned address. */
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

	.section .note.GNU-stack, "", @progbits
