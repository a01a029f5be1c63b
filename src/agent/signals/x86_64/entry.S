/* SPDX-License-Identifier: Apache-2.0 */
/* entry.S - the first and last steps of every signal handler (signals/frame.h). */
#define PLAIN_FLAGS 0x202 /* what C code expects: direction forward, no alignment checks */
#define NR_rt_sigprocmask 14
#define NR_sigaltstack 131
#define SIG_SETMASK 2

	.text

/*
 * The handler of every signal. signal_dispatcher(sig, info, uc, struct delivery *) returns the target's handler to
 * continue in, or 0. The mask is changed after switching to the target's stack: a pending signal is delivered at
 * once, and its frame must come below the moved one.
 */
	.globl	signal_entry
	.hidden	signal_entry
	.type	signal_entry, @function
signal_entry:
	sub	$56, %rsp
	push	$PLAIN_FLAGS
	popfq
	mov	%rsp, %rcx
	call	*signal_dispatcher(%rip)
	test	%rax, %rax
	jz	1f
	mov	%rax, %rbx
	mov	(%rsp), %rbp		/* struct delivery: sig, info, uc, sp, mask, altstack */
	mov	8(%rsp), %r12
	mov	16(%rsp), %r13
	mov	40(%rsp), %rdi
	lea	32(%rsp), %r14
	mov	24(%rsp), %rsp
	test	%rdi, %rdi
	jz	2f
	mov	$NR_sigaltstack, %eax
	xor	%esi, %esi
	syscall
2:	mov	%r14, %rsi
	mov	$NR_rt_sigprocmask, %eax
	mov	$SIG_SETMASK, %edi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	.globl	signal_entry_unmasked
	.hidden	signal_entry_unmasked
signal_entry_unmasked:		/* up to the jump arch_finish_entry does the same for an interrupted thread */
	mov	%rbp, %rdi
	mov	%r12, %rsi
	mov	%r13, %rdx
	xor	%eax, %eax
	.globl	signal_entry_jump
	.hidden	signal_entry_jump
signal_entry_jump:
	jmp	*%rbx
1:	add	$56, %rsp
	ret
	.size	signal_entry, .-signal_entry

/*
 * What libc's restorer has: unwinders recognise a signal frame by its bytes (those of gcc and LLVM, gdb), or by its
 * call frame information (libunwind), which says where the frame has the registers. They look up the address before
 * it, which is therefore part of it.
 */
#define OFFSET(bytes) 0x80 + (bytes) % 0x80, (bytes) / 0x80 /* SLEB128, below 8192 */
#define GREG(number) (40 + 8 * (number))		     /* in a struct ucontext, where rsp points to */
#define SAVED(dwarf, number) .cfi_escape 0x10, dwarf, 3, 0x77, OFFSET(GREG(number)) /* at rsp + offset */

	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_escape 0x0f, 4, 0x77, OFFSET(GREG(15)), 0x06 /* the CFA is the value at rsp + offset */
	SAVED(8, 0)
	SAVED(9, 1)
	SAVED(10, 2)
	SAVED(11, 3)
	SAVED(12, 4)
	SAVED(13, 5)
	SAVED(14, 6)
	SAVED(15, 7)
	SAVED(5, 8)		/* rdi */
	SAVED(4, 9)		/* rsi */
	SAVED(6, 10)		/* rbp */
	SAVED(3, 11)		/* rbx */
	SAVED(1, 12)		/* rdx */
	SAVED(0, 13)		/* rax */
	SAVED(2, 14)		/* rcx */
	SAVED(7, 15)		/* rsp */
	SAVED(16, 16)		/* rip */
	nop
	.globl	signal_restorer
	.hidden	signal_restorer
	.type	signal_restorer, @function
signal_restorer:
	mov	$15, %rax		/* rt_sigreturn */
	syscall
	.cfi_endproc
	.size	signal_restorer, .-signal_restorer

	.bss
	.balign	8
	.globl	signal_dispatcher
	.hidden	signal_dispatcher
	.type	signal_dispatcher, @object
	.size	signal_dispatcher, 8
signal_dispatcher:
	.zero	8

	.section .note.GNU-stack, "", @progbits
