/* SPDX-License-Identifier: Apache-2.0 */
/* unwind.h - where functions of an ELF file keep their caller's state, by the file's .eh_frame. */
#ifndef CACHEGRAM_SYMBOLS_UNWIND_H
#define CACHEGRAM_SYMBOLS_UNWIND_H

#include <stdint.h>

struct symbols_unwind;

/* The CFA is what the stack pointer is after the return; the return address lies right below it. */
struct symbols_rule {
    int by_rbp; /* the CFA is rbp, not the stack pointer, plus: */
    int64_t offset;
    int in_memory; /* that is not the CFA but its address (gcc, where it aligns the stack) */
    int rbp_saved; /* the caller's rbp lies in memory at the CFA plus: */
    int64_t rbp_offset;
    int rbp_by_rbp; /* not at the CFA plus rbp_offset, but at rbp plus rbp_offset */
};

/* NULL if the file cannot be read, or says nothing. */
struct symbols_unwind *symbols_unwind_open(const char *path);
void symbols_unwind_close(struct symbols_unwind *u); /* NULL is allowed */
/* Of the code at that address of the file. 0, or -1: not known, or not that simple. */
int symbols_unwind_find(struct symbols_unwind *u, uint64_t address, struct symbols_rule *rule);

#endif
