/* SPDX-License-Identifier: Apache-2.0 */
/* pages.h - memory for large tables that are accessed at random and freed in parts. */
#ifndef CACHEGRAM_BASE_PAGES_H
#define CACHEGRAM_BASE_PAGES_H

#include <stddef.h>

/*
 * Allocates so many bytes (> 0) of zeroed memory; NULL if there is none. Large memory requests huge pages,
 * without which a random access costs a second miss, in the page table. The caller frees it with pages_free.
 */
void *pages_new(size_t bytes);
/* bytes: as given to pages_new. NULL is allowed. */
void pages_free(void *memory, size_t bytes);
/*
 * Returns the first `done` bytes to the system in whole large pages; they must not be used any more. Small
 * memory is kept. May be called again with more bytes; *given, 0 before the first call, is the number of
 * bytes returned so far.
 */
void pages_shrink(void *memory, size_t bytes, size_t done, size_t *given);

/*
 * Allocates so many bytes (> 0) of zeroed memory, of which only the pages that are used cost memory and time;
 * NULL if there is none. For tables that are large, and sparse for small processes: calloc would clear all of
 * it where a freed table was before, which takes milliseconds. The caller frees it with pages_sparse_free.
 */
void *pages_sparse_new(size_t bytes);
/* bytes: as given to pages_sparse_new. NULL is allowed. */
void pages_sparse_free(void *memory, size_t bytes);

#endif
