/* SPDX-License-Identifier: Apache-2.0 */
/* elf-symbol.h - where a variable or function of a program lies, in its file and in a process. */
#ifndef CACHEGRAM_ELF_SYMBOL_H
#define CACHEGRAM_ELF_SYMBOL_H

#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

struct elf_symbol {
    uint64_t value, size; /* as linked */
    uint64_t base;        /* of the file's first byte that is loaded, as linked; at the start of a page */
    int is_function;
    int is_chosen; /* an ifunc: value is what chooses the function, not the function */
};

/*
 * Looks a name up in the file's own symbols (.symtab, else .dynsym; of several versions, the one that is
 * linked to by default). -ENOENT if it is not there (stripped, or in a library), -EINVAL if the file is no
 * 64-bit ELF file, or what opening it said.
 */
int elf_symbol_find(const char *path, const char *name, struct elf_symbol *symbol, struct error *err);
/* Its address in a running process of that file, from /proc/PID/exe and maps. Errors as above; -ESRCH. */
int elf_symbol_address(pid_t pid, const char *name, uint64_t *address, struct error *err);

#endif
