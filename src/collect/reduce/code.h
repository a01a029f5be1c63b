/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.h - the instructions that made references, of all processes of a run. A site of a process (decode.h)
 * is a reference of a translated block; the same instruction can be in several blocks and several processes.
 * Here it is one, identified by its file and its offset in the file. Code that may change at run time is
 * identified by its address and the map that a JIT compiler may write of its process (symbols/jit-map.h).
 */
#ifndef CACHEGRAM_CODE_H
#define CACHEGRAM_CODE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "collect/records/decode.h"
#include "symbols/code.h"

struct code;

/* Where the code of a process is. */
struct code_process {
    const struct wire_module *modules; /* the target's memory */
    uint32_t nmodules, pid;
};

struct code *code_new(struct error *err);
void code_free(struct code *c); /* NULL is allowed */
/*
 * Finds the instructions of all sites of those blocks (bits of used[]) of a process. *bytes: for each block
 * the instructions of its sites, in the form of table `block` (docs/format.md); valid until the next call. 0,
 * or -ENOMEM.
 */
int code_add_process(struct code *c, const struct decoder *d, const uint8_t *used,
                     const struct code_process *process, const uint8_t **bytes, size_t *size);
/* The instruction at an address of that process, as a number of code_found's sites; -ENOENT: in none of
 * the modules; -ENOMEM. */
int64_t code_add_place(struct code *c, const struct code_process *process, uint64_t pc);
/* Likewise, in a module that was there at the time of interest. */
int64_t code_add_place_in(struct code *c, const struct code_process *process, uint32_t module, uint64_t pc);
/* Everything found so far; valid until the next call of those above. */
struct symbols_code code_found(const struct code *c);

#endif
