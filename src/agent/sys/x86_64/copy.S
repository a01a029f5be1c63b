/* SPDX-License-Identifier: Apache-2.0 */
/* copy.S - accesses that may fault: the fault handler knows these addresses and resumes after them (sys.h). */
	.text

/* size_t safe_copy(to, from, bytes): see sys.h */
	.globl	safe_copy
	.hidden	safe_copy
	.type	safe_copy, @function
	.globl	safe_copy_start
	.hidden	safe_copy_start
	.globl	safe_copy_end
	.hidden	safe_copy_end
safe_copy:
	cld
	mov	%rdx, %rcx
safe_copy_start:
	rep movsb
safe_copy_end:
	mov	%rcx, %rax
	ret
	.size	safe_copy, .-safe_copy

/* size_t safe_probe(address, write): see sys.h. Does not change the memory. */
	.globl	safe_probe
	.hidden	safe_probe
	.type	safe_probe, @function
	.globl	safe_probe_read
	.hidden	safe_probe_read
	.globl	safe_probe_write
	.hidden	safe_probe_write
	.globl	safe_probe_fails
	.hidden	safe_probe_fails
safe_probe:
	xor	%eax, %eax
	test	%esi, %esi
	jnz	safe_probe_write
safe_probe_read:
	mov	(%rdi), %cl
	ret
safe_probe_write:
	lock orb $0, (%rdi)
	ret
safe_probe_fails:
	mov	$1, %eax
	ret
	.size	safe_probe, .-safe_probe

	.section .note.GNU-stack, "", @progbits
