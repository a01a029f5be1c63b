/* SPDX-License-Identifier: Apache-2.0 */
/* cycles.h - code that takes a known number of cycles of the core's clock. */
#ifndef CACHEGRAM_CYCLES_H
#define CACHEGRAM_CYCLES_H

#include <stdint.h>

/*
 * Waits for n cycles, a multiple of 8: a chain of additions of registers takes one each on all x86-64 CPUs.
 * Additions of constants would not: since Golden Cove, Intel's cores do several of a chain in one cycle, when
 * they rename registers.
 */
static inline void cycles_wait(uint64_t n)
{
    uint64_t sum = 1;
    for (uint64_t i = 0; i < n / 8; i++)
        __asm__ volatile("add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\t"
                         "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0"
                         : "+r"(sum)
                         : "r"(n)
                         : "cc");
}

#endif
