/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h - the variables of one ELF file, and its functions of C++ and Rust, by its symbol table. A stripped
 * file's table may be in a debug file of its own, where libdwfl finds it on this machine (image.h);
 * debuginfod is not asked, as this happens while the program runs.
 */
#ifndef CACHEGRAM_SYMBOLS_DATA_H
#define CACHEGRAM_SYMBOLS_DATA_H

#include <stdint.h>

struct symbols_data;

/* Addresses are those in the file, not of a process. */
struct symbols_variable {
    uint64_t low, high;
    const char *name; /* mangled; the data's own. Or NULL: no symbol is there */
    /* Without a symbol: low and high are the gap's, and this is the section around it; "": none is known. */
    const char *section;
    uint64_t section_low;
};

/* Of a path as /proc/PID/maps has it. NULL if it is not an ELF file that can be read, or memory is short. */
struct symbols_data *symbols_data_open(const char *path);
void symbols_data_close(struct symbols_data *d); /* NULL is allowed */
/* Addresses of all segments: low is 0 if the file has none. */
void symbols_data_span(const struct symbols_data *d, uint64_t *low, uint64_t *high);
/* The address of an offset in the file. 0, or -1: no segment has it. */
int symbols_data_address(const struct symbols_data *d, uint64_t offset, uint64_t *address);
/* What is at the address. Symbols are read at the first call. */
void symbols_data_find(struct symbols_data *d, uint64_t address, struct symbols_variable *found);
/* The mangled name of the function of C++ or Rust at the address; NULL: there is none. */
const char *symbols_data_function(struct symbols_data *d, uint64_t address);
/*
 * Size of the block of thread-local variables that each thread has of this file, if that is a program: of a
 * library the dynamic linker decides where it is. 0: there is none. *below: the block begins so many bytes
 * below the thread pointer.
 */
uint64_t symbols_data_tls(const struct symbols_data *d, uint64_t *below);
/* What is at that offset in the block; low and high are offsets, too. */
void symbols_data_find_tls(struct symbols_data *d, uint64_t offset, struct symbols_variable *found);

#endif
