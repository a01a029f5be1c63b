/* SPDX-License-Identifier: Apache-2.0 */
/* procmap.h - PROCMAP_QUERY of Linux 6.11, an ioctl of /proc/PID/maps, which older headers lack. */
#ifndef CACHEGRAM_PROCMAP_H
#define CACHEGRAM_PROCMAP_H

#include <stdint.h>
#include <sys/ioctl.h>

struct procmap_query {
    uint64_t size, query_flags, query_addr;
    uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
    uint32_t dev_major, dev_minor;
    uint32_t vma_name_size, build_id_size;
    uint64_t vma_name_addr, build_id_addr;
};
#define PROCMAP_QUERY _IOWR('f', 17, struct procmap_query)
/* vma_flags */
enum { PROCMAP_READABLE = 1, PROCMAP_WRITABLE = 2, PROCMAP_EXECUTABLE = 4, PROCMAP_SHARED = 8 };

#endif
