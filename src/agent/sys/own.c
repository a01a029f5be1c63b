/* SPDX-License-Identifier: Apache-2.0 */
/* See own.h. */
#include "agent/sys/own.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include <sys/mman.h>

extern const char __ehdr_start[] HIDDEN, _end[] HIDDEN;

/* 0, or -1: the list is full. */
static int add(const void *memory, size_t bytes)
{
    uint64_t low = (uint64_t)memory & ~(uint64_t)(WIRE_PAGE - 1);
    uint64_t high = ((uint64_t)memory + bytes + WIRE_PAGE - 1) & ~(uint64_t)(WIRE_PAGE - 1);
    uint32_t i = __atomic_fetch_add(&proc->own_spans, 1, __ATOMIC_SEQ_CST);
    if (i >= WIRE_OWN_SPANS) {
        __atomic_fetch_sub(&proc->own_spans, 1, __ATOMIC_SEQ_CST);
        return -1;
    }
    proc->own[i].low = low;
    __atomic_store_n(&proc->own[i].high, high, __ATOMIC_RELEASE);
    return 0;
}

static void remove_span(const void *memory)
{
    uint32_t n = __atomic_load_n(&proc->own_spans, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < n && i < WIRE_OWN_SPANS; i++)
        if (proc->own[i].low == (uint64_t)memory)
            __atomic_store_n(&proc->own[i].high, 0, __ATOMIC_RELEASE);
}

static void *map(void *hint, size_t bytes, int protection, int flags, int fd, uint64_t offset)
{
    long p = sys6(SYS_mmap, (long)hint, (long)bytes, protection, flags, fd, (long)offset);
    return sys_failed(p) ? NULL : (void *)p;
}

void *own_map(void *hint, size_t bytes, enum own_kind kind)
{
    int flags = MAP_ANONYMOUS | MAP_NORESERVE | (kind == OWN_SHARED ? MAP_SHARED : MAP_PRIVATE);
    int protection = PROT_READ | PROT_WRITE | (kind == OWN_CODE ? PROT_EXEC : 0);
    void *memory = hint ? map(hint, bytes, protection, flags | MAP_FIXED_NOREPLACE, -1, 0) : NULL;
    if (!memory)
        memory = map(NULL, bytes, protection, flags, -1, 0);
    if (memory && add(memory, bytes)) {
        sys2(SYS_munmap, memory, bytes);
        return NULL;
    }
    return memory;
}

void own_unmap(void *memory, size_t bytes)
{
    sys2(SYS_munmap, memory, bytes);
    remove_span(memory);
}

int own_map_again(const void *memory, size_t bytes, void *where)
{
    /* An old size of 0 creates a second mapping of the same memory. */
    return sys_failed(
               sys6(SYS_mremap, (long)memory, 0, (long)bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (long)where, 0))
               ? -1
               : 0;
}

int own_guard(void *page)
{
    return sys_failed(sys3(SYS_mprotect, page, WIRE_PAGE, PROT_READ)) ? -1 : 0;
}

void own_unguard(void *page)
{
    sys3(SYS_mprotect, page, WIRE_PAGE, PROT_READ | PROT_WRITE);
}

/* Only mappings with the same flags are merged. */
int own_set_apart(void *page)
{
    return sys_failed(sys3(SYS_madvise, page, WIRE_PAGE, MADV_DONTDUMP)) ? -1 : 0;
}

void *own_map_session(int fd, uint64_t offset, size_t bytes)
{
    return map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

void *own_map_session_again(uint64_t offset, size_t bytes)
{
    long p = sys4(SYS_mremap, session, 0, offset + bytes, MREMAP_MAYMOVE);
    if (sys_failed(p))
        return NULL;
    sys2(SYS_munmap, p, offset);
    return (uint8_t *)p + offset;
}

void own_begin(const struct wire_proc *parent)
{
    uint32_t n = parent ? __atomic_load_n(&parent->own_spans, __ATOMIC_ACQUIRE) : 0;
    proc->own_spans = 0;
    for (uint32_t i = 0; i < n && i < WIRE_OWN_SPANS; i++)
        if (parent->own[i].high)
            add((const void *)parent->own[i].low, parent->own[i].high - parent->own[i].low);
    if (!parent) {
        add(__ehdr_start, (size_t)(_end - __ehdr_start));
        add(session, WIRE_SESSION_BYTES);
    }
    add(proc, session->slot_bytes);
}

int own_overlaps(uint64_t address, uint64_t bytes)
{
    return wire_is_own(proc, address, address + bytes);
}
