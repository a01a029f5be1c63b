/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pages.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)
/* For less, rounding up to huge pages could waste a quarter, and the second-level TLB covers it anyway. */
#define LARGE_BYTES ((size_t)8 << 20)

void *pages_new(size_t bytes)
{
    if (bytes < LARGE_BYTES)
        return calloc(1, bytes);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_HUGEPAGE); /* if refused, only slower */
    return memory;
}

void pages_free(void *memory, size_t bytes)
{
    if (bytes < LARGE_BYTES)
        free(memory);
    else if (memory)
        munmap(memory, bytes);
}

void pages_shrink(void *memory, size_t bytes, size_t done, size_t *given)
{
    done -= done % HUGE_BYTES;
    if (bytes < LARGE_BYTES || done <= *given)
        return;
    madvise((char *)memory + *given, done - *given, MADV_DONTNEED);
    *given = done;
}

void *pages_sparse_new(size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void pages_sparse_free(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}
