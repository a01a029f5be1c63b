/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - memory for large tables that are read at random, and that are given back piece by piece. */
#ifndef CACHEGRAM_BASE_PAGES_H
#define CACHEGRAM_BASE_PAGES_H

#include <stddef.h>

/*
 * Memory of so many bytes (> 0), all zero; NULL if there is none. Large memory asks for huge pages, without
 * which a random access costs a second miss, that of the page table. The caller's, to be given back by
 * pages_free.
 */
void *pages_new(size_t bytes);
/* bytes: as given to pages_new. NULL is allowed. */
void pages_free(void *memory, size_t bytes);
/*
 * Gives the first `done` bytes back to the system as far as whole large pages go; they must not be used any
 * more. Small memory is kept. May be called again with more bytes; *given, 0 before the first call, is where
 * it stopped.
 */
void pages_shrink(void *memory, size_t bytes, size_t done, size_t *given);

#endif
