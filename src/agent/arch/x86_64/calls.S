/* SPDX-License-Identifier: Apache-2.0 */
/* calls.S - where system calls of the target's are made that were diverted to us (calls.c). */

	.text

/*
 * A system call of the target's that was diverted to us (calls.c), made by the target itself. Where it goes on
 * is in call_return: there is one thread. call_and_back ends in a fault, at which pages are closed again.
 */
	.globl	call_through
	.hidden	call_through
	.globl	call_through_after
	.hidden	call_through_after
	.type	call_through, @function
call_through:
	syscall
call_through_after:
	jmp	*call_return(%rip)
	.size	call_through, .-call_through

	.globl	call_and_back
	.hidden	call_and_back
	.globl	call_and_back_after
	.hidden	call_and_back_after
	.type	call_and_back, @function
call_and_back:
	syscall
call_and_back_after:
	hlt
	.size	call_and_back, .-call_and_back

	.hidden	call_return
	.comm	call_return, 8, 8

	.section .note.GNU-stack, "", @progbits
