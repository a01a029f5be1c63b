/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own.h - which memory is the agent's own.
 *
 * The target may read any address that is mapped. So all memory of the agent's can be read at all times: its
 * guard pages lack the right to write only. And none of it is watched: watch-pages.c asks own_overlaps before
 * it takes the rights of a page away, and is the only one that does.
 *
 * The list is in the process' slot (wire.h), where the collector asks it, too. Nothing but the functions here
 * maps memory for the agent.
 */
#ifndef CACHEGRAM_AGENT_OWN_H
#define CACHEGRAM_AGENT_OWN_H

#include <stddef.h>
#include <stdint.h>
#include "wire/wire.h"

#pragma GCC visibility push(hidden)

/* Private memory, shared with forked children, or executable. */
enum own_kind { OWN_DATA, OWN_SHARED, OWN_CODE };
/* hint: where, if that is free; NULL: anywhere. Untouched memory costs nothing. NULL: there is none. */
void *own_map(void *hint, size_t bytes, enum own_kind kind);
void own_unmap(void *memory, size_t bytes); /* as own_map returned it */
/* A page that cannot be written: what runs over an end faults there. */
void own_guard(void *page);
void own_unguard(void *page); /* it can again */
/* OWN_SHARED memory a second time, at a place within other memory of the agent's. 0, or -1. */
int own_map_again(const void *memory, size_t bytes, void *where);
/* A part of the session's file, from its descriptor; or without one, through the mapping of its beginning
 * (mremap of a shared mapping with old size 0 maps the same file again, and may reach further), which works
 * in a forked child whatever has become of descriptors, root and user. Both are listed by own_begin. */
void *own_map_session(int fd, uint64_t offset, size_t bytes);
void *own_map_session_again(uint64_t offset, size_t bytes);
/* `proc` is new, and the session's first page and all that the process' parent has (NULL: none is known) are
 * mapped: begins the list. */
void own_begin(const struct wire_proc *parent);
int own_overlaps(uint64_t address, uint64_t bytes);

#pragma GCC visibility pop
#endif
