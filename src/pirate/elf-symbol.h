/* SPDX-License-Identifier: Apache-2.0 */
/* elf-symbol.h - location of a program's variable or function, in its file and in a process. */
#ifndef CACHEGRAM_ELF_SYMBOL_H
#define CACHEGRAM_ELF_SYMBOL_H

#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

struct elf_symbol {
    uint64_t value, size; /* as linked */
    uint64_t base;        /* of the file's first byte that is loaded, as linked; at the start of a page */
    int is_function;
    int is_chosen; /* an ifunc: value is the function that chooses, not the chosen one */
};

/*
 * Looks a name up in the file's own symbols (.symtab, else .dynsym; of several versions, the one with which
 * programs are linked by default). -ENOENT if it is not there (stripped, or in a library), -EINVAL if the
 * file is not a 64-bit ELF file, or the error of opening it.
 */
int elf_symbol_find(const char *path, const char *name, struct elf_symbol *symbol, struct error *err);
/* Its address in a running process of that file, from /proc/PID/exe and maps. Errors as above; -ESRCH. */
int elf_symbol_address(pid_t pid, const char *name, uint64_t *address, struct error *err);

#endif
