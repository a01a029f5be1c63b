/* SPDX-License-Identifier: Apache-2.0 */
/* unprofiled.h - processes that could not be profiled, or only for a part of their time, and why. */
#ifndef CACHEGRAM_COLLECT_UNPROFILED_H
#define CACHEGRAM_COLLECT_UNPROFILED_H

#include <stddef.h>
#include <stdint.h>
#include "wire/wire.h"

struct unprofiled {
    struct {
        uint32_t processes;
        char name[64];   /* of the first one's program */
        uint32_t partly; /* number of those with some bursts */
        uint32_t code;   /* errno of the first one; 0: unknown */
    } by[WIRE_OFF_COUNT];
};

/* The process, or the recording, has ended. exe: its program. */
void unprofiled_add(struct unprofiled *u, const struct wire_proc *proc, const char *exe);
/*
 * Describes the next reason that the user should know, for a warning. *why: 0 for the first call; set to the
 * reason. Returns 0 if there is no other reason.
 */
int unprofiled_next(const struct unprofiled *u, unsigned *why, char *text, size_t size);

#endif
