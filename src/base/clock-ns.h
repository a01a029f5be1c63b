/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHEGRAM_CLOCK_NS_H
#define CACHEGRAM_CLOCK_NS_H

#include <stdint.h>
#include <time.h>

/* A clock in nanoseconds: CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, ... ; 0 if it
 * cannot be read. Async-signal-safe. */
static inline uint64_t clock_ns(clockid_t which)
{
    struct timespec t = {0};
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

#endif
