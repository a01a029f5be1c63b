/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.h - system calls of the target's while pages are closed, which the kernel could not touch for them.
 */
#ifndef CACHEGRAM_AGENT_CALLS_H
#define CACHEGRAM_AGENT_CALLS_H

#include <stdint.h>

/* Memory that a call may touch. */
#define CALL_PARTS 16u
struct span {
    uint64_t address, bytes;
};
struct memory {
    unsigned n;
    struct span part[CALL_PARTS];
};

/* Fills *m from the call's six arguments. Negative: the call is not known, it may touch anything. */
int call_memory(long number, const uint64_t *args, struct memory *m);

#endif
