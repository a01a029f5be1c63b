/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames_functions.h - functions with large variables, for test_frames.c. They are compiled with debug
 * information and without sanitizers, which place variables elsewhere.
 */
#ifndef CACHEGRAM_FRAMES_FUNCTIONS_H
#define CACHEGRAM_FRAMES_FUNCTIONS_H

#include <stdint.h>

/* A place in the code of a function, its CFA, and its variables; those that it does not have are NULL. */
struct frames_here {
    uint64_t code, cfa;
    const volatile char *large, *medium, *small; /* of FRAMES_LARGE, 128, and 100 bytes */
};
#define FRAMES_LARGE 4000u

typedef void frames_visit(void *ctx, const struct frames_here *here);

/* All three. */
void frames_two(frames_visit *visit, void *ctx);
/* Blocks whose arrays, `large` here, share their memory. */
void frames_blocks(int which, frames_visit *visit, void *ctx);
/* Calls itself; each call has an array, `large`. */
void frames_deep(int depth, frames_visit *visit, void *ctx);

#endif
