/* SPDX-License-Identifier: Apache-2.0 */
#include "frames_functions.h"

static __attribute__((noinline)) uint64_t code(void)
{
    return (uint64_t)__builtin_return_address(0);
}

/* Of the function that it is in. */
#define HERE .code = code(), .cfa = (uint64_t)__builtin_dwarf_cfa()

void frames_two(frames_visit *visit, void *ctx)
{
    volatile char large[FRAMES_LARGE], medium[128], small[100];
    large[5] = medium[5] = small[5] = 1;
    visit(ctx, &(struct frames_here){HERE, .large = large, .medium = medium, .small = small});
    large[5] = medium[5] = small[5] = 2;
}

void frames_blocks(int which, frames_visit *visit, void *ctx)
{
    if (which == 0) {
        volatile char first[FRAMES_LARGE];
        first[5] = 1;
        visit(ctx, &(struct frames_here){HERE, .large = first});
    } else {
        volatile char second[FRAMES_LARGE];
        second[5] = 1;
        visit(ctx, &(struct frames_here){HERE, .large = second});
    }
}

void frames_deep(int depth, frames_visit *visit, void *ctx)
{
    volatile char mine[FRAMES_LARGE];
    mine[7] = 1;
    visit(ctx, &(struct frames_here){HERE, .large = mine});
    if (depth > 0)
        frames_deep(depth - 1, visit, ctx);
    mine[7] = 2;
}
