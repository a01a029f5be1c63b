/* SPDX-License-Identifier: Apache-2.0 */
/* calls.S - the places in the agent's text where diverted system calls of the target are made (divert.h). */
#include "agent/divert/x86_64/slots.h"

	.text

/*
 * A diverted call, made by the target itself with its own registers and stack. There is no register to spare for a
 * pointer, so each thread has its own copy of this code with the addresses of its slot. It notes that the call has
 * ended, and continues where the target would have.
 */
	.balign CALL_THROUGH_BYTES
	.globl	call_through
	.hidden	call_through
	.globl	call_through_end
	.hidden	call_through_end
	.type	call_through, @function
call_through:
	.set	slot, 0
	.rept	CALL_SLOTS
	.balign CALL_THROUGH_BYTES
	syscall
	movb	$0, call_slots + 16 * slot + 8(%rip)
	jmp	*call_slots + 16 * slot(%rip)
	.set	slot, slot + 1
	.endr
	.balign CALL_THROUGH_BYTES
call_through_end:
	.size	call_through, .-call_through

/* The same, but followed by a fault, at which pages are protected again. */
	.globl	call_then_fault
	.hidden	call_then_fault
	.globl	call_then_fault_after
	.hidden	call_then_fault_after
	.type	call_then_fault, @function
call_then_fault:
	syscall
call_then_fault_after:
	hlt
	.size	call_then_fault, .-call_then_fault

	.hidden	call_slots
	.comm	call_slots, 16 * CALL_SLOTS, 16

/*
 * For calls that wait with a signal mask, and those that are made again after a timer of the agent's, the number is
 * loaded right before the call, as in libc's functions: that is how arch_waiting_mask finds the mask for a handler
 * that interrupts the call, and arch_restart_call the number.
 */
	.macro	make_waiting_call number
	cmp	$\number, %rax
	jne	1f
	mov	$\number, %eax
	syscall
	ret
1:
	.endm

	.macro	make_call
	mov	%rdi, %rax
	mov	%rsi, %r11
	mov	(%r11), %rdi
	mov	8(%r11), %rsi
	mov	16(%r11), %rdx
	mov	24(%r11), %r10
	mov	32(%r11), %r8
	mov	40(%r11), %r9
	make_waiting_call 130		/* rt_sigsuspend */
	make_waiting_call 270		/* pselect6 */
	make_waiting_call 271		/* ppoll */
	make_waiting_call 281		/* epoll_pwait */
	make_waiting_call 333		/* io_pgetevents */
	make_waiting_call 441		/* epoll_pwait2 */
	make_waiting_call 426		/* io_uring_enter */
	syscall
	ret
	.endm

/* long syscall_undiverted(number, args): a call that is never diverted */
	.globl	syscall_undiverted
	.hidden	syscall_undiverted
	.type	syscall_undiverted, @function
syscall_undiverted:
	make_call
	.size	syscall_undiverted, .-syscall_undiverted

/*
 * long syscall_divertible(number, args): after all other text of the agent, so that the call is diverted like the
 * target's own, and in a burst treated as one of them.
 */
	.section .outside, "ax", @progbits
	.globl	syscall_divertible
	.hidden	syscall_divertible
	.type	syscall_divertible, @function
syscall_divertible:
	make_call
	.size	syscall_divertible, .-syscall_divertible

	.section .note.GNU-stack, "", @progbits
