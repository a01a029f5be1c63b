/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own.h - the memory that belongs to the agent.
 *
 * The target may read any address that is mapped. So all memory of the agent is readable at all times: its
 * guard pages are only write-protected. And none of it is watched: watch/pages.c consults own_overlaps before
 * it protects a page, and is the only code that does so.
 *
 * The list of this memory is in the process's slot (wire.h), where the collector consults it, too. Only the
 * functions here map memory for the agent.
 */
#ifndef CACHEGRAM_AGENT_OWN_H
#define CACHEGRAM_AGENT_OWN_H

#include <stddef.h>
#include <stdint.h>
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

/* Private; shared with forked children; private and executable. */
enum own_kind { OWN_DATA, OWN_SHARED, OWN_CODE };
/* hint: the place, if that is free; NULL: anywhere. Memory that is never touched costs nothing. NULL: no
 * memory. */
void *own_map(void *hint, size_t bytes, enum own_kind kind);
void own_unmap(void *memory, size_t bytes); /* as returned by own_map */
/* Makes a page read-only, so that a store beyond the end of a buffer faults. 0, or -1: that would make too
 * many mappings. */
int own_guard(void *page);
void own_unguard(void *page); /* makes it writable again */
/* The page becomes a mapping of its own for good, so that own_guard always succeeds. 0, or -1. */
int own_set_apart(void *page);
/* Maps OWN_SHARED memory a second time, within other memory of the agent. 0, or -1. */
int own_map_again(const void *memory, size_t bytes, void *where);
/* Maps a part of the session's file: through its descriptor; or without one, from the mapping of its
 * beginning (mremap of a shared mapping with old size 0 maps the same file again, and may extend further).
 * The second way works in a forked child whatever has happened to descriptors, root and user. Both are listed
 * by own_begin. */
void *own_map_session(int fd, uint64_t offset, size_t bytes);
void *own_map_session_again(uint64_t offset, size_t bytes);
/* Begins the list when `proc` is new. The session's first page and all memory listed by the process's parent
 * (NULL: unknown) are mapped. */
void own_begin(const struct wire_proc *parent);
int own_overlaps(uint64_t address, uint64_t bytes);

#pragma GCC visibility pop
#endif
