/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - memory that a system call may touch. */
#ifndef CACHEGRAM_AGENT_MEMORY_H
#define CACHEGRAM_AGENT_MEMORY_H

#include <stdint.h>

#define CALL_PARTS 16u
struct span {
    uint64_t address, bytes;
};
struct memory {
    unsigned n;
    struct span part[CALL_PARTS];
};

#endif
