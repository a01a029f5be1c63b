/* SPDX-License-Identifier: Apache-2.0 */
/* Work of small programs, so that bursts fall into it. */
#ifndef CACHEGRAM_TARGETS_WORK_H
#define CACHEGRAM_TARGETS_WORK_H

#include <stdint.h>
#include "rounds.h"

/* Loads and stores in 16 KB, each depending on the one before. */
static inline uint32_t churn(int rounds)
{
    rounds = rounds_of_work(rounds);
    static uint32_t table[4096], h = 1;
    for (int i = 0; i < rounds; i++) {
        table[h & 4095] += (uint32_t)i;
        h = h * 69069u + table[(h >> 7) & 4095];
    }
    return h;
}

/* Loads and stores all over half a megabyte, none depending on another. */
static inline uint64_t scatter(uint64_t x, int rounds)
{
    rounds = rounds_of_work(rounds);
    static uint64_t table[65536];
    for (int i = 0; i < rounds; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        table[x >> 48] += x;
    }
    return x;
}

#endif
