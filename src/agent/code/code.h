/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.h - which code may be translated, and which of it may change.
 *
 * Regions are the executable mappings of the process. Code of a private, unwritable mapping of a file is
 * translated once. All other code may change at any moment, and its translations check their source.
 * Restartable sequences (rseq) are never translated: the kernel could not restart them there.
 */
#ifndef CACHEGRAM_AGENT_CODE_H
#define CACHEGRAM_AGENT_CODE_H

#include <stdint.h>
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

int region_may_translate(uint64_t pc);
/* Whether the region that contains pc is known, without reading the list of mappings. */
int region_is_known(uint64_t pc);
/* Translated code must check its source: one of these bytes is writable, not in a private mapping of a file,
 * or not known. */
int region_may_change(uint64_t pc, uint64_t bytes);
/* End of the code at pc that cannot change; pc, if the byte at pc may change. */
uint64_t region_fixed_end(uint64_t pc);
int region_is_agent(uint64_t pc); /* the agent's own code, whose references are not the target's */
/* Compares known code: nonzero if some has changed or is no longer mapped, so that translations are stale. */
int regions_check(void);
int regions_are_stale(void); /* the same without comparing: whether staleness was noticed so far */
/* To be called at the process's start, since /proc may be out of its reach later (chroot). What is known is
 * kept as long as the list cannot be read again. */
void regions_read(void);
void regions_forget(void);
/* In a forked child: also copies the modules to its own slot. */
void regions_forked(const struct wire_proc *parent);
/* All translations must be discarded: a library was unloaded, or there is no room. */
void regions_mark_stale(void);
uint32_t region_module(uint64_t pc);
/* Finds code of which some was translated and whose bytes, mapping or protection have changed unnoticed. 0:
 * there is none. After arch_code_changes for the stretch found, there may be more. */
int regions_find_changed(uint64_t *start, uint64_t *end);
int regions_overlap_code(uint64_t address, uint64_t bytes); /* overlaps code that is known not to change */
/* For arch_code_changes: from now on these pages count as code that may change. Nonzero: some did not so far.
 */
int regions_mark_unstable(uint64_t start, uint64_t end);

/* Restartable sequences. The caller holds the translator's lock. */
void rseq_init(void);
void rseq_forked(void);
/* Learns the sequences of a module. */
void rseq_module(const char *path, uint64_t start, uint64_t file_offset);
/* Learns the sequence that this thread is in, if any; nonzero: it was not known. */
int rseq_learn(uint64_t fs_base);
/* The instruction at pc refers to that address. Nonzero: a sequence was learned from it. */
int rseq_hint(uint64_t pc, uint64_t address);
int rseq_inside(uint64_t pc, uint64_t *abort); /* *abort: where an interrupted sequence continues */
/* Needs no lock; notes where the thread's current descriptor is, if any. */
void rseq_note_descriptor(uint64_t fs_base);
/* The page has descriptors of sequences: it must never be protected. */
int rseq_has_descriptor(uint64_t address);
uint64_t rseq_next(uint64_t pc); /* start of the next sequence after pc */

#pragma GCC visibility pop
#endif
