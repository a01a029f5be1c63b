/* SPDX-License-Identifier: Apache-2.0 */
/* vma.h - mappings of another process, from /proc/PID/maps. */
#ifndef CACHEGRAM_VMA_H
#define CACHEGRAM_VMA_H

#include <stdint.h>

struct vma {
    uint64_t start, end;
    int protection; /* PROT_* */
    int shared;
    char name[1024]; /* path, [heap], ...; truncated; "" if it has none */
};

struct vmas; /* those of one process */

/* NULL if the process has ended or may not be inspected, or memory is short. */
struct vmas *vmas_new(uint32_t pid);
void vmas_free(struct vmas *v); /* NULL is allowed */
/* To be called before a round of lookups: earlier data is outdated. */
void vmas_refresh(struct vmas *v);
/* Finds the mapping that contains the address: 0, or -ENOENT, or -ESRCH if the process has ended. Fast from
 * Linux 6.11 on; before, a refresh takes 0.1 ms. */
int vmas_find(struct vmas *v, uint64_t address, struct vma *found);
/* Calls each for every mapping until it returns nonzero; that, or 0. Reads the whole list. */
int vmas_each(struct vmas *v, int (*each)(void *ctx, const struct vma *vma), void *ctx);
/* Number of pages of the address space that are not private and writable: shared ones, code, constants. It
 * changes when a shared mapping is created or removed, but not when a heap grows. 0: unknown. Fast. */
uint64_t vmas_pages(struct vmas *v);
/*
 * Nonzero if the kernel, a device or a hypervisor may access the process' memory on its own at any time:
 * io_uring, asynchronous I/O, KVM, mapped devices. Reads the whole list.
 */
int vmas_asynchronous(struct vmas *v);

#endif
