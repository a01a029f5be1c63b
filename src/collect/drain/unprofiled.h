/* SPDX-License-Identifier: Apache-2.0 */
/* unprofiled.h - processes that the agent left alone, or from some moment on, and why. */
#ifndef CACHEGRAM_COLLECT_UNPROFILED_H
#define CACHEGRAM_COLLECT_UNPROFILED_H

#include <stddef.h>
#include <stdint.h>
#include "wire/wire.h"

struct unprofiled {
    struct {
        uint32_t processes;
        char name[64];   /* of the first one's program */
        uint32_t partly; /* of them, these handed something over */
        uint32_t code;   /* errno of the first one; 0: none is known */
    } by[WIRE_OFF_COUNT];
};

/* A process has ended, or the recording has. exe: its program. */
void unprofiled_add(struct unprofiled *u, const struct wire_proc *proc, const char *exe);
/*
 * The next reason that a user should know of, as words for a warning. *why: 0 for the first one; set to what
 * was told. Returns 0 when there is no more.
 */
int unprofiled_next(const struct unprofiled *u, unsigned *why, char *text, size_t size);

#endif
