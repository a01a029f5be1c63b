/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - the part of a profile with the stack distances of single threads (docs/format.md). */
#ifndef CACHEGRAM_PROFILE_THREADS_H
#define CACHEGRAM_PROFILE_THREADS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/hist.h"
#include "profile/profile.h"

/* tid 0: the process, as in a cache that its threads share. */
struct profile_thread {
    uint64_t process;
    uint32_t tid;
    uint64_t cold; /* first touches */
    uint64_t left; /* lines that it had touched, of a thread that went on after full mode */
};

/* stack: its distances. 0, or negative with err. */
int profile_put_thread(struct profile *p, const struct profile_thread *thread, const struct hist *stack,
                       struct error *err);
/* Calls each for every row until it returns nonzero, which is returned; 0, or negative with err. */
int profile_threads(struct profile *p,
                    int (*each)(void *ctx, const struct profile_thread *thread, const struct hist *stack),
                    void *ctx, struct error *err);

#endif
