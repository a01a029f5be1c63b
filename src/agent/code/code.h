/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.h - which code may be translated, and what of it may change.
 *
 * Regions are the executable mappings of the process. Code of a private mapping of a file that nobody may
 * write to is translated once; everything else may change at any moment, and its translations check their
 * source. Restartable sequences (rseq) are never translated: the kernel could not restart them there.
 */
#ifndef CACHEGRAM_AGENT_CODE_H
#define CACHEGRAM_AGENT_CODE_H

#include <stdint.h>
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

int region_may_translate(uint64_t pc);
/* Whether the region that holds that byte is known, without reading the list. */
int region_is_known(uint64_t pc);
/* Translated code must check its source: one of these bytes is writable, in no private mapping of a file, or
 * not known. */
int region_may_change(uint64_t pc, uint64_t bytes);
/* End of the code around pc of which none may change; pc, if that byte may. */
uint64_t region_fixed_end(uint64_t pc);
int region_is_agent(uint64_t pc); /* the agent's own code: its references are not the target's */
int regions_check(void);          /* something known has gone or changed: translations are stale */
int regions_are_stale(void);      /* likewise, as far as was noticed without looking */
/* At the process' start, for it may leave /proc behind. What was known is kept for as long as the list cannot
 * be read again. */
void regions_read(void);
void regions_forget(void);
void regions_forked(const struct wire_proc *parent); /* likewise; told to our own slot */
void regions_mark_stale(void); /* whatever was translated must go: a library unloaded, no room */
uint32_t region_module(uint64_t pc);
/* Code of which some was translated, and that has changed, or whose protection has, unseen: a stretch of it;
 * 0: none. After arch_code_changes for that, there may be more. */
int regions_find_changed(uint64_t *start, uint64_t *end);
int regions_overlap_code(uint64_t address, uint64_t bytes); /* code that is known, and known not to change */
/* For arch_code_changes: these pages count as code that may change from now on. Nonzero: some did not so far.
 */
int regions_mark_unstable(uint64_t start, uint64_t end);

/* Restartable sequences. The caller holds the translator's lock. */
void rseq_init(void);
void rseq_forked(void);
void rseq_module(const char *path, uint64_t start, uint64_t file_offset); /* learns those of a module */
int rseq_learn(uint64_t fs_base); /* the one that this thread is in, if any; nonzero: it was not known */
/* The instruction at pc names that address. Nonzero if a sequence was learned. */
int rseq_hint(uint64_t pc, uint64_t address);
int rseq_inside(uint64_t pc, uint64_t *abort); /* *abort: where an interrupted sequence goes on */
void rseq_note_descriptor(
    uint64_t fs_base); /* without that lock: where the thread's descriptor is, if it has set one */
int rseq_has_descriptor(uint64_t address); /* its page has descriptors of sequences: never to be closed */
uint64_t rseq_next(uint64_t pc);           /* start of the next one behind pc */

#pragma GCC visibility pop
#endif
