/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - sequences instruction by instruction, under the trap flag, and the references that they make. */
#ifndef CACHEGRAM_TESTS_STEPS_H
#define CACHEGRAM_TESTS_STEPS_H

#include <stdint.h>
#include <ucontext.h>

#define FLAG_TRAP 0x100ull

/* References go to the file at path; stepping ends at exit_address. Nothing else here may be called before.
 */
void steps_open(const char *path, uint64_t exit_address);
/* Another sequence; left_out: it is not run, or what was stepped of it is not all. */
void steps_begin(uint32_t start, int left_out);
/* A trap: the instruction before has been executed, and the context's comes next. Nonzero: that is enough. */
int steps_step(ucontext_t *uc);
/* The next instruction faulted; the context is that of the fault. */
void steps_fault(const ucontext_t *uc);
/* Writes what has not been written yet. */
void steps_write(void);

#endif
